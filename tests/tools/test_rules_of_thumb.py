"""Rules of thumb: one sign of an item, and the answer that it suggests."""

from __future__ import annotations

import pytest

from rg_env.tasks import library
from rg_env.tasks.scales import load_shipped
from tools.trivial_baselines.rules_of_thumb import RULES


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.task)
def test_a_rule_answers_items_of_every_level_in_the_form_that_is_asked_for(
    rule,
) -> None:
    scale = load_shipped().scales.get(rule.task)
    for params in [{}, *(step.params for step in (scale.steps if scale else ()))]:
        made = list(library.usable_entries(rule.task, params, range(7000, 7004)))
        answers = [rule.answer(entry["question"]) for entry in made]
        for entry, answer in zip(made, answers, strict=True):
            is_alike = len(answer.split("\n")) == len(entry["answer"].split("\n"))
            assert answer and is_alike


def test_the_rules_of_thumb_are_ordered_by_task() -> None:
    tasks = [rule.task for rule in RULES]
    assert tasks == sorted(set(tasks))
