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
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

from rg_env.evaluation.samples import Sample
from rg_env.evaluation.statistics import Estimate, difference
from rg_env.evaluation.summary import PartResult, result_of


@dataclasses.dataclass(frozen=True)
class Paired:
    """The difference between two results: the second minus the first.

    The mean difference has confidence intervals by item and by task; `means` are the
    means of the two results over the same items. All are None if no item has a score in
    both results, and `by_task` is None for a single task. Items with a score in only
    one result are counted.
    """

    means: tuple[float, float] | None
    by_item: Estimate | None
    by_task: Estimate | None
    only_first: int
    only_second: int


def item_means(scores: Iterable[tuple[Hashable, float]]) -> Mapping[Hashable, float]:
    """Return the mean of the scores of each item, given with the item."""
    by_item: dict[Hashable, list[float]] = {}
    for item, score in scores:
        by_item.setdefault(item, []).append(score)
    return {item: math.fsum(of) / len(of) for item, of in by_item.items()}


def paired_means(
    before: Mapping[Hashable, float], after: Mapping[Hashable, float]
) -> Paired:
    """Return the second result less the first one.

    Args:
        before: Item, which is a task and a question, to its mean score.
        after: The same of the second result.
    """
    both: list[Any] = [item for item in before if item in after]
    values = [after[item] - before[item] for item in both]
    tasks = [task for task, _ in both]
    sums = [math.fsum(means[item] for item in both) for means in (before, after)]
    return Paired(
        means=(sums[0] / len(both), sums[1] / len(both)) if both else None,
        by_item=difference(values, both, tasks) if both else None,
        by_task=difference(values, tasks) if len({*tasks}) > 1 else None,
        only_first=len(before) - len(both),
        only_second=len(after) - len(both),
    )


def paired(first: Sequence[Sample], second: Sequence[Sample]) -> Paired:
    """Return the second result less the first one."""
    results = (
        item_means(
            (sample.item, sample.score) for sample in of if sample.score is not None
        )
        for of in (first, second)
    )
    return paired_means(*results)


WHOLE = ("all", "")
Part = tuple[str, str]
"""A kind of part and its name: `WHOLE`, a category or a task."""


class Comparison:
    """Several results and pairs of them, on all and on each category and task.

    Args:
        all_pairs: Whether every two results are paired, or the first with each other.

    Attributes:
        names: Of the results, shape (R,).
        pairs: Places of the results that are paired, shape (P, 2).
        measured: Part to what each result came to, None where it has no score there,
            shape (R,).
        paired: Part to the differences, shape (P,).
    """

    def __init__(
        self, results: Mapping[str, Sequence[Sample]], *, all_pairs: bool = False
    ) -> None:
        self.names = list(results)
        pairs = itertools.combinations(range(len(results)), 2)
        self.pairs = [pair for pair in pairs if all_pairs or pair[0] == 0]
        self.measured: dict[Part, list[PartResult | None]] = {}
        self.paired: dict[Part, list[Paired]] = {}
        found: dict[Part, list[list[Sample]]] = {WHOLE: [[] for _ in results]}
        for place, samples in enumerate(results.values()):
            for sample in samples:
                names = (("category", sample.category), ("task", sample.task))
                for part in (WHOLE, *names):
                    found.setdefault(part, [[] for _ in results])[place].append(sample)
        for part in sorted(found):
            those = found[part]
            self.measured[part] = [result_of(samples) for samples in those]
            self.paired[part] = [paired(those[a], those[b]) for a, b in self.pairs]

    def parts(self, kind: str) -> list[Part]:
        """Return the parts of a kind, sorted."""
        return [part for part in self.measured if part[0] == kind]

    def numbers(self) -> dict[str, Any]:
        """Return all as plain values."""
        names = self.names
        return {
            "results": [
                {"name": name, **_by_kind(self.measured, place)}
                for place, name in enumerate(names)
            ],
            "differences": [
                {"of": names[b], "less": names[a], **_by_kind(self.paired, place)}
                for place, (a, b) in enumerate(self.pairs)
            ],
        }


def _by_kind(found: Mapping[Part, Sequence[Any]], place: int) -> dict[str, Any]:
    plain: dict[str, Any] = {"all": {}, "category": {}, "task": {}}
    for (kind, name), values in found.items():
        value = values[place]
        plain[kind][name] = dataclasses.asdict(value) if value else None
        if isinstance(value, PartResult):
            lost = value.failed + value.not_used
            answered = value.score_of_answered
            plain[kind][name] |= {
                "without_score": lost,
                "score_of_answered": answered.mean if answered else None,
            }
    return plain | {"all": plain["all"][""]}
