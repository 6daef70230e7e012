"""What the items of a stream are: which task, parameters, level and seed come next.

A draw is a pure function of seed and index (sampler.py), and the indices of an instance
are its place among those that share the stream and every nth after it. Levels and
adaptive weights are taken as they stand when the item is drawn.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

from rg_env.items.item import Item
from rg_env.tasks.baselines import NO_BASELINES
from rg_env.tasks.difficulty import NO_LEVELS, Difficulty
from rg_env.tasks.feedback import AdaptiveWeights
from rg_env.tasks.sampler import MAX_ATTEMPTS, draw, draw_in_turn, training_seed
from rg_env.tasks.selection import TaskChoice


@dataclasses.dataclass(frozen=True)
class Draw:
    """What was decided of an item before one of its attempts is made."""

    position: int  # in the stream of this instance
    index: int  # in the stream that the instances share
    choice: int  # its number among the choices
    task: str
    level: float | None  # in [0, 1], None for the library's defaults


class Stream:
    """The stream of one instance.

    Args:
        choices: What the draws fall on, shape (C,).
        seed: The run's seed.
        shard_index: This instance, in [0, num_shards).
        num_shards: Number of instances that share the stream.
        difficulty: The levels of the items.
        adaptive: What the weights of the choices are multiplied by.
        in_turn: Whether each choice has its turn, whatever its weight.
    """

    def __init__(
        self,
        choices: Sequence[TaskChoice],
        seed: int,
        *,
        shard_index: int = 0,
        num_shards: int = 1,
        difficulty: Difficulty = NO_LEVELS,
        adaptive: AdaptiveWeights | None = None,
        in_turn: bool = False,
    ) -> None:
        self.choices = choices
        self._seed = seed
        self._shard = shard_index, num_shards
        self.difficulty = difficulty
        self._adaptive = adaptive
        self._in_turn = in_turn
        self.fields: dict[str, Any] = {}  # those that every item has
        self.baselines = NO_BASELINES

    @property
    def task_names(self) -> list[str]:
        """The chosen tasks, sorted."""
        return sorted({choice.task for choice in self.choices})

    def _index_at(self, position: int) -> int:
        index, count = self._shard
        return position * count + index

    def draw(self, position: int) -> Draw:
        """Return the draw at a position, by weights and levels as they are now."""
        if position < 0:
            raise ValueError(f"position must be at least 0, found {position!r}")
        index = self._index_at(position)
        if self._in_turn:
            choice, point = draw_in_turn(self._seed, index, len(self.choices))
        else:
            weights = [choice.weight for choice in self.choices]
            if self._adaptive is not None:
                weigh = self._adaptive.weight_of
                weights = [one.weight * weigh(one.task) for one in self.choices]
            choice, point = draw(self._seed, index, weights)
        level = self.difficulty.level_at(self.choices[choice].task, point)
        return self.drawn(position, choice, level)

    def drawn(self, position: int, choice: int, level: float | None) -> Draw:
        """Return a draw from what was decided of it."""
        task = self.choices[choice].task
        return Draw(position, self._index_at(position), choice, task, level)

    def attempt(self, drawn: Draw, number: int = 0) -> Item:
        """Return an attempt at the item of a draw, without its entry."""
        seed = training_seed(self._seed, drawn.index, number, in_turn=self._in_turn)
        params = self.difficulty.params_at(drawn.task, drawn.level, seed)
        params |= self.choices[drawn.choice].params  # those of the settings win
        how = (drawn.task, params, seed, drawn.level, drawn.index)
        baseline = self.baselines.of(drawn.task, params)
        return Item(*how, baseline=baseline, **self.fields)

    def attempts(self, drawn: Draw) -> Iterator[Item]:
        """Yield the attempts at a draw, of which the first usable one is its item."""
        return (self.attempt(drawn, number) for number in range(MAX_ATTEMPTS))
