"""What an instance saves and continues: checkpoints, and the ledger beside them.

Mends B10 of docs/host_defects.md: a checkpoint sets any attribute, needs the exact
step, and is silently left out where it is missing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rg_env.atropos import checkpoint_files
from rg_env.atropos.checkpoint_files import Stateful
from rg_env.atropos.checkpoint_lineage import Lineage
from rg_env.rollouts.ledger import Ending, Ledger
from rg_env.rollouts.run_dumps import Dumps

logger = logging.getLogger(__name__)


class Checkpoints:
    """The checkpoints and the ledger of one environment.

    Args:
        dumps: Its losses are part of the ledger on disk.

    Attributes:
        ledger: What became of the rollouts; on disk from `begin` on.
        is_begun: Whether anything is saved at all.
    """

    def __init__(self, dumps: Dumps) -> None:
        self._dumps = dumps
        self._lineage: Lineage | None = None
        self.ledger = Ledger(self._keep_ledger)
        self.is_begun = False

    def _keep_ledger(self, ledger: dict[str, Any]) -> None:
        if self._lineage is not None:
            self._lineage.keep({**ledger, **self._dumps.losses()})

    def lineage(self, folder: str, name: str, shard: str | None) -> Lineage:
        """Return this instance's folder of checkpoints, held from the first call on.

        Args:
            folder: The trainer's checkpoint_dir.
            name: What the API calls the instance.
            shard: Name of its part of the items; None where it has all of them.
        """
        if self._lineage is None:
            self._lineage = Lineage(folder, name, shard)
        return self._lineage

    def begin(self, lineage: Lineage) -> None:
        """Keep the ledger on disk from here on."""
        lineage.begin_ledger()
        self.is_begun = True
        self.ledger.tell()

    def save_or_say(self, save: Callable[[int], None], step: int) -> None:
        """Save a checkpoint; a disk that refuses it does not end the run.

        Args:
            save: The hook `save_checkpoint`.
            step: The trainer's step.
        """
        try:
            save(step)
        except OSError as error:
            logger.error("the checkpoint of step %d is not saved: %s", step, error)

    def restore(
        self,
        lineage: Lineage,
        step: int,
        owners: Callable[[], Mapping[str, Stateful]],
        settings: Mapping[str, Any],
    ) -> Path | None:
        """Continue from the newest checkpoint that is not after a step.

        Args:
            lineage: Where checkpoints are looked for.
            step: The trainer's step.
            owners: Returns who takes over which part; asked only if there is one.
            settings: What the run must share with the one that it continues.

        Returns:
            The checkpoint; None if there is none, and nothing was changed.

        Raises:
            BadCheckpoint: The file is broken or of another kind; nothing was loaded.
        """
        source = lineage.newest(step)
        if source is not None:
            checkpoint_files.restore(owners(), settings, source)
            self._continue_ledger(lineage, source)
        return source

    def _continue_ledger(self, lineage: Lineage, source: Path) -> None:
        """Continue the ledger of the process that left a checkpoint.

        What it had asked for and not yet counted when it was killed is counted here.
        """
        left = lineage.left_ledger(source)
        if left is None:
            return
        try:
            self.ledger.load_state_dict(left)
            self._dumps.take_over_losses(left)
        except ValueError as error:
            logger.warning("the ledger beside %s is not used: %s", source, error)
            return
        if self.ledger.in_flight > 0:
            self.ledger.settle(Ending("killed", self.ledger.in_flight))

    def end(self, save: Callable[[int], None], step: int) -> None:
        """Save a last checkpoint, if any is saved, and let go of the folder.

        What became of every rollout is known by then.
        """
        self.ledger.tell()
        if self.is_begun:
            self.save_or_say(save, step)
        if self._lineage is not None:
            self._lineage.release()
