"""The rewards against the published answers of models.

    python reasoning_gym_environment.py rescore CHECKOUT --out scores.jsonl
    python -m tools.real_answers scores.jsonl [--tasks gcd,dice]

CHECKOUT is one of https://github.com/open-thought/reasoning-gym-eval. The completions
that `rescore` has scored are judged by `judge.py`. Printed are the tables of
`docs/reward_audits.md`. `compare scores.jsonl --score ours` ranks the models.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import os
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rg_env import ending, logs
from rg_env.library import worker_jobs
from rg_env.results.samples import Sample, grouped, sample_of
from rg_env.workers.worker_pool import WorkerPool
from tools.real_answers.judge import judged, verdicts

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


def _by_task(samples: Iterable[Sample]) -> list[tuple[str, list[Sample]]]:
    groups = grouped(samples, lambda s: str(s.row["task"]))
    return sorted((str(key), those) for key, those in groups.items())


def _cause(sample: Sample) -> str:
    by_fix, by_both = (sample.row["scores"][n] for n in ("fixes", "ours"))
    is_fix = abs(by_fix - sample.row["scores"]["library"]) >= abs(by_both - by_fix)
    return "fix" if is_fix else "normalization"


def differences(samples: Sequence[Sample]) -> Lines:
    """Yield where the library's score and ours are 0.5 or more apart."""
    for more, less in (("library", "ours"), ("ours", "library")):
        there = [(s.row["scores"], s) for s in samples if s.is_answered]
        off = [s for of, s in there if of[more] - of[less] > 0.5 - 1e-9]
        yield f"{more} scores 0.5 more: {len(off)} of {len(there)} answers"
        rows: list[Any] = []
        for task, of_task in _by_task(off):
            for cause, those in grouped(of_task, _cause).items():
                by = Counter(s.row["right"] for s in those)
                rows.append((task, cause, len(those), by[True], by[False], by[None]))
        yield from _table("task, by, answers, right, wrong, unknown", rows)


def judgement(samples: Sequence[Sample]) -> Lines:
    """Yield how answers that are right or wrong by the judge are scored."""
    answered = [s for s in samples if s.is_answered]
    for name in ("library", "ours"):
        full = sum(s.row["scores"][name] >= FULL for s in answered)
        yield f"in full with {name}: {full} of {len(answered)} answers"
    rows: list[Any] = []
    for task, those in [("all", answered), *_by_task(answered)]:
        by = Counter((s.row["right"], s.row["scores"]["ours"] >= FULL) for s in those)
        too_low, too_high = by[True, False], by[False, True]
        right, wrong = too_low + by[True, True], too_high + by[False, False]
        is_off = too_low > (1 - LEAST_RIGHT) * right or too_high > MOST_WRONG * wrong
        if task == "all" or is_off or not right + wrong:
            unknown = len(those) - right - wrong
            rows.append((task, right, too_low, wrong, too_high, unknown))
    yield f"Tasks below {LEAST_RIGHT} or above {MOST_WRONG}, or with nothing known:"
    yield from _table("task, right, not in full, wrong, in full, unknown", rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("file", type=Path, help="which `rescore --out` has written")
    parser.add_argument("--tasks", help="only these, with commas between")
    options = parser.parse_args()
    logs.set_levels(False, quiet_framework=True)
    tasks = options.tasks.split(",") if options.tasks else None
    with options.file.open("rb") as lines:
        rows = map(json.loads, lines)
        samples = [slim(row) for row in rows if not tasks or row["task"] in tasks]
    # A worker may read none of our files, so it is forked with all that it needs.
    preload = (*worker_jobs.PRELOAD, verdicts.__module__)
    with contextlib.closing(WorkerPool(os.cpu_count() or 1, preload=preload)) as pool:
        samples = ending.run(judged(pool, samples))
    print("## Differences\n", *differences(samples), sep="\n")
    print("## Judged\n", *judgement(samples), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
