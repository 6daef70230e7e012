"""Results side by side, and paired by item. Pure.

A mean is of all completions, as the published `average_mean_score` of a task is; a
difference is the mean over the items that both results have, of the difference of their
means there. Intervals are clustered by item, for these tasks, and by task, for tasks
like these.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars as pl
from rich import box
from rich.text import Text

from rg_env.errors import on_one_line
from rg_env.evaluation.numbers import (
    PART,
    WHOLE,
    Estimate,
    Paired,
    PartResult,
    paired,
    results,
    with_parts,
)
from rg_env.reports.fitting_table import FittingTable

NAME_WIDTH = 500

PAIR_HEADINGS = ("items", "means", "difference", "by item", "by task")

Part = tuple[str, str]
"""A kind of part and its name: `WHOLE`, a category or a task."""


class Comparison:
    """Several results and pairs of them, on all and on each category and task.

    Args:
        names: Of the results, shape (R,).
        table: Their samples.
        all_pairs: Whether every two results are paired, or the first with each other.

    Attributes:
        pairs: Places of the results that are paired, shape (P, 2).
        measured: Part to what each result came to, None where it has no score there,
            shape (R,).
        paired: Part to the differences, shape (P,).
    """

    def __init__(
        self, names: Sequence[str], table: pl.DataFrame, *, all_pairs: bool = False
    ) -> None:
        self.names = names
        pairs = itertools.combinations(range(len(names)), 2)
        self.pairs = [pair for pair in pairs if all_pairs or pair[0] == 0]
        table = with_parts(table)
        parts = sorted(table.select(PART).unique().iter_rows())
        each = results(table, ["result", *PART])
        self.measured: dict[Part, list[PartResult | None]] = {
            part: [each.get((n, *part)) for n in range(len(names))] for part in parts
        }
        differences = [paired(table, *pair) for pair in self.pairs]
        self.paired: dict[Part, list[Paired]] = {
            part: [of.get(part, Paired()) for of in differences] for part in parts
        }

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

    def tables(self, *, with_tasks: bool) -> Iterator[FittingTable]:
        """Yield the scores of all results and their parts, and the differences."""
        headings = ["items", "completions", "score", "by item", "by task"]
        headings += ["answered", "score of answered", "truncated", "no score"]
        scores = _table("Mean score with 95 % intervals", "", headings)
        for place, one in enumerate(self.measured[WHOLE]):
            if one is not None:
                scores.add_row(
                    *map(str, (place + 1, one.items, one.completions)),
                    *_cells(one.by_item, one.by_item, one.by_task),
                    f"{one.answered:.1%}",
                    *_cells(one.score_of_answered),
                    "-" if one.truncated is None else str(one.truncated),
                    str(one.failed + one.not_used),
                )
        yield scores
        headings = [*PAIR_HEADINGS, "only in one"]
        pairs = _table("Differences, of the items of both", "", headings)
        for (a, b), pair in zip(self.pairs, self.paired[WHOLE], strict=True):
            lost = f"{a + 1}: {pair.only_first}, {b + 1}: {pair.only_second}"
            pairs.add_row(f"{b + 1}-{a + 1}", *_pair_cells(pair), lost)
        if self.pairs:
            yield pairs
        for kind in ("category", "task") if with_tasks else ("category",):
            yield from self._part_tables(kind)

    def _part_tables(self, kind: str) -> Iterator[FittingTable]:
        """Yield the scores of categories or tasks, and what differs on shared items."""
        parts = [part for part in self.measured if part[0] == kind]
        names = {part: Text(on_one_line(part[1], NAME_WIDTH)) for part in parts}
        headings = [str(place + 1) for place in range(len(self.names))]
        table = _table(f"Mean score by {kind}", kind, headings)
        for part in parts:
            of_part = [one.by_item if one else None for one in self.measured[part]]
            table.add_row(names[part], *(_cells(one)[0] for one in of_part))
        yield table
        pairs = [f"{b + 1}-{a + 1}" for a, b in self.pairs]
        title = f"Differences by {kind}, of the items of both"
        if len(pairs) > 2:
            table = _table(f"{title}, with intervals by item", kind, pairs)
            for part in parts:
                of_pairs = [pair.by_item for pair in self.paired[part]]
                table.add_row(names[part], *(" ".join(_cells(d, d)) for d in of_pairs))
            yield table
            return
        for place, pair in enumerate(pairs):
            table = _table(f"{title}: {pair}", kind, PAIR_HEADINGS)
            for part in parts:
                table.add_row(names[part], *_pair_cells(self.paired[part][place]))
            yield table


def _by_kind(found: Mapping[Part, Sequence[Any]], place: int) -> dict[str, Any]:
    plain: dict[str, Any] = {"all": {}, "category": {}, "task": {}}
    for (kind, name), values in found.items():
        value = values[place]
        plain[kind][name] = dataclasses.asdict(value) if value else None
        if isinstance(value, PartResult):
            answered = value.score_of_answered
            plain[kind][name] |= {
                "without_score": value.failed + value.not_used,
                "score_of_answered": answered.mean if answered else None,
            }
    return plain | {"all": plain["all"][""]}


def _table(title: str, first: str, others: Sequence[str]) -> FittingTable:
    left_out = ("only in one", "truncated", "by task", "score of answered")
    return FittingTable(
        [first],
        others,
        [*left_out, "completions", "answered", "no score", "by item", "items"],
        title=title,
        box=box.SIMPLE_HEAD,
        padding=0,
    )


def _cells(value: Estimate | None, *others: Estimate | None) -> list[str]:
    """Return a mean and the intervals that it has."""
    spans = [each.interval() if each else "-" for each in others]
    return [f"{value.mean:.3f}" if value else "-", *spans]


def _pair_cells(pair: Paired) -> list[str]:
    """Return how many items two results share, and their means and difference there."""
    means = f"{pair.means[1]:.3f} vs {pair.means[0]:.3f}" if pair.means else "-"
    number = str(pair.by_item.samples if pair.by_item else 0)
    return [number, means, *_cells(pair.by_item, pair.by_item, pair.by_task)]
