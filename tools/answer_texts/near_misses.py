"""The near misses of an item: changed right answers, and texts that answer nothing.

Which of the changed answers are wrong is told without our rules, by `surely_wrong`, and
where that knows nothing by the library's own scorer of the plain text.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence

from rg_env.library import datasets, worker_jobs
from rg_env.task_rules.rules import MAX_FOR_A_WRONG_ANSWER
from tools.answer_texts.near_changes import CHANGES, OTHER, other_answer
from tools.answer_texts.sampled_items import SampledItem
from tools.answer_texts.surely_wrong import is_wrong

PASSED_OVER: Mapping[tuple[str, str], str] = {
    ("shortest_path", "a tenth cut off"): "the `u` that is left of `up` says up",
    ("shortest_path", "a letter less"): "the same",
    ("futoshiki", "backwards"): "its numbers are the same from behind",
    ("bitwise_arithmetic", "a letter less"): "without its `x` it is the same number",
    ("intermediate_integration", "another last sign"): "the constant has any name",
    ("simple_integration", "another last sign"): "the same",
}
"""Task and change that score more nevertheless, with the reason."""

NO_ANSWERS = (
    *("0", "7", "x", "Z9", "?", "nothing of the kind", "I do not know", "Pass"),
    *("[]", "{}", '["x"]', '{"x": 0}', "[[8, 9]]", "x\ny", "a b c " * 20, "7 " * 200),
)
"""Answers to nothing, short and long ones, of one line and of several."""

OTHER_ALONE = ("Y", "Answer: Y")
"""Changes that say what is right for another item, and may be so for this one."""


def _is_wrong_for_sure(item: SampledItem, text: str) -> bool:
    wrong = is_wrong(item, text)
    # In coin_flip, a number within 0.0001 of the probability is right.
    if wrong is not None and not (wrong and item.task == "coin_flip"):
        return wrong
    try:
        scorer = datasets.scoring_dataset(item.task, item.params).score_answer
        return float(scorer(text, dict(item.entry))) < 1.0
    except Exception:  # noqa: BLE001 - the library raises anything on what is no answer
        return True


def near_misses(item: SampledItem, others: list[str]) -> Iterator[tuple[str, str]]:
    """Yield each change of the right answer that is wrong, and the wrong answer."""
    chance = random.Random(item.seed)
    for name, change in CHANGES.items():
        other = other_answer(item.right, others, chance)
        made = change(item.right, chance) or ""
        text = made.replace(OTHER, other).strip()
        no_other = OTHER in made and other in ("", item.right)
        if not text or no_other or (item.task, name) in PASSED_OVER:
            continue
        is_joined = item.right in text and other in text
        if is_joined and item.task == "propositional_logic":
            continue  # `X or Y` is a formula of its own, and may follow
        if name in OTHER_ALONE and not _is_wrong_for_sure(item, other):
            continue
        if _is_wrong_for_sure(item, text):
            yield name, text
    question = item.entry["question"].strip()
    lines = question.split("\n")
    words = question.split()
    for text in (*NO_ANSWERS, question, lines[0], lines[-1], words[0], words[-1]):
        if _is_wrong_for_sure(item, text):
            yield "no answer", text


def overrated_misses(items: Sequence[SampledItem], count: int) -> list[str]:
    """Return the near misses of the first items that score above a half."""
    found = []
    for item in items[:count]:
        others = [other.right for other in items if other is not item]
        misses = list(near_misses(item, others))
        texts = [text for _, text in misses]
        rows = worker_jobs.score_answers(item.task, item.params, item.entry, texts)
        found += [
            f"{name}: {text!r} for {item.right!r}"
            for (name, text), row in zip(misses, rows, strict=True)
            if row[0] > MAX_FOR_A_WRONG_ANSWER
        ]
    return found
