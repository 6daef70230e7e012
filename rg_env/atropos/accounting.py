"""The ledger of a run: every rollout asked for ends in one fate that is counted.

Mends B13: the host drops a group whose rollout or score raised, without a traceback and
without a pause.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rg_env.atropos.api_client import ApiRefused
from rg_env.atropos.process_run import ProcessingEnv
from rg_env.reports.metrics import Fate, Metrics

logger = logging.getLogger(__name__)

SUMMARY_EVERY_S = 30.0
ERROR_PAUSE_S = 1.0


def _rollouts_in(groups: Any) -> int:
    """Return the rollouts of a group, of several, of None."""
    listed = groups if isinstance(groups, list) else [groups]
    return sum(len(group["tokens"]) for group in listed if group)


class AccountingEnv(ProcessingEnv):
    """An environment that counts what becomes of its rollouts.

    Attributes:
        metrics: Counters of the run.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Build the environment, with all counters at zero."""
        super().__init__(*args, **kwargs)
        self.metrics = Metrics(self._keep_ledger)
        self._sending: dict[int, Fate] = {}
        self._last_summary = time.monotonic()

    def _begin_ledger(self) -> None:
        self._checkpoints().begin_ledger()
        self.metrics.tell()

    def _keep_ledger(self, ledger: dict[str, Any]) -> None:
        if self._lineage is not None:
            self._lineage.keep({**ledger, **self._dump_losses()})

    def _dump_losses(self) -> dict[str, int]:
        """Return what the ledger holds of dumped groups; a subclass dumps some."""
        return {}

    def _take_over_dump_losses(self, ledger: Mapping[str, Any]) -> None:
        """Continue what `_dump_losses` gave the ledger of a former process."""

    def _continue_ledger(self, source: Path) -> None:
        """Continue the ledger of the process that left a checkpoint.

        What it had asked for and not yet counted when it was killed is counted here.
        """
        ledger = self._checkpoints().left_ledger(source)
        if ledger is None:
            return
        try:
            self.metrics.load_state_dict(ledger)
            self._take_over_dump_losses(ledger)
        except ValueError as error:
            logger.warning("the ledger beside %s is not used: %s", source, error)
            return
        if self.metrics.in_flight > 0:
            self.metrics.record_fate("killed", self.metrics.in_flight)

    async def _note_error(self, error: Exception) -> None:
        """Log an error with its traceback, ever more seldom, and wait a moment."""
        self.metrics.events["errors"] += 1
        count = self.metrics.events["errors"]
        if count & (count - 1) == 0:  # the first, second, fourth, eighth, ...
            logger.error("a group failed (error %d)", count, exc_info=error)
        await asyncio.sleep(ERROR_PAUSE_S)

    async def handle_send_to_api(
        self,
        scored_data: Any,
        item: Any = None,
        do_send_to_api: bool = True,
        abort_on_any_max_length_exceeded: bool = True,
    ) -> None:
        """Send a group through the host's checks, and count what became of it."""
        given = scored_data if isinstance(scored_data, list) else [scored_data]
        groups = [g for g in given if g is not None]
        self._sending.update({id(g): "rejected" for g in groups})
        try:
            await super().handle_send_to_api(
                scored_data, item, do_send_to_api, abort_on_any_max_length_exceeded
            )
        except asyncio.CancelledError:
            self._end_early(groups, "cancelled", do_send_to_api)
            raise
        except Exception:
            self._end_early(groups, "failed", do_send_to_api)
            raise
        finally:
            for g in groups:
                self.metrics.record_fate(self._sending.pop(id(g)), len(g["tokens"]))

    def _end_early(self, groups: Sequence[Any], fate: Fate, is_sent: bool) -> None:
        """Give a fate to the groups that were not yet sent, or written at least."""
        for g in groups:
            reached = self._sending[id(g)]
            if reached == "rejected" or (is_sent and reached == "written"):
                self._sending[id(g)] = fate

    async def _write_row(self, group: Mapping[str, Any]) -> None:
        await super()._write_row(group)
        self._sending[id(group)] = "written"

    async def _postprocessed(self, group: Any) -> Any:
        """Apply the hook; what a subclass drops or loses in it is counted."""
        asked = _rollouts_in(group)
        try:
            left = await super()._postprocessed(group)
        except asyncio.CancelledError:
            self.metrics.record_fate("cancelled", asked)
            raise
        except Exception:
            self.metrics.record_fate("failed", asked)
            raise
        if _rollouts_in(left) < asked:
            self.metrics.record_fate("rejected", asked - _rollouts_in(left))
        return left

    async def _send_scored_data_to_api(self, scored_data: Any) -> None:
        """Send groups; those that the API does not take are kept on disk."""
        groups = scored_data if isinstance(scored_data, list) else [scored_data]
        self._sending.update({id(g): "unsent" for g in groups})
        try:
            await super()._send_scored_data_to_api(scored_data)
        except asyncio.CancelledError:
            await self._keep_unsent(groups, "the run ended")
            raise
        except ApiRefused as error:
            await self._keep_unsent(groups, str(error))
            raise
        self._sending.update({id(g): "sent" for g in groups})

    async def _keep_unsent(self, groups: Sequence[Any], reason: str) -> None:
        """Keep groups that are given up; a subclass says where."""

    async def cleanup(self) -> None:
        """Log a summary once in a while; the host calls this after every group."""
        await super().cleanup()
        now = time.monotonic()
        if now - self._last_summary >= SUMMARY_EVERY_S:
            self._last_summary = now
            logger.info("%s", self.metrics.summary())
