"""Draws and seeds of entries, as pure functions of a stream's seed and an index.

Timing, the hash seed and the number of workers do not change them, so a resumed run
continues where it stopped and instances never share an item.

Entry seeds are a permutation of the index. The top bit of the seed is the split, which
keeps training and evaluation apart whatever their seeds are.
"""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

Split = Literal["train", "evaluation"]

# The largest seed of a run, which the JSON of dumps and checkpoints can hold.
MAX_SEED = 2**63 - 1

# The largest seed of an entry, which numpy's generator takes.
MAX_ENTRY_SEED = 2**32 - 1

_BITS = 31
_MASK = (1 << _BITS) - 1
_ATTEMPT_BITS = _BITS - 5
# Number of seeds for one index, so that a faulty entry can be replaced by another one:
# enough also for tasks with many faulty entries.
MAX_ATTEMPTS = 1 << (_BITS - _ATTEMPT_BITS)

# The bit of an entry's seed that is only set in the evaluation.
EVALUATION_BIT = 1 << _BITS


def _digest(*values: object) -> int:
    text = "\x1f".join(map(str, values))
    digest = hashlib.blake2b(text.encode(), digest_size=16).digest()
    return int.from_bytes(digest, "big")


def entry_seed(split: Split, key: str, index: int) -> int:
    """Return the seed of the entry at an index of a stream, up to MAX_ENTRY_SEED.

    Another key, such as the seed of another run, gives another order of the seeds.
    Indices that differ by less than 2**31 give different seeds: each step is a
    bijection of 31 bits.
    """
    # Never `seed + index`: in most tasks of the library `dataset(seed=s)[i]` only
    # depends on `s + i`, so neighbouring seeds give shifted copies of each other.
    keys = _digest("entry_seed", split, key)
    x = (index + keys) & _MASK
    x ^= x >> 16
    x = (x * 0x7FEB352D) & _MASK
    x = (x + (keys >> _BITS)) & _MASK
    x ^= x >> 15
    x = (x * 0x46B5A72D) & _MASK
    x ^= x >> 16
    return x | (EVALUATION_BIT if split == "evaluation" else 0)


def _seeds(split: Split, key: str, index: int) -> Iterator[int]:
    # No index below 2**26 is that of a later attempt at another index.
    for attempt in range(MAX_ATTEMPTS):
        yield entry_seed(split, key, index + (attempt << _ATTEMPT_BITS))


def training_seeds(seed: int, index: int, *, in_turn: bool = False) -> Iterator[int]:
    """Yield the seeds of the attempts at the entry of a global index.

    The entries of tasks drawn in turn have other seeds than those drawn by weights.

    Example:
        >>> next(training_seeds(42, 0))
        368105599
    """
    return _seeds("train", f"in_turn/{seed}" if in_turn else str(seed), index)


def evaluation_seeds(
    eval_seed: int, task: str, params: Mapping[str, Any], index: int
) -> Iterator[int]:
    """Yield the seeds of the attempts at an evaluation item.

    They only depend on these arguments: choosing other tasks does not change them.
    """
    key = f"{eval_seed}/{task}"
    if params:
        key += f"/{sorted(params.items())!r}"
    return _seeds("evaluation", key, index)


def mix_of_seed(seed: int) -> float:
    """Return a number in [0, 1) that chooses between the two steps of a level."""
    return (_digest("mix", seed) % 2**64 >> 11) / 2**53


def draw_generator(seed: int, index: int) -> random.Random:
    """Return a new generator, which decides the draw at a global index."""
    return random.Random(_digest("draw", seed, "train", index))


def draw_weighted(seed: int, index: int, weights: Sequence[float]) -> tuple[int, float]:
    """Return the draw at a global index: a choice, and a point in a range of levels.

    Args:
        seed: The seed of the stream.
        index: The index in the stream that all instances share.
        weights: One positive weight for each choice, shape (C,).

    Returns:
        The index of the choice, and the point, in [0, 1).

    Example:
        >>> draw_weighted(42, 0, [1, 2, 3])[0]
        2
    """
    rng = draw_generator(seed, index)
    (choice,) = rng.choices(range(len(weights)), weights)
    return choice, rng.random()


def draw_in_turn(seed: int, index: int, choices: int) -> tuple[int, float]:
    """Return the draw at a global index if the choices take turns.

    After any number of turns, the points of a choice are spread evenly over [0, 1).
    """
    turn, choice = divmod(index, choices)
    first = draw_generator(seed, choice).random()
    # Any number of steps by the golden ratio divides a circle evenly.
    return choice, (first + turn * (math.sqrt(5) - 1) / 2) % 1.0
