"""Shards: the part of a stream that each of several instances samples.

An instance has the indices that begin at its number and continue by the number of
instances, so no index is in two shards. Slurm and torchrun number the instances that
they start.
"""

from __future__ import annotations

import os

from rg_env.errors import SettingError, shown

# Variables of rank and number; the first that are set win. The step comes before the
# job, which may start the trainer beside its environments.
LAUNCHERS = (
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
    ("SLURM_PROCID", "SLURM_NTASKS"),
    ("RANK", "WORLD_SIZE"),
)


def index_in_shard(position: int, shard: int, num_shards: int) -> int:
    """Return the index, in the whole stream, of a position in a shard.

    Example:
        >>> [index_in_shard(position, shard=1, num_shards=4) for position in range(3)]
        [1, 5, 9]
    """
    return position * num_shards + shard


def shard_of_launcher() -> tuple[int, int]:
    """Return the number of this instance, and how many the launcher has started.

    Without a launcher, they are 0 and 1.

    Raises:
        SettingError: The launcher's variables contradict each other.
    """
    for rank, number in LAUNCHERS:
        index = os.environ.get(rank, "")
        count = os.environ.get(number, "")
        if not index or not count:
            continue
        # An instance that took itself for the only one would sample the same items.
        if not (index + count).isdecimal() or int(index) >= int(count):
            raise SettingError(
                f"{rank}: {shown(index)} is not allowed beside {number} {shown(count)}"
            )
        return int(index), int(count)
    return 0, 1
