"""The numbers of the report. Of each sample only a few values are kept, and no text."""

from __future__ import annotations

import math
import statistics
from array import array
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import product
from typing import Any

from rg_env.evaluation.comparison import item_means, paired_means
from rg_env.evaluation.samples import Sample
from rg_env.evaluation.statistics import Estimate, best_of, difference, estimate
from rg_env.pages import run_names
from rg_env.rollouts.shaping import has_variance
from rg_env.scoring.score import OUTCOMES

PREVIEW_CHARS = 48
BINS = 20
"""Of a histogram of scores or levels; lengths have one for half a power of two."""

FIGURES: tuple[str, ...]
FIGURES = ("score", "right", "pass", "answered", "variance", "level", "length")
FIGURES += ("truncated",)
"""Means of the samples of a run and part; `pass` is of items and `variance` of groups,
and each of these stands at its first sample."""

MOST_LEVELS = 12
"""That are parts of their own; where there are more, a part is a tenth of the scale."""

MOST_CELLS = 4_000
"""Of the matrix of runs and parts that is read before a click."""

UNKNOWN = -1.0
ALL = -1
"""In place of a number: all runs, or all parts."""

Numbers = dict[str, Any]
Place = tuple[float, float]
"""A run and a part: a task, a category or a level."""


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


def _ends(found: Estimate) -> list[float | int]:
    """Return the ends of an interval; none of one that says nothing."""
    ends = (found.low, found.high)
    return [] if math.isinf(found.high) else [*map(_short, ends)]


def _thousandths(found: Estimate | None) -> list[int] | None:
    # A score of less than 1 does not become one of 1.
    if found is None:
        return None
    ends = (found.mean, found.low, found.high)
    return [min(round(1000 * v), 999 + (v >= 1)) for v in ends]


