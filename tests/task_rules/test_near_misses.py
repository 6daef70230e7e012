"""No wrong answer near a right one scores above a half, whatever the rules read.

Right answers to items of every task, by its notation and its scorer, are changed in
each way of `tools/answer_texts/near_changes.py`: another value, a neighbour, a sign,
two values, a denial, a label. Which of them are wrong is told without our rules, by
`tools/answer_texts/surely_wrong.py`, and where that knows nothing by the library's own
scorer of the plain text.
"""

import random

import pytest

from rg_env.library import datasets, worker_jobs
from rg_env.library.registry import TASKS
from rg_env.reward.score import ScoringRules
from rg_env.task_rules.rules import MOST_FOR_A_WRONG_ANSWER
from tools.answer_texts.near_changes import CHANGES, other_answer
from tools.answer_texts.sampled_items import DEFAULTS, SampledItem, right_answer
from tools.answer_texts.surely_wrong import is_wrong

pytestmark = pytest.mark.slow

NEAR_ENOUGH = {"coin_flip": "a number within 0.0001 of the probability is right"}
"""Tasks of which the library's own scorer of the plain text tells what is right."""

PASSED_OVER = {
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

ITEMS = 2
OTHERS = 4
OTHER_ALONE = ("another item's answer", "Answer: Y")
"""Changes that say what is right for another item, and may be so for this one."""

LONGEST = 500
"""Items with a longer right answer are passed over: they take long and say no more."""


def items_of(task):
    made = []
    for seed in range(7_000, 7_400):
        for entry in datasets.usable_entries(task, {}, [seed]):
            right = right_answer(task, entry)
            if right is not None and 0 < len(right) <= LONGEST:
                made.append(SampledItem(task, DEFAULTS, seed, {}, entry, right))
        if len(made) == OTHERS:
            break
    return made


def is_wrong_for_sure(item, text):
    wrong = is_wrong(item, text)
    if wrong is not None and not (wrong and item.task in NEAR_ENOUGH):
        return wrong
    try:
        scorer = datasets.scoring_dataset(item.task, {}).score_answer
        return float(scorer(text, dict(item.entry))) < 1.0
    except Exception:  # noqa: BLE001 - the library raises anything on what is no answer
        return True


def near_misses(item, others):
    chance = random.Random(item.seed)
    for name, change in CHANGES.items():
        other = other_answer(item.right, others, chance)
        text = (change(item.right, other, chance) or "").strip()
        if not text or (item.task, name) in PASSED_OVER:
            continue
        is_joined = item.right in text and other in text
        if is_joined and item.task == "propositional_logic":
            continue  # `X or Y` is a formula of its own, and may follow
        if name in OTHER_ALONE and not is_wrong_for_sure(item, other):
            continue
        if is_wrong_for_sure(item, text):
            yield name, text
    question = item.entry["question"].strip()
    lines, words = question.split("\n"), question.split()
    for text in (*NO_ANSWERS, question, lines[0], lines[-1], words[0], words[-1]):
        if is_wrong_for_sure(item, text):
            yield "no answer", text


def overpaid(task):
    """Return the wrong answers that score above a half, each with its change."""
    items = items_of(task)
    assert len(items) >= ITEMS
    found = []
    for item in items[:ITEMS]:
        others = [other.right for other in items if other is not item]
        misses = list(near_misses(item, others))
        texts = [text for _, text in misses]
        call = (task, {}, dict(item.entry), texts, ScoringRules())
        values = [row[0] for row in worker_jobs.score_answers(*call)]
        found += [
            f"{name}: {text!r} for {item.right!r}"
            for (name, text), value in zip(misses, values, strict=True)
            if value > MOST_FOR_A_WRONG_ANSWER
        ]
    return found


@pytest.mark.parametrize("task", TASKS)
def test_no_near_miss_scores_above_a_half(task):
    assert overpaid(task) == []
