"""Which item: everything that is needed to make its entry again.

Everything that names an item contains these fields: what a stream draws, the evaluation
items, the dataset object that scores an item, and an item of the library.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from rg_env.tasks.sampler import Split, split_of


@dataclasses.dataclass(frozen=True)
class ItemSpec:
    """One item, whether it is made yet or not.

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