def _named(name: str, model: str | None) -> str:
    return name if not model or model in name else f"{model}, {name}"


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

    def add(self, sample: Sample, run: tuple[run_names.Place, str | None]) -> None:
        """Count one sample of a run, which is a place and a model."""
        row, is_scored = sample.row, sample.score is not None
        text, answer = row.get("completion"), row.get("answer")
        number, task = self._runs.number(run), self._tasks.number(sample.task)
        item = self._items.number(hash((task, sample.question)))
        self._categories[task] = sample.category
        # A group is one line of a file; in samples of evaluations, equal items.
        line, dot, _ = str(row.get("place", "")).rpartition(".")
        place = hash((row.get("source"), line)) if dot else None
        values = {
            "run": number,
            "task": task,
            "item": item,
            "outcome": self._outcomes.number(sample.outcome),
            "group": self._groups.number((number, item, place)),
            "score": UNKNOWN if sample.score is None else sample.score,
            "right": sample.is_right if is_scored else UNKNOWN,
            "answered": sample.is_answered if is_scored else UNKNOWN,
            "truncated": sample.is_truncated if row.get("finish_reason") else UNKNOWN,
            "level": _number(row.get("level")),
            "step": _number(row.get("step")),
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

    def overview(self, names: Mapping[run_names.Place, str]) -> Numbers:
        """Return what the page shows before anything is chosen.

        Args:
            names: Of the places of runs.
        """
        unit = "characters" if UNKNOWN in self._columns["tokens"] else "tokens"
        self._columns["length"] = self._columns[unit]
        k, parts = self._add_groups_and_items(), self._parts()
        self._members: defaultdict[Place, list[int]] = defaultdict(list)
        for i, run in enumerate(self._columns["run"]):
            for place in product((run, ALL), (*parts[i], ALL)):
                self._members[place].append(i)
        self._scores = {
            place: self._estimate(of, "score") for place, of in self._members.items()
        }
        runs = [
            {"name": _named(names[at], model), **self._run(number)}
            for (at, model), number in self._runs.by_name.items()
        ]
        tasks = self._tasks.by_name.items()
        return {
            "samples": len(self),
            "unit": unit,
            "k": k,
            "tasks": [[name, self._categories[number]] for name, number in tasks],
            "parts": [*self._others.by_name],
            "outcomes": [[w, OUTCOMES.get(w, "")] for w in self._outcomes.by_name],
            "figures": ["samples", *FIGURES, "low", "high"],
            "totals": self._rows(is_total=True),
            "matrix": self._matrix(),
            "differences": self._differences() if len(self._runs) == 2 else [],
            "runs": runs,
            "all": runs[0] if len(runs) == 1 else self._run(ALL),
            "versions": list(self._versions.by_name),
        }

    def _parts(self) -> list[list[int]]:
        """Return the parts of each sample; categories and levels follow the tasks.

        A level is named by its lowest and its highest value.
        """
        self._others = Numbering()
        first, column = len(self._tasks), self._columns["level"]
        for name in sorted({*self._categories.values()}):
            self._others.number(("category", name))
        levels = sorted({*column} - {UNKNOWN})
        if len(levels) > MOST_LEVELS:
            # 1 - 0.9 is a little less than 0.1.
            tenths = {level: min(9, int(level * 10 + 1e-9)) for level in levels}
            ends = {level: (k / 10, (k + 1) / 10) for level, k in tenths.items()}
        else:
            ends = {level: (level, level) for level in levels}
        numbers = {v: self._others.number(("level", *ends[v])) + first for v in levels}
        found = [[int(task)] for task in self._columns["task"]]
        for of, level in zip(found, column, strict=True):
            if category := self._categories.get(of[0]):
                of.append(self._others.number(("category", category)) + first)
            of += [numbers[level]] if level in numbers else []
        return found

    def _add_groups_and_items(self) -> int:
        """Make the columns `pass` and `variance`; return k of pass@k."""
        of = self._columns
        groups: defaultdict[float, list[int]] = defaultdict(list)
        items: defaultdict[Place, list[int]] = defaultdict(list)
        for i, group in enumerate(of["group"]):
            if of["score"][i] != UNKNOWN:
                groups[group].append(i)
                items[of["run"][i], of["item"][i]].append(i)
        for name in ("pass", "variance"):
            of[name] = array("d", [UNKNOWN]) * len(self)
        for those in groups.values():
            if len(those) > 1:
                scores = [of["score"][i] for i in those]
                of["variance"][those[0]] = has_variance(scores)
        # As many as every run has of most of its items.
        sizes: defaultdict[float, list[int]] = defaultdict(list)
        for (run, _), those in items.items():
            sizes[run].append(len(those))
        k = min((k for k in map(statistics.mode, sizes.values()) if k > 1), default=1)
        for those in items.values():
            if len(those) >= k > 1:
                of["pass"][those[0]] = best_of([of["right"][i] for i in those], k)
        return k

    def _of(self, members: Iterable[int], *names: str) -> list[list[float]]:
        """Return columns of those samples that have a value in the first of them."""
        first, others = self._columns[names[0]], (self._columns[n] for n in names)
        known = [i for i in members if first[i] != UNKNOWN]
        return [[*map(column.__getitem__, known)] for column in others]

    def _mean(self, members: Iterable[int], name: str) -> float:
        (values,) = self._of(members, name)
        return math.fsum(values) / len(values) if values else UNKNOWN

    def _estimate(self, members: Iterable[int], name: str) -> Estimate | None:
        """Return the mean of a figure of some samples, None where none has it."""
        values, *like = self._of(members, name, "item", "task")
        if not values:
            return None
        if name == "length":
            return difference(values, *like, within=(0.0, math.inf))
        return estimate(values, *like)

    def _rows(self, *, is_total: bool) -> list[list[float | int]]:
        """Return run, part, figures and interval of the totals, or of all else."""
        return [
            [
                *map(_short, place),
                len(self._members[place]),
                *(_short(self._mean(self._members[place], name)) for name in FIGURES),
                *(_ends(score) if score else (UNKNOWN, UNKNOWN)),
            ]
            for place, score in self._scores.items()
            if is_total == (place[0] == ALL) and place[1] != ALL
        ]

    def _matrix(self) -> list[list[Any]]:
        """Return score, low and high of each part of each run, in thousandths.

        There is none of two runs, and none of so many that it would be a large file.
        """
        runs, parts = len(self._runs), len(self._tasks) + len(self._others)
        if runs < 3 or runs * parts > MOST_CELLS:
            return []
        return [
            [_thousandths(self._scores.get((run, part))) for part in range(parts)]
            for run in range(runs)
        ]

    def _differences(self) -> list[list[float | int]]:
        """Return of each part the second run less the first one, on shared items.

        Shape (P, 5): part, mean, low, high, items.
        """
        found = []
        for part in (ALL, *range(len(self._tasks) + len(self._others))):
            pair = (self._members.get((run, part), []) for run in (0, 1))
            if it := paired_means(*map(self._item_means, pair)).by_item:
                numbers = (part, it.mean, it.low, it.high, it.samples)
                found.append([*map(_short, numbers)])
        return found

    def _item_means(self, members: Iterable[int]) -> Mapping[Hashable, float]:
        scores, tasks, items = self._of(members, "score", "task", "item")
        return item_means(zip(zip(tasks, items, strict=True), scores, strict=True))

    def _run(self, run: int) -> Numbers:
        """Return the numbers of a run, or of all, with their intervals."""
        members = self._members[run, ALL]
        words, items, tasks = self._of(members, "outcome", "item", "task")
        counts = Counter(words)
        shares = {w: estimate([v == w for v in words], items, tasks) for w in counts}
        found = [self._estimate(members, name) for name in FIGURES]
        return {
            "samples": len(members),
            "items": len({*items}),
            "figures": [it and [_short(it.mean), *_ends(it)] for it in found],
            "outcomes": {int(k): [counts[k], *_ends(of)] for k, of in shares.items()},
            "histograms": {
                name: self._histogram(members, name)
                for name in ("score", "level", "length")
            },
        }

    def _histogram(self, members: Sequence[int], name: str) -> list[int]:
        """Return how many samples are in each bin."""
        (values,) = self._of(members, name)
        counts = Counter(
            int(2 * math.log2(max(1.0, value)))
            if name == "length"
            else int(value * BINS + 1e-9)
            for value in values
        )
        return [counts[k] for k in range(max(counts, default=-1) + 1)]

    def cells(self) -> list[list[float | int]]:
        """Return run, part and figures of every part of a run; after the overview."""
        return self._rows(is_total=False)

    def columns(self) -> Mapping[str, Sequence[Any]]:
        """Return the columns of all samples, which the reader filters."""
        whole = ("run", "task", "item", "outcome")
        parts = ("score", "level", "step", "length")
        return {
            **{name: list(map(int, self._columns[name])) for name in whole},
            **{
                name: [None if v == UNKNOWN else _short(v) for v in self._columns[name]]
                for name in parts
            },
            "preview": self._previews,
        }
