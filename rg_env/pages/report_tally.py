"""What the report says of samples in numbers; of each it keeps a few, and no text."""

from __future__ import annotations

import math
from array import array
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

from rg_env.evaluation.samples import Sample
from rg_env.evaluation.statistics import estimate
from rg_env.reports.outcome_words import OUTCOMES

PREVIEW_CHARS = 48
BINS = 20
"""Of a histogram of scores or levels; lengths have one for half a power of two."""

COLUMNS: tuple[str, ...]
COLUMNS = ("samples", "scored", "right", "answered", "score", "length", "levels")
COLUMNS += ("level", "ends", "truncated", "groups", "varied")
"""What is summed up by run and task; `ends` counts the samples of which it is known why
they ended, `groups` those of several scores, `varied` those whose scores differ."""

UNKNOWN = -1.0
ALL = -1
"""Stands for all runs, or all tasks."""

Numbers = dict[str, Any]
Sums = dict[tuple[float, float], dict[str, float]]
"""By run and task."""


class Numbering:
    """Numbers for names, in the order in which they come."""

    def __init__(self, names: Iterable[Hashable] = ()) -> None:
        self.by_name: dict[Any, int] = {n: i for i, n in enumerate(names)}

    def number(self, name: Hashable) -> int:
        """Return the number of a name."""
        return self.by_name.setdefault(name, len(self.by_name))

    def __len__(self) -> int:
        """Return how many names there are."""
        return len(self.by_name)


def _number(value: Any) -> float:
    is_number = isinstance(value, (int, float)) and math.isfinite(value)
    return float(value) if is_number else UNKNOWN


def _short(value: float) -> float | int:
    # A score of less than 1 does not become one of 1.
    rounded = min(round(value, 4), 0.9999) if value < 1 else round(value, 4)
    return int(rounded) if rounded == int(rounded) else rounded


def _totals(sums: Sums) -> Sums:
    """Return the sums of each run, of each task and of all."""
    found: Sums = {}
    for (run, task), of in sums.items():
        for place in ((run, ALL), (ALL, task), (ALL, ALL)):
            total = found.setdefault(place, dict.fromkeys(COLUMNS, 0.0))
            for name, value in of.items():
                total[name] += value
    return found


def _rows(sums: Sums) -> list[list[float | int]]:
    return [[*map(_short, [*place, *of.values()])] for place, of in sums.items()]


