"""The rewards against the published answers of models.

    python reasoning_gym_environment.py rescore CHECKOUT --out scores.jsonl
    python -m tools.real_answers scores.jsonl

CHECKOUT is one of https://github.com/open-thought/reasoning-gym-eval. The completions
that `rescore` has scored are judged without a scorer, in worker processes: compared
with the library's own answer or played, by `tools/answer_texts/surely_wrong.py`, or by
a truth table. They are judged as they stand and as our normalization reads them.
Printed are the numbers of `docs/reward_audits.md`. `tools/published_models.py` compares
the models.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import polars as pl

from rg_env import logs, shutdown
from rg_env.library import datasets, worker_jobs
from rg_env.results.samples import sample_of
from rg_env.results.terminal import WorkProgress
from rg_env.reward.score import ScoringRules
from rg_env.task_rules.reading.formulas import as_formula, read_formula
from rg_env.task_rules.rules import Entry
from rg_env.workers.call import PoolError
from rg_env.workers.worker_pool import WorkerPool
from tools.answer_texts.sampled_items import SampledItem, right_answer
from tools.answer_texts.surely_wrong import is_wrong
from tools.tables import markdown

ITEM_DEADLINE_S, ANSWER_DEADLINE_S = 60.0, 10.0
ITEMS_AT_ONCE = 8
MIN_RIGHT, MAX_WRONG = 0.995, 0.001

ITEM = ("task", "config", "question", "gold")
RIGHT = pl.col("right")
IN_FULL = 1.0 - 1e-9
IS_PAID = pl.col("ours") >= IN_FULL


def _follows(entry: Entry, answer: str) -> bool:
    letters = entry["metadata"]["variables"]
    read = [read_formula(text, letters) for text in entry["metadata"]["premises"]]
    formula = read_formula(as_formula(answer, entry), letters)
    every = known = (1 << (1 << len(letters))) - 1
    for premise in read:
        known &= premise.rows if premise else every
    return bool(formula and formula.rows != every and not known & ~formula.rows)


def verdicts(task: str, entry: Entry, answers: Sequence[str]) -> list[bool | None]:
    """Say of answers to one item whether they are right; None where nobody knows."""
    right = right_answer(task, entry)
    normalized = ScoringRules().build_normalizer(task, entry)

    def is_right(answer: str) -> bool | None:
        if task == "propositional_logic":
            return _follows(entry, answer)
        if right is None:
            return None
        wrong = is_wrong(SampledItem(task, 0, {}, entry, right), answer)
        return None if wrong is None else not wrong

    said = [{is_right(a), is_right(normalized(a))} for a in answers]
    return [True if True in both else None if None in both else False for both in said]


def judge(
    task: str, config: str, question: str, gold: str, answers: Sequence[str]
) -> list[bool | None]:
    """Return the verdicts on answers to one item; the job of a worker."""
    with contextlib.redirect_stdout(io.StringIO()):
        made = datasets.dataset_entries(task, config)
        same = [e for e in made if e is not None and e["question"] == question]
        # Items of one question may have several reference answers.
        entry = next((e for e in same if e["answer"] == json.loads(gold)), same[0])
        return verdicts(task, entry, answers)


async def _of_item(
    pool: WorkerPool, item: Sequence[str], answers: Sequence[str]
) -> list[bool | None]:
    """Judge the answers to an item together, alone where they take too long."""
    limit_s = ITEM_DEADLINE_S if len(answers) > 1 else ANSWER_DEADLINE_S
    try:
        return await pool.run(judge, *item, answers, deadline_s=limit_s)
    except PoolError:
        if len(answers) == 1:
            return [None]
    return [(await _of_item(pool, item, [answer]))[0] for answer in answers]


async def judged(pool: WorkerPool, answers: pl.DataFrame) -> pl.DataFrame:
    """Return the table of `read` with a verdict on each answer."""
    places = asyncio.Semaphore(ITEMS_AT_ONCE)
    texts = pl.col("answer").unique(maintain_order=True)
    items = answers.group_by(ITEM, maintain_order=True).agg(texts)

    async def verdicts_on(*item: str, answers: Sequence[str]) -> list[bool | None]:
        async with places:
            found = await _of_item(pool, item, answers)
        progress.advance()
        return found

    with WorkProgress("judge", len(items), "items") as progress:
        jobs = [verdicts_on(*item, answers=texts) for *item, texts in items.rows()]
        right = pl.Series(await asyncio.gather(*jobs), dtype=pl.List(pl.Boolean))
    known = items.with_columns(right=right).explode("answer", "right")
    return answers.join(known, on=[*ITEM, "answer"])


def read(lines: Iterable[bytes]) -> pl.DataFrame:
    """Return the lines of `rescore` that hold an answer, with what the tables need."""
    answered = (r for r in map(json.loads, lines) if sample_of(r).is_answered)
    return pl.DataFrame(
        {
            "task": row["task"],
            "config": json.dumps(row["dataset"], sort_keys=True),
            "question": row["question"],
            "gold": json.dumps(row["gold_answer"]),
            "answer": row["answer"],
            "ours": row["scores"]["ours"],
        }
        for row in answered
    )


def judgement(answers: pl.DataFrame) -> pl.DataFrame:
    """Return how answers that are right or wrong by the judge are scored."""
    counts = {
        "right": RIGHT.sum(),
        "not in full": (RIGHT & ~IS_PAID).sum(),
        "wrong": (~RIGHT).sum(),
        "in full": (~RIGHT & IS_PAID).sum(),
        "unknown": RIGHT.null_count(),
    }
    by_task = answers.group_by("task").agg(**counts).sort("task")
    wrong = pl.col("wrong")
    off = by_task.filter(
        (pl.col("not in full") > (1 - MIN_RIGHT) * RIGHT)
        | (pl.col("in full") > MAX_WRONG * wrong)
        | (RIGHT + wrong == 0)
    )
    return pl.concat([answers.select(task=pl.lit("all"), **counts), off])


def main() -> int:
    logs.set_levels(False, quiet_framework=True)
    with Path(sys.argv[1]).open("rb") as lines:
        answers = read(lines)
    # A worker may read none of our files, so it is forked with all that it needs.
    preload = (*worker_jobs.PRELOAD, "tools.real_answers")
    with contextlib.closing(WorkerPool(os.cpu_count() or 1, preload=preload)) as pool:
        answers = shutdown.run(judged(pool, answers))
    off = f"Tasks below {MIN_RIGHT} or above {MAX_WRONG}, or with nothing known"
    print(markdown({off: judgement(answers)}))
    return 0


if __name__ == "__main__":
    from tools import real_answers  # the name by which workers know `judge`

    sys.exit(real_answers.main())
