"""A group: an item, its scored completions, and how its rollouts have ended.

A line of a dump file (docs/output_files.md) has the scored rollouts of a group and the
values that make its item again: the entry is
`create_dataset(task, seed=seed, size=1, **params)[0]`. `item_id`,
`rollouts[].conversation` and `.score` have the names of the original.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rg_env.run.ledger import DELIVERED, Ending, Ledger
from rg_env.stream.item import Item

SCHEMA_VERSION = 1


@dataclasses.dataclass(frozen=True)
class Rollout:
    """One scored completion, as dump files have it."""

    conversation: Sequence[Mapping[str, str]] = ()  # the completion comes last
    score: float = 0.0  # of the task, in [0, 1]
    reward: float = 0.0  # the score after shaping, in [0, 1]
    outcome: str = ""
    answer: str | None = None  # extracted; None if there was none
    finish_reason: str | None = None
    prompt_tokens: int = 0
    completion_tokens: int = 0
    normalized: bool = False  # whether the scored text is the normalized answer
    formats: Mapping[str, float | None] | None = None  # scores "bare" and "tagged"


@dataclasses.dataclass(eq=False)
class Group:
    """The rollouts of one item, from the item to their ending.

    Attributes:
        item: (messages, entry, dataset), or the item of a subclass.
        ledger: Counts its rollouts too.
        tries: How many groups of this item were lost so far.
        first_index: Index of its first completion among all completions of its item.
        source_info: Facts that its source passes on to the sinks.
        completions: A dict for each completion, as the hook `score` takes it, shape
            (G,).
        entry: The entry of the completed item.
        dataset: The dataset object of the completed item.
        rollouts: The scored completions, shape (G,).
        data: The data for the trainer, as the newest hook returned it: a group, a list
            of several, or None if there is none.
        is_for_trainer: Whether it is sent to the trainer; if not, it is only written.
        in_flight: Number of its rollouts that were queried and have not ended.
        endings: How its rollouts have ended.
        on_reply: Called when a reply of the server has come.
        began_s: When the work on it began, by `time.monotonic`.
    """

    item: Any = None
    ledger: Ledger = dataclasses.field(default_factory=Ledger)
    tries: int = 0
    first_index: int = 0
    source_info: Any = None
    completions: Sequence[Mapping[str, Any]] = ()
    entry: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    dataset: Any = None
    rollouts: Sequence[Rollout] = ()
    data: Any = None
    is_for_trainer: bool = True
    in_flight: int = 0
    endings: set[Ending] = dataclasses.field(default_factory=set)
    on_reply: Callable[[], None] = lambda: None
    began_s: float = dataclasses.field(default_factory=time.monotonic)

    # -- its rollouts ------------------------------------------------------------------

    def next_try(self) -> Group:
        """Return a new group of the same item, for another try."""
        return Group(
            self.item,
            self.ledger,
            tries=self.tries,
            first_index=self.first_index,
            source_info=self.source_info,
        )

    @property
    def is_delivered(self) -> bool:
        """Whether all of it has ended, and some reached the trainer or the disk."""
        return not self.in_flight and not self.endings.isdisjoint(DELIVERED)

    def query(self, rollouts: int) -> None:
        """Count rollouts that are being queried."""
        self.in_flight += rollouts
        self.ledger.query(rollouts)

    def set_data(self, data: Any) -> None:
        """Set the data of a hook; rollouts that the hook added count as queried."""
        self.data = data or None  # an empty list is no data
        self.query(max(0, count_rollouts(data) - self.in_flight))

    def end(self, ending: Ending, rollouts: int | None = None) -> None:
        """Count the ending of a number of its rollouts in flight, or of all of them.

        Every rollout ends here, and only once: then it is no longer in flight.
        """
        ended = self.in_flight if rollouts is None else min(rollouts, self.in_flight)
        self.in_flight -= ended
        if ended:
            self.endings.add(ending)
            self.ledger.settle(ending, ended)

    # -- its scores --------------------------------------------------------------------

    @property
    def origin(self) -> dict[str, Any]:
        """The values that make the item again; {} for an item from outside."""
        item = self.dataset
        if not isinstance(item, Item):
            return {}
        names = ("split", "index", "seed", "level")
        origin = {name: getattr(item, name) for name in names}
        if item.answer_format != "tags":
            origin["answer_format"] = item.answer_format
        if not item.partial_credit:
            origin["partial_credit"] = False
        return {**origin, "params": dict(item.params)}

    @property
    def task(self) -> str:
        """Name of the item's task."""
        if isinstance(self.dataset, Item):
            return self.dataset.task
        metadata = self.entry.get("metadata") or {}
        return str(metadata.get("source_dataset", "unknown"))

    @property
    def gold_answer(self) -> Any:
        """The reference answer; None if there are many."""
        return self.entry.get("answer")

    @property
    def level(self) -> float | None:
        """The level of the item, in [0, 1]; None for default parameters."""
        return self.dataset.level if isinstance(self.dataset, Item) else None

    @property
    def scores(self) -> list[float]:
        """The scores of the rollouts before shaping, shape (G,)."""
        return [rollout.score for rollout in self.rollouts]

    @property
    def rewards(self) -> list[float]:
        """The rewards of the rollouts after shaping, shape (G,)."""
        return [rollout.reward for rollout in self.rollouts]

    @property
    def mean_score(self) -> float:
        """The mean of the scores, in [0, 1]."""
        return sum(self.scores) / len(self.rollouts)

    def line(self, versions: Mapping[str, str], timestamp: str) -> dict[str, Any]:
        """Return the line of a dump file, as plain values."""
        return {
            "schema_version": SCHEMA_VERSION,
            "item_id": self.task,
            "rollouts": [vars(rollout) for rollout in self.rollouts],
            "task": self.task,
            **self.origin,
            "gold_answer": self.gold_answer,
            "versions": dict(versions),
            "time": timestamp,
        }


def groups_in(data: Any) -> list[dict[str, Any]]:
    """Return the groups in the data of a hook: a group, a list with Nones, or None."""
    groups = data if isinstance(data, list) else [data]
    return [group for group in groups if group is not None]


def count_rollouts(data: Any) -> int:
    """Return the number of rollouts in the data of a hook."""
    return sum(len(group["tokens"]) for group in groups_in(data) if group)


def has_variance(scores: Sequence[float]) -> bool:
    """Return whether the scores differ; equal ones give every rollout advantage 0."""
    return len(set(scores)) > 1
