"""Whether published answers are right, told without a scorer, in worker processes.

An answer is compared with the library's own or played, by
`tools/answer_texts/surely_wrong.py`; a conclusion is told by a truth table. It is
judged as it stands and as our normalization reads it. None: nobody tells here.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

from rg_env.library import datasets
from rg_env.results.samples import Sample, grouped
from rg_env.results.terminal import WorkProgress
from rg_env.reward.score import ScoringRules
from rg_env.task_rules.reading.formulas import as_formula, read_formula
from rg_env.workers.pool_errors import PoolError
from rg_env.workers.worker_pool import WorkerPool
from tools.answer_texts.right_answers import right_answer
from tools.answer_texts.sampled_items import DEFAULTS, SampledItem
from tools.answer_texts.surely_wrong import is_wrong

ITEM_DEADLINE_S, ANSWER_DEADLINE_S = 60.0, 10.0
ITEMS_AT_ONCE = 8


def _follows(entry: Mapping[str, Any], answer: str) -> bool:
    letters = entry["metadata"]["variables"]
    read = [read_formula(text, letters) for text in entry["metadata"]["premises"]]
    formula = read_formula(as_formula(answer, entry), letters)
    every = known = (1 << (1 << len(letters))) - 1
    for premise in read:
        known &= premise.rows if premise else every
    return bool(formula and formula.rows != every and not known & ~formula.rows)


def verdicts(
    task: str, config: str, question: str, gold: Any, answers: Sequence[str]
) -> list[bool | None]:
    """Say of answers to one item whether they are right; the job of a worker."""
    with contextlib.redirect_stdout(io.StringIO()):
        made = datasets.dataset_entries(task, config)
        same = [e for e in made if e is not None and e["question"] == question]
        # Items of one question may have several reference answers.
        entry = next((e for e in same if e["answer"] == gold), same[0])
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


async def _of_item(pool: WorkerPool, which: Any, answers: list[str]) -> list[Any]:
    """Judge the answers to an item together, and alone where they take too long."""
    limit_s = ITEM_DEADLINE_S if len(answers) > 1 else ANSWER_DEADLINE_S
    try:
        return await pool.run(verdicts, *which, answers, deadline_s=limit_s)
    except PoolError:
        if len(answers) == 1:
            return [None]
    return [(await _of_item(pool, which, [answer]))[0] for answer in answers]


async def judged(pool: WorkerPool, samples: Sequence[Sample]) -> list[Sample]:
    """Return samples of `slim` with what is known of them in `row["right"]`."""
    places = asyncio.Semaphore(ITEMS_AT_ONCE)
    known: dict[Any, bool | None] = {}

    def key(s: Sample) -> tuple[Any, ...]:
        return s.task, s.row["config"], s.question, json.dumps(s.row["gold_answer"])

    async def one(item: Any, of_item: Sequence[Sample]) -> None:
        answers = list(dict.fromkeys(s.row["answer"] for s in of_item))
        async with places:
            said = await _of_item(pool, (*item[:3], json.loads(item[3])), answers)
        known.update({(item, a): v for a, v in zip(answers, said, strict=True)})
        progress.advance()

    items = grouped((s for s in samples if s.is_answered), key)
    with WorkProgress("judge", len(items), "items") as progress:
        await asyncio.gather(*(one(*item) for item in items.items()))
    said = [{"right": known.get((key(s), s.row["answer"]))} for s in samples]
    pairs = zip(samples, said, strict=True)
    return [dataclasses.replace(s, row={**s.row, **right}) for s, right in pairs]
