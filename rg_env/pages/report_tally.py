"""The numbers of the report. Of each sample only a few values are kept, and no text."""

from __future__ import annotations

import math
from array import array
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import product
from typing import Any

from rg_env.evaluation.samples import Sample
from rg_env.evaluation.statistics import best_of, difference, estimate
from rg_env.pages import run_names
from rg_env.reports.outcome_words import OUTCOMES

PREVIEW_CHARS = 48
BINS = 20
"""Of a histogram of scores or levels; lengths have one for half a power of two."""

COLUMNS: tuple[str, ...]
COLUMNS = ("samples", "scored", "right", "answered", "score", "length", "levels")
COLUMNS += ("level", "ends", "truncated", "groups", "varied", "items", "passed")
"""What is summed up by run and part; `ends` counts the samples of which it is known why
they ended, `groups` those of several scores, `varied` those whose scores differ,
`items` those with k completions, and `passed` adds up their pass@k."""

MOST_LEVELS = 12
"""That are parts of their own; where there are more, a part is a tenth of the scale."""

MOST_CELLS = 4_000
"""Of the matrix of runs and parts that is read before a click."""

UNKNOWN = -1.0
ALL = -1
"""Stands for all runs, or all parts."""

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

    def overview(self, names: Mapping[run_names.Place, str]) -> Numbers:
        """Return what the page shows before anything is chosen.

        Args:
            names: Of the places of runs.
        """
        self._unit = "characters" if UNKNOWN in self._columns["tokens"] else "tokens"
        self._columns["length"] = self._columns[self._unit]
        self._derive()
        parts = self._parts()
        self._members: defaultdict[Place, list[int]] = defaultdict(list)
        for i, run in enumerate(self._columns["run"]):
            for place in product((run, ALL), (*parts[i], ALL)):
                self._members[place].append(i)
        self._means = {place: self._mean(of) for place, of in self._members.items()}
        tasks = self._tasks.by_name.items()
        return {
            "samples": len(self),
            "unit": self._unit,
            "k": self._k,
            "tasks": [[name, self._categories.get(k, "")] for name, k in tasks],
            "parts": [*self._others.by_name],
            "outcomes": [[w, OUTCOMES.get(w, "")] for w in self._outcomes.by_name],
            "columns": [*COLUMNS, "low", "high"],
            "totals": self._rows(is_total=True),
            "matrix": self._matrix(),
            "differences": self._differences() if len(self._runs) == 2 else [],
            "runs": [
                {
                    "name": _named(names[place], model),
                    **self._run(self._members[k, ALL]),
                }
                for (place, model), k in self._runs.by_name.items()
            ],
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

    def _derive(self) -> None:
        """Make the columns that are summed up of those that were told.

        What is of a group, or of an item of a run, stands at its first sample.
        """
        of, size = self._columns, len(self)
        right, score = self._outcomes.number("right"), of["score"]
        of["samples"] = array("d", [1]) * size
        of["scored"] = array("d", (v != UNKNOWN for v in score))
        for name, key in (("levels", "level"), ("ends", "truncated")):
            of[name] = array("d", (v != UNKNOWN for v in of[key]))
        is_right = array("d", (outcome == right for outcome in of["outcome"]))
        of["right"] = array("d", map(min, is_right, of["scored"]))
        of["answered"] = array("d", map(min, of["answered"], of["scored"]))
        for name in ("groups", "varied", "items", "passed"):
            of[name] = array("d", [0]) * size
        groups: defaultdict[Hashable, list[int]] = defaultdict(list)
        items: defaultdict[Place, list[int]] = defaultdict(list)
        for i, group in enumerate(of["group"]):
            if of["scored"][i]:
                groups[group].append(i)
                items[of["run"][i], of["item"][i]].append(i)
        for those in groups.values():
            scores = [score[i] for i in those]
            of["groups"][those[0]] = len(those) > 1
            of["varied"][those[0]] = max(scores) - min(scores) > 1e-9
        sizes: defaultdict[Any, Counter[int]] = defaultdict(Counter)
        for (run, _), those in items.items():
            sizes[run][len(those)] += 1
        # As many as every run has of most of its items.
        usual = [of.most_common(1)[0][0] for of in sizes.values()]
        self._k = min((k for k in usual if k > 1), default=1)
        for those in items.values():
            if len(those) >= self._k > 1:
                of["items"][those[0]] = 1
                rights = [of["right"][i] for i in those]
                of["passed"][those[0]] = best_of(rights, self._k)

        self._summed = [array("d", (max(0, v) for v in of[name])) for name in COLUMNS]

    def _rows(self, *, is_total: bool) -> list[list[float | int]]:
        """Return run, part, sums and interval of the totals, or of all else."""
        return [
            [
                *map(_short, place),
                *(_short(sum(map(of.__getitem__, members))) for of in self._summed),
                *map(_short, (self._means[place] or (UNKNOWN,) * 3)[1:]),
            ]
            for place, members in self._members.items()
            if is_total == (ALL in place)
        ]

    def _matrix(self) -> list[list[Any]]:
        """Return mean, low and high of each part of each run, in thousandths.

        There is none of two runs, and none of so many that it would be a large file.
        """
        runs, parts = len(self._runs), len(self._tasks) + len(self._others)
        if runs < 3 or runs * parts > MOST_CELLS:
            return []
        means = [
            [self._means.get((run, part)) for part in range(parts)]
            for run in range(runs)
        ]
        return [
            # A score of less than 1 does not become one of 1.
            [
                mean and [min(round(1000 * v), 999 + (v >= 1)) for v in mean]
                for mean in of
            ]
            for of in means
        ]

    def _differences(self) -> list[list[float | int]]:
        """Return of each part the second run less the first one, on shared items.

        Shape (P, 5): part, mean, low, high, items.
        """
        found = []
        for part in (ALL, *range(len(self._tasks) + len(self._others))):
            first, second = (
                self._item_means(self._members.get((run, part), [])) for run in (0, 1)
            )
            both = [item for item in first if item in second]
            if both:
                values = [second[item] - first[item] for item in both]
                it = difference(values, both, [task for task, _ in both])
                numbers = (part, it.mean, it.low, it.high, it.samples)
                found.append([*map(_short, numbers)])
        return found

    def _item_means(self, members: Sequence[int]) -> dict[Place, float]:
        of: defaultdict[Place, list[float]] = defaultdict(list)
        for i in members:
            if self._columns["scored"][i]:
                item = self._columns["task"][i], self._columns["item"][i]
                of[item].append(self._columns["score"][i])
        return {item: math.fsum(scores) / len(scores) for item, scores in of.items()}

    def _mean(self, members: Sequence[int]) -> tuple[float, float, float] | None:
        """Return the mean score of some samples and its interval, if any has one."""
        scored = [i for i in members if self._columns["scored"][i]]
        if not scored:
            return None
        names = ("score", "item", "task")
        found = estimate(*([self._columns[n][i] for i in scored] for n in names))
        return found.mean, found.low, found.high

    def _run(self, members: Sequence[int]) -> Numbers:
        outcomes = Counter(self._columns["outcome"][i] for i in members)
        return {
            "items": len({self._columns["item"][i] for i in members}),
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
        """Return run, part and sums of every part of a run; after the overview."""
        return self._rows(is_total=False)

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
