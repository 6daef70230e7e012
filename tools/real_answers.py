"""The rewards against the published answers of models.

    python reasoning_gym_environment.py rescore CHECKOUT --out scores.jsonl
    python -m tools.real_answers scores.jsonl

CHECKOUT is one of https://github.com/open-thought/reasoning-gym-eval. The completions
that `rescore` has scored are judged without a scorer, in worker processes: compared
with the library's own answer or played, by `tools/answer_texts/surely_wrong.py`, or by
a truth table. They are judged as they stand and as our normalization reads them.
Printed are the numbers of `docs/reward_audits.md`, and for each task with a notation
what the answers that it changes score without it. `tools/published_models.py` compares
the models.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import io
import itertools
import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

from rg_env import logs, shutdown
from rg_env.library import datasets, worker_jobs
from rg_env.results.samples import Sample, grouped, sample_of
from rg_env.results.terminal import WorkProgress
from rg_env.reward.score import ScoringRules
from rg_env.task_rules import table
from rg_env.task_rules.reading.formulas import as_formula, read_formula
from rg_env.workers.pool_errors import PoolError
from rg_env.workers.worker_pool import WorkerPool
from tools.answer_texts.sampled_items import DEFAULTS, SampledItem, right_answer
from tools.answer_texts.surely_wrong import is_wrong

ITEM_DEADLINE_S, ANSWER_DEADLINE_S = 60.0, 10.0
ITEMS_AT_ONCE = 8
FULL = 1.0 - 1e-9
LEAST_RIGHT, MOST_WRONG = 0.995, 0.001
Lines = Iterable[str]
Job = Callable[..., list[Any]]


def _follows(entry: Mapping[str, Any], answer: str) -> bool:
    letters = entry["metadata"]["variables"]
    read = [read_formula(text, letters) for text in entry["metadata"]["premises"]]
    formula = read_formula(as_formula(answer, entry), letters)
    every = known = (1 << (1 << len(letters))) - 1
    for premise in read:
        known &= premise.rows if premise else every
    return bool(formula and formula.rows != every and not known & ~formula.rows)


def _entry(task: str, config: str, question: str, gold: Any) -> dict[str, Any]:
    made = datasets.dataset_entries(task, config)
    same = [e for e in made if e is not None and e["question"] == question]
    # Items of one question may have several reference answers.
    return next((e for e in same if e["answer"] == gold), same[0])


def without_notation(
    task: str, config: str, question: str, gold: Any, answers: Sequence[str]
) -> list[float | None]:
    """Score answers without the notation of their task; None where it changes none."""
    params, rules = json.loads(config), ScoringRules()
    with contextlib.redirect_stdout(io.StringIO()):
        entry = _entry(task, config, question, gold)
        written = list(map(rules.normalizer(task, entry), answers))
        bare = dataclasses.replace(table.rules_of(task), notation=None)
        with mock.patch.dict(table.TABLE, {task: bare}):
            plain = list(map(rules.normalizer(task, entry), answers))
            del params["seed"], params["size"]
            rows = worker_jobs.score_answers(task, params, entry, answers, rules)
    columns = zip(written, plain, rows, strict=True)
    return [None if w == p else row[0] for w, p, row in columns]


def verdicts(
    task: str, config: str, question: str, gold: Any, answers: Sequence[str]
) -> list[bool | None]:
    """Say of answers to one item whether they are right; the job of a worker."""
    with contextlib.redirect_stdout(io.StringIO()):
        entry = _entry(task, config, question, gold)
        right = right_answer(task, entry)
        normalized = ScoringRules().normalizer(task, entry)

        def is_right(answer: str) -> bool | None:
            if task == "propositional_logic":
                return _follows(entry, answer)
            if right is None:
                return None
            wrong = is_wrong(SampledItem(task, DEFAULTS, 0, {}, entry, right), answer)
            return None if wrong is None else not wrong

        said = [{is_right(a), is_right(normalized(a))} for a in answers]
    return [True if True in both else None if None in both else False for both in said]


async def _of_item(
    pool: WorkerPool, job: Job, which: Any, answers: list[str]
) -> list[Any]:
    """Do a job for the answers to an item together, alone where they take too long."""
    limit_s = ITEM_DEADLINE_S if len(answers) > 1 else ANSWER_DEADLINE_S
    try:
        return await pool.run(job, *which, answers, deadline_s=limit_s)
    except PoolError:
        if len(answers) == 1:
            return [None]
    return [(await _of_item(pool, job, which, [answer]))[0] for answer in answers]


async def judged(pool: WorkerPool, samples: Iterable[Sample]) -> list[Sample]:
    """Return the samples of `slim` that hold an answer, with what is known of it.

    `row["right"]` is the verdict, `row["without"]` the score of `without_notation`.
    """
    places = asyncio.Semaphore(ITEMS_AT_ONCE)

    def key(s: Sample) -> tuple[Any, ...]:
        return s.task, s.row["config"], s.question, json.dumps(s.row["gold_answer"])

    async def one(item: Any, of_item: Sequence[Sample]) -> list[Sample]:
        answers = list(dict.fromkeys(s.row["answer"] for s in of_item))
        which = (*item[:3], json.loads(item[3]))
        async with places:
            right = await _of_item(pool, verdicts, which, answers)
            without = await _of_item(pool, without_notation, which, answers)
        progress.advance()
        known = {
            answer: {"right": is_right, "without": score}
            for answer, is_right, score in zip(answers, right, without, strict=True)
        }
        rows = ({**s.row, **known[s.row["answer"]]} for s in of_item)
        pairs = zip(of_item, rows, strict=True)
        return [dataclasses.replace(s, row=row) for s, row in pairs]

    items = grouped((s for s in samples if s.is_answered), key)
    with WorkProgress("judge", len(items), "items") as progress:
        done = await asyncio.gather(*(one(*item) for item in items.items()))
    return list(itertools.chain.from_iterable(done))


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


def judgement(samples: Sequence[Sample]) -> Lines:
    """Yield how answers that are right or wrong by the judge are scored."""
    rows: list[Any] = []
    for task, those in [("all", samples), *_by_task(samples)]:
        by = Counter((s.row["right"], s.row["scores"]["ours"] >= FULL) for s in those)
        too_low, too_high = by[True, False], by[False, True]
        right, wrong = too_low + by[True, True], too_high + by[False, False]
        is_off = too_low > (1 - LEAST_RIGHT) * right or too_high > MOST_WRONG * wrong
        if task == "all" or is_off or not right + wrong:
            unknown = len(those) - right - wrong
            rows.append((task, right, too_low, wrong, too_high, unknown))
    yield f"Tasks below {LEAST_RIGHT} or above {MOST_WRONG}, or with nothing known:"
    yield from _table("task, right, not in full, wrong, in full, unknown", rows)


def notations(samples: Sequence[Sample]) -> Lines:
    """Yield what each task's notation changes, and what would change without it."""
    rows: list[Any] = []
    for task, those in _by_task(samples):
        changed = [s for s in those if s.row["without"] is not None]
        paid = [s for s in changed if s.row["scores"]["ours"] >= FULL]
        saved = Counter(s.row["right"] for s in paid if s.row["without"] < FULL)
        right = sum(s.row["right"] is True for s in those)
        if changed:
            rows.append((task, right, len(changed), saved[True], saved[False]))
    heads = "task, right, changed by its notation, right ones lost without, wrong ones"
    yield from _table(heads, rows)


def main() -> int:
    logs.set_levels(False, quiet_framework=True)
    with Path(sys.argv[1]).open("rb") as lines:
        samples = [slim(json.loads(line)) for line in lines]
    # A worker may read none of our files, so it is forked with all that it needs.
    preload = (*worker_jobs.PRELOAD, "tools.real_answers")
    with contextlib.closing(WorkerPool(os.cpu_count() or 1, preload=preload)) as pool:
        samples = shutdown.run(judged(pool, samples))
    print("## Judged\n", *judgement(samples), sep="\n")
    print("## Notations\n", *notations(samples), sep="\n")
    return 0


if __name__ == "__main__":
    from tools import real_answers  # the name by which workers know `verdicts`

    sys.exit(real_answers.main())
