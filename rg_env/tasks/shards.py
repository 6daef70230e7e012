"""Which of several instances this one is, as the launcher that started it says.

Slurm and torchrun number the processes of a job in environment variables. Instances
that are started by one of them share the stream of items without a setting.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping

from rg_env.errors import SettingError, shown

MOST_DIGITS = 6

LAUNCHERS = (
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
    ("SLURM_PROCID", "SLURM_NTASKS"),
    ("RANK", "WORLD_SIZE"),
)
"""Variables of the rank and of the number of processes; the first that are set win.

The step comes before the job: a job may start the trainer beside its environments.
"""


@dataclasses.dataclass(frozen=True)
class Shard:
    """This instance among those that share a stream, and the variables that say so."""

    index: int = 0
    count: int = 1
    source: str = ""


def _is_whole(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= MOST_DIGITS


def from_launcher(environ: Mapping[str, str] = os.environ) -> Shard:
    """Return what the launcher says of this process; one of one where it says nothing.

    Raises:
        SettingError: It says something that cannot be. An instance that took itself
            for the only one would sample what the others do.
    """
    for rank, number in LAUNCHERS:
        index, count = environ.get(rank, ""), environ.get(number, "")
        if not index or not count:
            continue
        if not (_is_whole(index) and _is_whole(count) and int(index) < int(count)):
            raise SettingError(
                f"{rank}: {shown(index)} is not allowed beside {number} {shown(count)};"
                f" expected a whole number below {number}; correct or unset both"
            )
        return Shard(int(index), int(count), f"{rank} and {number}")
    return Shard()
