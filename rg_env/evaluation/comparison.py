"""Results side by side, and paired by item. Pure.

A mean is of all completions, as the published `average_mean_score` of a task is; a
difference is the mean over the items that both results have, of the difference of their
means there. Intervals are clustered by item, for these tasks, and by task, for tasks
like these.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from rg_env.evaluation.samples import Sample, scored
from rg_env.evaluation.statistics import Estimate, difference, estimate, grouped


@dataclasses.dataclass(frozen=True)
class Measured:
    """One result on some tasks.

    Attributes:
        items: With a score.
        by_item: The mean score with its interval by item; None without scores.
        by_task: The same with its interval by task.
        answered: Share of the scored completions that hold an answer.
        of_answered: Mean score of those that do, None where none does.
        truncated: Completions that were cut off; None where no file says so.
        without_score: Completions whose request failed or whose item cannot be scored.
    """

    items: int
    by_item: Estimate | None
    by_task: Estimate | None
    answered: float
    of_answered: float | None
    truncated: int | None
    without_score: int


@dataclasses.dataclass(frozen=True)
class Paired:
    """The second result less the first one.

    Attributes:
        by_item: The mean difference with its interval by item; None where no item is
            of both.
        by_task: The same with its interval by task.
        only_first: Items that only the first has a score of.
        only_second: Items that only the second has a score of.
    """

    by_item: Estimate | None
    by_task: Estimate | None
    only_first: int
    only_second: int


def measured(samples: Sequence[Sample]) -> Measured:
    """Return the numbers of samples of one result."""
    counted = scored(samples)
    scores = [sample.score or 0.0 for sample in counted]
    items = [sample.item for sample in counted]
    answered = [sample.score or 0.0 for sample in counted if sample.is_answered]
    is_known = any("finish_reason" in sample.row for sample in samples)
    return Measured(
        items=len(set(items)),
        by_item=estimate(scores, items) if scores else None,
        by_task=estimate(scores, [task for task, _ in items]) if scores else None,
        answered=len(answered) / len(counted) if counted else 0.0,
        of_answered=math.fsum(answered) / len(answered) if answered else None,
        truncated=sum(s.is_truncated for s in samples) if is_known else None,
        without_score=len(samples) - len(counted),
    )


def _item_means(samples: Sequence[Sample]) -> dict[Hashable, float]:
    scores = {
        item: [sample.score or 0.0 for sample in those]
        for item, those in grouped(scored(samples), lambda s: s.item).items()
    }
    return {item: math.fsum(those) / len(those) for item, those in scores.items()}


def paired(first: Sequence[Sample], second: Sequence[Sample]) -> Paired:
    """Return the second result less the first one."""
    before, after = _item_means(first), _item_means(second)
    both: list[Any] = [item for item in before if item in after]
    values = [after[item] - before[item] for item in both]
    return Paired(
        by_item=difference(values, both) if both else None,
        by_task=difference(values, [task for task, _ in both]) if both else None,
        only_first=len(before) - len(both),
        only_second=len(after) - len(both),
    )


WHOLE = ("all", "")
Part = tuple[str, str]
"""A kind of part and its name: `WHOLE`, a category or a task."""


class Comparison:
    """Several results and pairs of them, on all and on each category and task.

    Args:
        results: Name to samples, at least one.
        all_pairs: Whether every two results are paired, or the first with each other.

    Attributes:
        names: Of the results, shape (R,).
        pairs: Places of the results that are paired, shape (P, 2).
        measured: Part to the numbers of each result, shape (R,).
        paired: Part to the differences, shape (P,).
    """

    def __init__(
        self, results: Mapping[str, Sequence[Sample]], *, all_pairs: bool = False
    ) -> None:
        self.names = list(results)
        pairs = itertools.combinations(range(len(results)), 2)
        self.pairs = [pair for pair in pairs if all_pairs or pair[0] == 0]
        self.measured: dict[Part, list[Measured]] = {}
        self.paired: dict[Part, list[Paired]] = {}
        found: dict[Part, list[list[Sample]]] = {WHOLE: [[] for _ in results]}
        for place, samples in enumerate(results.values()):
            for sample in samples:
                names = (("category", sample.category), ("task", sample.task))
                for part in (WHOLE, *names):
                    found.setdefault(part, [[] for _ in results])[place].append(sample)
        for part in sorted(found):
            those = found[part]
            self.measured[part] = [measured(samples) for samples in those]
            self.paired[part] = [paired(those[a], those[b]) for a, b in self.pairs]

    def parts(self, kind: str) -> list[Part]:
        """Return the parts of a kind, sorted."""
        return [part for part in self.measured if part[0] == kind]

    def numbers(self) -> dict[str, Any]:
        """Return all as plain values."""
        second = [(self.names[a], self.names[b]) for a, b in self.pairs]
        return {
            "results": [
                {"name": name, **_by_kind(self.measured, place)}
                for place, name in enumerate(self.names)
            ],
            "differences": [
                {"of": b, "less": a, **_by_kind(self.paired, place)}
                for place, (a, b) in enumerate(second)
            ],
        }


def _by_kind(found: Mapping[Part, Sequence[Any]], place: int) -> dict[str, Any]:
    plain: dict[str, Any] = {"all": {}, "category": {}, "task": {}}
    for (kind, name), values in found.items():
        plain[kind][name] = dataclasses.asdict(values[place])
    return plain | {"all": plain["all"][""]}