class ReportTally:
    """Counts samples for the overview and keeps their columns for the reader."""

    def __init__(self) -> None:
        self._runs, self._tasks, self._items = Numbering(), Numbering(), Numbering()
        self._outcomes, self._groups, self._versions = (
            Numbering(OUTCOMES),
            Numbering(),
            Numbering(),
        )
        self._categories: dict[int, str] = {}
        self._columns: defaultdict[str, array[float]]
        self._columns = defaultdict(lambda: array("d"))
        self._previews: list[str | None] = []

    def __len__(self) -> int:
        """Return how many samples there are."""
        return len(self._previews)

    def add(self, sample: Sample, run: str) -> None:
        """Count one sample."""
        row = sample.row
        text, answer = row.get("completion"), row.get("answer")
        number, task = self._runs.number(run), self._tasks.number(sample.task)
        item = self._items.number(hash((task, sample.question)))
        if sample.category:
            self._categories[task] = sample.category
        # A group is what stands together; in samples of evaluations, equal items.
        line, dot, _ = str(row.get("place", "")).rpartition(".")
        place = hash((row.get("source"), line)) if dot else None
        values = {
            "run": number,
            "task": task,
            "item": item,
            "outcome": self._outcomes.number(sample.outcome),
            "group": self._groups.number((number, item, place)),
            "answered": sample.is_answered,
            "truncated": sample.is_truncated if row.get("finish_reason") else UNKNOWN,
            "score": UNKNOWN if sample.score is None else sample.score,
            "level": _number(row.get("level")),
            "tokens": _number(row.get("completion_tokens")),
            "characters": len(text) if isinstance(text, str) else UNKNOWN,
        }
        for name, value in values.items():
            self._columns[name].append(value)
        begin = answer[:PREVIEW_CHARS] if isinstance(answer, str) else None
        self._previews.append(begin)
        versions = row.get("versions")
        if isinstance(versions, dict):
            pairs = sorted(versions.items())
            self._versions.number(", ".join(f"{name} {is_at}" for name, is_at in pairs))

    def overview(self) -> Numbers:
        """Return what the page shows before anything is chosen."""
        self._unit = "characters" if UNKNOWN in self._columns["tokens"] else "tokens"
        self._columns["length"] = self._columns[self._unit]
        self._columns["variance"] = self._variances()
        self._sums = self._summed()
        tasks = self._tasks.by_name.items()
        members: defaultdict[float, list[int]] = defaultdict(list)
        for i, run in enumerate(self._columns["run"]):
            members[run].append(i)
        return {
            "samples": len(self),
            "unit": self._unit,
            "interval": self._interval(range(len(self))),
            "tasks": [[name, self._categories.get(k, "")] for name, k in tasks],
            "outcomes": [[w, OUTCOMES.get(w, "")] for w in self._outcomes.by_name],
            "columns": COLUMNS,
            "totals": _rows(_totals(self._sums)),
            "runs": [
                {"name": name, **self._run(members[k])}
                for name, k in self._runs.by_name.items()
            ],
            "versions": list(self._versions.by_name),
        }

    def _variances(self) -> array[float]:
        """Return of each group's first sample whether its scores differ.

        It is unknown for one score, and for every other sample.
        """
        first: dict[float, int] = {}
        scores: defaultdict[float, list[float]] = defaultdict(list)
        for i, group in enumerate(self._columns["group"]):
            first.setdefault(group, i)
            if self._columns["score"][i] != UNKNOWN:
                scores[group].append(self._columns["score"][i])
        found = array("d", [UNKNOWN]) * len(self)
        for group, of in scores.items():
            if len(of) > 1:
                found[first[group]] = max(of) - min(of) > 1e-9
        return found

    def _summed(self) -> Sums:
        found: Sums = {}
        names = "run task score outcome answered length level truncated variance"
        right = self._outcomes.number("right")
        columns = zip(*(self._columns[name] for name in names.split()), strict=True)
        for run, task, score, outcome, answered, length, level, cut, varied in columns:
            sums = found.setdefault((run, task), dict.fromkeys(COLUMNS, 0.0))
            is_scored = score != UNKNOWN
            for name, value in (
                ("samples", 1),
                ("scored", is_scored),
                ("right", is_scored and outcome == right),
                ("answered", is_scored and answered),
                ("score", max(0, score)),
                ("length", max(0, length)),
                ("levels", level != UNKNOWN),
                ("level", max(0, level)),
                ("ends", cut != UNKNOWN),
                ("truncated", max(0, cut)),
                ("groups", varied != UNKNOWN),
                ("varied", max(0, varied)),
            ):
                sums[name] += value
        return found

    def _interval(self, members: Sequence[int]) -> list[float] | None:
        score = self._columns["score"]
        scored = [i for i in members if score[i] != UNKNOWN]
        if not scored:
            return None
        names = ("score", "item", "task")
        found = estimate(*([self._columns[n][i] for i in scored] for n in names))
        return [_short(found.low), _short(found.high)]

    def _run(self, members: Sequence[int]) -> Numbers:
        outcomes = Counter(self._columns["outcome"][i] for i in members)
        return {
            "items": len({self._columns["item"][i] for i in members}),
            "interval": self._interval(members),
            "outcomes": [outcomes[k] for k in range(len(self._outcomes))],
            "histograms": {
                name: self._histogram(members, name)
                for name in ("score", "level", "length")
            },
        }

    def _histogram(self, members: Sequence[int], name: str) -> list[int]:
        """Return how many samples are in each bin."""
        values = [self._columns[name][i] for i in members]
        counts = Counter(
            int(2 * math.log2(max(1.0, value)))
            if name == "length"
            else int(value * BINS + 1e-9)
            for value in values
            if value != UNKNOWN
        )
        return [counts[k] for k in range(max(counts, default=-1) + 1)]

    def cells(self) -> list[list[float | int]]:
        """Return run, task and sums of every task of a run; after the overview."""
        return _rows(self._sums)

    def columns(self) -> Mapping[str, Sequence[Any]]:
        """Return the columns of all samples, which the reader filters."""
        whole = ("run", "task", "item", "outcome")
        parts = ("score", "level", "length")
        return {
            **{name: list(map(int, self._columns[name])) for name in whole},
            **{
                name: [None if v == UNKNOWN else _short(v) for v in self._columns[name]]
                for name in parts
            },
            "preview": self._previews,
        }
