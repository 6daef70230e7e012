"""The tables of `docs/reward_audits.md`, of samples that were scored again. Pure."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rg_env.evaluation.samples import Sample, grouped, sample_of

FULL = 1.0 - 1e-9
LEAST_RIGHT, MOST_WRONG = 0.995, 0.001
Lines = Iterable[str]


def slim(row: Mapping[str, Any]) -> Sample:
    """Return a line of the file of `rescore` with what the tables need."""
    kept = {name: row.get(name) for name in ("task", "answer", "gold_answer", "scores")}
    kept["config"] = sys.intern(json.dumps(row["dataset"], sort_keys=True))
    sample = dataclasses.replace(sample_of(row), row=kept)
    return dataclasses.replace(sample, question=sys.intern(sample.question))


def _table(headings: str, rows: Iterable[Iterable[Any]]) -> Lines:
    yield f"\n| {headings.replace(', ', ' | ')} |"
    yield "|---|" + "--:|" * headings.count(",")
    yield from (f"| {' | '.join(map(str, row))} |" for row in rows)
    yield ""


def _by(samples: Iterable[Sample], name: str) -> list[tuple[str, list[Sample]]]:
    groups = grouped(samples, lambda s: str(s.row[name]))
    return sorted((str(key), those) for key, those in groups.items())


def _examples(title: str, samples: Sequence[Sample], most: int) -> Lines:
    texts = Counter((s.row["answer"], str(s.row["gold_answer"])) for s in samples)
    yield from [f"{title}: {len(samples)}"][: most * len(texts)]
    for (answer, gold), number in texts.most_common(most):
        yield f"    {number} x {answer[:60]!r} for {gold[:60]!r}"


def _cause(sample: Sample) -> str:
    by_fix, by_both = (sample.row["scores"][n] for n in ("fixes", "ours"))
    is_fix = abs(by_fix - sample.row["scores"]["library"]) >= abs(by_both - by_fix)
    return "fix" if is_fix else "normalization"


def differences(samples: Sequence[Sample], examples: int) -> Lines:
    """Yield where the library's score and ours are 0.5 or more apart."""
    for more, less in (("library", "ours"), ("ours", "library")):
        there = [(s.row["scores"], s) for s in samples if s.is_answered]
        off = [s for of, s in there if of[more] - of[less] > 0.5 - 1e-9]
        yield f"{more} scores 0.5 more: {len(off)} of {len(there)} answers"
        rows: list[Any] = []
        texts: list[str] = []
        for task, of_task in _by(off, "task"):
            for cause, those in grouped(of_task, _cause).items():
                found = Counter(s.row["right"] for s in those)
                said = (found[True], found[False], found[None])
                rows.append((task, cause, len(those), *said))
                texts += _examples(f"{task} by {cause}", those, examples)
        yield from _table("task, by, answers, right, wrong, unknown", rows)
        yield from texts


def judgement(samples: Sequence[Sample], examples: int) -> Lines:
    """Yield how answers that are right or wrong by the judge are scored."""
    answered = [s for s in samples if s.is_answered]
    for name in ("library", "ours"):
        full = sum(s.row["scores"][name] >= FULL for s in answered)
        yield f"in full with {name}: {full} of {len(answered)} answers"
    rows: list[Any] = []
    texts: list[str] = []
    for task, those in [("all", answered), *_by(answered, "task")]:
        by = grouped(those, lambda s: (s.row["right"], s.row["scores"]["ours"] >= FULL))
        too_low, too_high = by.get((True, False), []), by.get((False, True), [])
        right = len(too_low) + len(by.get((True, True), []))
        wrong = len(too_high) + len(by.get((False, False), []))
        is_off = len(too_low) > (1 - LEAST_RIGHT) * right
        is_off |= len(too_high) > MOST_WRONG * wrong or not right + wrong
        if task == "all" or is_off:
            unknown = len(those) - right - wrong
            rows.append((task, right, len(too_low), wrong, len(too_high), unknown))
        most = examples * (task != "all")
        texts += _examples(f"{task} right, not in full", too_low, most)
        texts += _examples(f"{task} wrong, in full", too_high, most)
    yield f"Tasks below {LEAST_RIGHT} or above {MOST_WRONG}, or with nothing known:"
    yield from _table("task, right, not in full, wrong, in full, unknown", rows)
    yield from texts
