"""Which task comes next and with which seed: a pure function of the global index.

    draw = f(seed, index)               index = position * num_shards + shard_index

Timing, logging, the hash seed and the number of workers have no part in it, so a
resumed run continues where it stopped and instances never share an item.

Entry seeds are a permutation of the index, never `seed + index`: in most tasks of
the library `dataset(seed=s)[i]` depends on `s + i` alone, so neighbouring seeds are
shifted copies of each other. The top bit of the seed is the split, which keeps
training and evaluation apart whatever their seeds are.
"""

from __future__ import annotations

import bisect
import dataclasses
import hashlib
import itertools
import operator
import random
from collections.abc import Mapping, Sequence
from typing import Any, Literal

Split = Literal["train", "evaluation"]

_BITS = 31
_MASK = (1 << _BITS) - 1
_ATTEMPT_BITS = _BITS - 5
MAX_ATTEMPTS = 1 << (_BITS - _ATTEMPT_BITS)
"""Seeds that one index has, so that an entry can be replaced by another one: enough
for a task whose library makes more entries that are not asked than others."""

_SPLIT: Split = "train"
"""What the stream of draws is for; evaluation items are not drawn."""

_SPLIT_BIT = {"train": 0, "evaluation": 1 << _BITS}


def _digest(*parts: object) -> int:
    text = "\x1f".join(str(part) for part in parts)
    digest = hashlib.blake2b(text.encode(), digest_size=16).digest()
    return int.from_bytes(digest, "big")


def entry_seed(split: Split, key: str, index: int) -> int:
    """Return the seed of the entry at an index of a stream.

    Args:
        split: The stream's split; the two never share a seed.
        key: Names the stream, e.g. the run's seed. Streams of other keys visit the
            seeds in another order.
        index: The place in the stream, at least 0. Indices that differ by less than
            2**31 give different seeds: each step below is a bijection of 31 bits.

    Returns:
        A seed in [0, 2**32): the range that numpy's generator takes.
    """
    keys = _digest("entry_seed", split, key)
    x = (index + keys) & _MASK
    x ^= x >> 16
    x = (x * 0x7FEB352D) & _MASK
    x = (x + (keys >> _BITS)) & _MASK
    x ^= x >> 15
    x = (x * 0x46B5A72D) & _MASK
    x ^= x >> 16
    return x | _SPLIT_BIT[split]


def _place(index: int, attempt: int) -> int:
    """Return the place of an attempt, which no index below 2**26 has."""
    return index + (attempt << _ATTEMPT_BITS)


def evaluation_seed(
    eval_seed: int, task: str, params: Mapping[str, Any], number: int, attempt: int = 0
) -> int:
    """Return the seed of an evaluation item, or of another attempt at it.

    It depends on `eval_seed`, the task, its parameters, the item's number and the
    attempt alone, so that choosing other tasks does not change it.
    """
    key = f"{eval_seed}/{task}"
    if params:
        key += f"/{sorted(params.items())!r}"
    return entry_seed("evaluation", key, _place(number, attempt))


def mix_of_seed(seed: int) -> float:
    """Return which of two steps the entry of a seed falls on, in [0, 1).

    It belongs to the seed, so that task, level and seed make an entry again.
    """
    return (_digest("mix", seed) % 2**64 >> 11) / 2**53


@dataclasses.dataclass(frozen=True)
class Draw:
    """One draw of the stream.

    Attributes:
        index: Its global index, at least 0.
        choice: Which of the choices it fell on, in [0, number of choices).
        level_point: Where a level drawn from a range falls, in [0, 1).
    """

    index: int
    choice: int
    level_point: float


class Sampler:
    """The stream of training draws of one instance, and its place in it.

    Args:
        weights: One positive weight per choice, shape (C,), any scale; a call may
            give others in their place.
        seed: The run's seed.
        shard_index: This instance, in [0, num_shards).
        num_shards: Number of instances that share the stream.

    Attributes:
        position: Draws taken so far; the next draw is `draw_at(position)`.
    """

    def __init__(
        self,
        weights: Sequence[float],
        seed: int,
        shard_index: int = 0,
        num_shards: int = 1,
    ) -> None:
        self._cumulative = list(itertools.accumulate(weights))
        self._seed = seed
        self._shard_index = shard_index
        self._num_shards = num_shards
        self.position = 0

    def rng_at(self, position: int) -> random.Random:
        """Return the generator that decides the draw at a position, as new."""
        return random.Random(
            _digest("draw", self._seed, _SPLIT, self.index_at(position))
        )

    def index_at(self, position: int) -> int:
        """Return the global index of a position."""
        return position * self._num_shards + self._shard_index

    def draw_at(self, position: int, weights: Sequence[float] | None = None) -> Draw:
        """Return the draw at a position of this instance's stream; pure.

        Args:
            position: The place in the stream, at least 0.
            weights: Weights of this draw, shape (C,); None for those of the stream.
        """
        index = self.index_at(position)
        cumulative = self._cumulative
        if weights is not None:
            cumulative = list(itertools.accumulate(weights))
        rng = self.rng_at(position)
        point = rng.random() * cumulative[-1]
        choice = min(bisect.bisect_right(cumulative, point), len(cumulative) - 1)
        return Draw(index, choice, rng.random())

    def seed_of(self, index: int, attempt: int = 0) -> int:
        """Return the seed of an index, or of another attempt at its entry.

        Attempts share no seed with any index below 2**26.
        """
        return entry_seed(_SPLIT, str(self._seed), _place(index, attempt))

    def next_draw(self, weights: Sequence[float] | None = None) -> Draw:
        """Return the next draw and move on."""
        draw = self.draw_at(self.position, weights)
        self.position += 1
        return draw

    def go_to(self, position: int) -> None:
        """Continue at another position.

        Raises:
            ValueError: It is no whole number or below 0.
        """
        try:
            place = operator.index(position)
        except TypeError:
            place = -1
        if place < 0:
            raise ValueError(f"position must be at least 0, found {position!r}")
        self.position = place
