"""The stream of items before they are made: which task, parameters, level and seed.

A draw is a pure function of seed and index. What the results of a run decide,
its levels and adaptive weights, is taken as it stands when the item is drawn, and
travels with it from there.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from rg_env.tasks.adaptive import AdaptiveWeights
from rg_env.tasks.difficulty import Difficulty
from rg_env.tasks.sampler import Sampler
from rg_env.tasks.selection import TaskChoice


@dataclasses.dataclass(frozen=True)
class ItemSpec:
    """An item before it is made.

    Attributes:
        position: Its place in the stream of this instance, at least 0.
        index: Its global index.
        choice: Which of the choices it is.
        task: The task.
        level: In [0, 1], None for the library's defaults.
    """

    position: int
    index: int
    choice: int
    task: str
    level: float | None


class ItemStream:
    """The stream of one instance, and its place in it.

    Args:
        sampler: The stream of draws; owned by this stream from here on.
        choices: What the draws fall on, shape (C,).
        difficulty: The levels of the items; None for the library's defaults.
        adaptive: What the weights of the choices are multiplied by; None for nothing.

    Attributes:
        position: Items drawn so far.
    """

    def __init__(
        self,
        sampler: Sampler,
        choices: Sequence[TaskChoice],
        difficulty: Difficulty | None = None,
        adaptive: AdaptiveWeights | None = None,
    ) -> None:
        self._sampler = sampler
        self.choices = choices
        self._difficulty = difficulty
        self._adaptive = adaptive

    @property
    def position(self) -> int:
        """Items drawn so far."""
        return self._sampler.position

    @position.setter
    def position(self, position: int) -> None:
        self._sampler.go_to(position)

    def _weights(self) -> list[float] | None:
        if self._adaptive is None:
            return None
        weigh = self._adaptive.weight_of
        return [choice.weight * weigh(choice.task) for choice in self.choices]

    def next_spec(self) -> ItemSpec:
        """Return the next item and move on."""
        position = self.position
        draw = self._sampler.next_draw(self._weights())
        task, level = self.choices[draw.choice].task, None
        if self._difficulty is not None:
            level = self._difficulty.level_at(task, draw.level_point)
        return self.spec_of(position, draw.choice, level)

    def spec_of(self, position: int, choice: int, level: float | None) -> ItemSpec:
        """Return an item that was drawn before, from what the run decided of it.

        Raises:
            ValueError: There is no such choice, or the level is outside [0, 1].
        """
        if not 0 <= choice < len(self.choices):
            raise ValueError(f"choice {choice} of {len(self.choices)}")
        if level is not None and not 0.0 <= level <= 1.0:
            raise ValueError(f"level {level} is outside 0 to 1")
        index = self._sampler.index_at(position)
        return ItemSpec(position, index, choice, self.choices[choice].task, level)

    def seed_of(self, spec: ItemSpec, attempt: int = 0) -> int:
        """Return the seed of an item, or of another attempt at it."""
        return self._sampler.seed_of(spec.index, attempt)

    def expected_ms(self, spec: ItemSpec) -> float:
        """Return about how long an item takes to make; 0 where nothing is known."""
        if self._difficulty is None:
            return 0.0
        return self._difficulty.expected_ms(spec.task, spec.level)

    def params_of(self, spec: ItemSpec, attempt: int = 0) -> dict[str, Any]:
        """Return the dataset parameters that differ from the library's defaults."""
        own = dict(self.choices[spec.choice].params)
        if self._difficulty is None:
            return own
        seed = self.seed_of(spec, attempt)
        return self._difficulty.params_at(spec.task, spec.level, seed) | own
