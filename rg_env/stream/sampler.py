"""Which task comes next and with which seed: a pure function of the global index.

Timing, the hash seed and the number of workers have no part in it, so a resumed run
continues where it stopped and instances never share an item.

Entry seeds are a permutation of the index. The top bit of the seed is the split, which
keeps training and evaluation apart whatever their seeds are.
"""

from __future__ import annotations

import hashlib
import math
import os
import random
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from rg_env.errors import SettingError, shown

Split = Literal["train", "evaluation"]

# The largest seed of a run, which the JSON of dumps and checkpoints can hold.
MAX_SEED = 2**63 - 1

# The largest seed of an entry, which numpy's generator takes.
MAX_ENTRY_SEED = 2**32 - 1

_BITS = 31
_MASK = (1 << _BITS) - 1
_ATTEMPT_BITS = _BITS - 5
# Seeds that one index has, so that an entry can be replaced by another one: enough for
# a task whose library makes more faulty entries than others.
MAX_ATTEMPTS = 1 << (_BITS - _ATTEMPT_BITS)

# The bit of an entry's seed that is set in the evaluation, and in training is not.
EVALUATION_BIT = 1 << _BITS


def _digest(*parts: object) -> int:
    text = "\x1f".join(str(part) for part in parts)
    digest = hashlib.blake2b(text.encode(), digest_size=16).digest()
    return int.from_bytes(digest, "big")


def entry_seed(split: Split, key: str, index: int) -> int:
    """Return the seed of the entry at an index of a stream, up to MAX_ENTRY_SEED.

    Another key, the run's seed for example, is another order of the seeds. Indices that
    differ by less than 2**31 give different seeds: each step is a bijection of 31 bits.
    """
    # Never `seed + index`: in most tasks of the library `dataset(seed=s)[i]` depends on
    # `s + i` alone, so neighbouring seeds are shifted copies of each other.
    keys = _digest("entry_seed", split, key)
    x = (index + keys) & _MASK
    x ^= x >> 16
    x = (x * 0x7FEB352D) & _MASK
    x = (x + (keys >> _BITS)) & _MASK
    x ^= x >> 15
    x = (x * 0x46B5A72D) & _MASK
    x ^= x >> 16
    return x | (EVALUATION_BIT if split == "evaluation" else 0)


def training_seed(
    seed: int, index: int, attempt: int = 0, *, in_turn: bool = False
) -> int:
    """Return the seed of the entry at a global index, or of another attempt at it.

    Entries that are drawn in turn are others than those drawn by weights.
    """
    key = f"in_turn/{seed}" if in_turn else str(seed)
    # No index below 2**26 has the place of an attempt.
    return entry_seed("train", key, index + (attempt << _ATTEMPT_BITS))


def evaluation_seed(
    eval_seed: int, task: str, params: Mapping[str, Any], number: int, attempt: int = 0
) -> int:
    """Return the seed of an evaluation item, or of another attempt at it.

    It depends on these alone, so that choosing other tasks does not change it.
    """
    key = f"{eval_seed}/{task}"
    if params:
        key += f"/{sorted(params.items())!r}"
    return entry_seed("evaluation", key, number + (attempt << _ATTEMPT_BITS))


def mix_of_seed(seed: int) -> float:
    """Return which of two steps the entry of a seed falls on, in [0, 1)."""
    return (_digest("mix", seed) % 2**64 >> 11) / 2**53


def draw_generator(seed: int, index: int) -> random.Random:
    """Return the generator that decides the draw at a global index, as new."""
    return random.Random(_digest("draw", seed, "train", index))


def draw(seed: int, index: int, weights: Sequence[float]) -> tuple[int, float]:
    """Return the draw at a global index, by positive weights, shape (C,).

    It is the number of a choice, and a place in a range of levels, in [0, 1).
    """
    rng = draw_generator(seed, index)
    (choice,) = rng.choices(range(len(weights)), weights)
    return choice, rng.random()


def draw_in_turn(seed: int, index: int, choices: int) -> tuple[int, float]:
    """Return the draw at a global index where each of some choices has its turn.

    Any number of turns spreads the levels of a choice evenly over its range.
    """
    turn, choice = divmod(index, choices)
    first = draw_generator(seed, choice).random()
    # However many steps of the golden ratio go around a circle, they lie evenly.
    return choice, (first + turn * (math.sqrt(5) - 1) / 2) % 1.0


# -- shards ----------------------------------------------------------------------------

# Variables of rank and number; the first that are set win. The step comes before the
# job, which may start the trainer beside its environments.
LAUNCHERS = (
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
    ("SLURM_PROCID", "SLURM_NTASKS"),
    ("RANK", "WORLD_SIZE"),
)


def index_in_shard(position: int, shard: int, num_shards: int) -> int:
    """Return the global index of the item at a position of one of several instances."""
    return position * num_shards + shard


def shard_of_launcher() -> tuple[int, int]:
    """Return this instance's number, and how many the launcher has started.

    Raises:
        SettingError: They cannot be.
    """
    for rank, number in LAUNCHERS:
        index, count = os.environ.get(rank, ""), os.environ.get(number, "")
        if not index or not count:
            continue
        # An instance that took itself for the only one would sample what others do.
        if not (index + count).isdecimal() or int(index) >= int(count):
            raise SettingError(
                f"{rank}: {shown(index)} is not allowed beside {number} {shown(count)}"
            )
        return int(index), int(count)
    return 0, 1
