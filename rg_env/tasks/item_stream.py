"""The stream of items before they are made: which task, parameters, level and seed.

A draw is a pure function of seed and index (sampler.py), and the indices of an instance
are its place among those that share the stream and every nth after it, so that they
never share an item and a resumed run continues where it stopped. What results decide,
its levels and adaptive weights, is taken as it stands when the item is drawn, and
travels with it from there.
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rg_env.tasks.adaptive import AdaptiveWeights
from rg_env.tasks.difficulty import NO_LEVELS, Difficulty
from rg_env.tasks.sampler import (
    MAX_ATTEMPTS,
    Draw,
    Split,
    draw,
    draw_in_turn,
    split_of,
    training_seed,
)
from rg_env.tasks.selection import TaskChoice


@dataclasses.dataclass(frozen=True)
class ItemSpec:
    """One item, whether it is made yet or not: all that its entry is made of.

    Whatever names an item contains these fields: what a stream draws, the evaluation
    items, the dataset object that scores an item, and an item of the library.

    Attributes:
        task: The registered task.
        params: Its dataset parameters that differ from the library's defaults.
        seed: The seed of the entry, in [0, 2**32).
        level: Difficulty in [0, 1], None for the library's defaults.
        index: Its global index in the stream, or its number among the evaluation items
            of its task.
        size: Size of the dataset of which it is number `index`; 1 if the seed is enough
            to make the entry.
        published: Whether it belongs to a published evaluation.
    """

    task: str
    params: Mapping[str, Any] = dataclasses.field(default_factory=dict, hash=False)
    seed: int = 0
    level: float | None = None
    index: int = 0
    size: int = dataclasses.field(default=1, kw_only=True, repr=False)
    published: bool = dataclasses.field(default=False, kw_only=True, repr=False)

    @property
    def split(self) -> Split:
        """The split that it belongs to."""
        return "evaluation" if self.published else split_of(self.seed)

    @property
    def place(self) -> tuple[int, int]:
        """Its index in its dataset, and the size of the dataset."""
        return (self.index if self.size > 1 else 0), self.size


@dataclasses.dataclass(frozen=True)
class DrawnItem:
    """A draw of the stream: what was decided before one of its attempts is made.

    Attributes:
        position: Its place in the stream of this instance, at least 0.
        index: Its global index.
        choice: Which of the choices it is.
        task: The task.
        level: In [0, 1], None for the library's defaults.
        sampled: Digest of its question if an earlier run has sampled the item, so that
            it need not be made again; otherwise None.
    """

    position: int
    index: int
    choice: int
    task: str
    level: float | None
    sampled: int | None = None


class ItemStream:
    """The stream of one instance, and its place in it.

    Args:
        choices: What the draws fall on, shape (C,).
        seed: The run's seed.
        shard_index: This instance, in [0, num_shards).
        num_shards: Number of instances that share the stream.
        difficulty: The levels of the items.
        adaptive: What the weights of the choices are multiplied by; None for nothing.
        in_turn: Whether each choice has its turn, whatever its weight; the entries are
            then other ones.

    Attributes:
        sampled: Index to task and digest of the question, of the items to come that an
            earlier run has sampled.
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
        self._shard_index = shard_index
        self._num_shards = num_shards
        self.difficulty = difficulty
        self._adaptive = adaptive
        self._in_turn = in_turn
        self._position = 0
        self.sampled: dict[int, tuple[str, int]] = {}

    @property
    def position(self) -> int:
        """Items drawn so far; a draw is set back or forth by setting it."""
        return self._position

    @position.setter
    def position(self, position: int) -> None:
        if not hasattr(position, "__index__") or operator.index(position) < 0:
            raise ValueError(f"position must be at least 0, found {position!r}")
        self._position = operator.index(position)

    def _index_at(self, position: int) -> int:
        return position * self._num_shards + self._shard_index

    def draw_at(self, position: int) -> Draw:
        """Return the draw at a position, by the weights as they are now."""
        index = self._index_at(position)
        if self._in_turn:
            return draw_in_turn(self._seed, index, len(self.choices))
        weights = [choice.weight for choice in self.choices]
        if self._adaptive is not None:
            weigh = self._adaptive.weight_of
            weights = [choice.weight * weigh(choice.task) for choice in self.choices]
        return draw(self._seed, index, weights)

    def next_draw(self) -> DrawnItem:
        """Return the next draw and move on."""
        position = self._position
        choice, level_point = self.draw_at(position)
        self._position += 1
        level = self.difficulty.level_at(self.choices[choice].task, level_point)
        drawn = self.drawn(position, choice, level)
        if drawn.index not in self.sampled:
            return drawn
        # Of the task that it was drawn for then: weights may have moved since.
        task, question = self.sampled.pop(drawn.index)
        return dataclasses.replace(drawn, task=task, sampled=question)

    def drawn(self, position: int, choice: int, level: float | None) -> DrawnItem:
        """Return a draw from what the run decided of it.

        Raises:
            ValueError: There is no such choice, or the level is outside [0, 1].
        """
        if not 0 <= choice < len(self.choices):
            raise ValueError(f"choice {choice} of {len(self.choices)}")
        if level is not None and not 0.0 <= level <= 1.0:
            raise ValueError(f"level {level} is outside 0 to 1")
        index = self._index_at(position)
        return DrawnItem(position, index, choice, self.choices[choice].task, level)

    def attempt(self, drawn: DrawnItem, number: int = 0) -> ItemSpec:
        """Return the item of a draw, or of another attempt at it.

        Parameters of the settings take precedence over those of the level.
        """
        seed = training_seed(self._seed, drawn.index, number, in_turn=self._in_turn)
        params = self.difficulty.params_at(drawn.task, drawn.level, seed)
        params |= self.choices[drawn.choice].params
        return ItemSpec(drawn.task, params, seed, drawn.level, drawn.index)

    def attempts(self, drawn: DrawnItem) -> Iterator[ItemSpec]:
        """Yield the attempts at a draw, of which the first usable one is its item."""
        return (self.attempt(drawn, number) for number in range(MAX_ATTEMPTS))
