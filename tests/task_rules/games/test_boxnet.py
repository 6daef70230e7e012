"""Plans of boxnet, played by their rules."""

import json
import re

import pytest

from tests.support.fixed_scores import both_scores, entries, fixed_score
from tools.answer_texts.sampled_items import right_answer


def plans():
    """Yield entries, each with a plan that carries one box after the other."""
    for entry in entries("boxnet"):
        yield entry, right_answer("boxnet", entry)


def test_a_plan_with_impossible_moves_scores_only_in_the_library():
    for entry, plan in plans():
        twice = json.dumps(json.loads(plan) * 2)
        installed, fixed = both_scores("boxnet", entry, twice)
        assert fixed == 0.0 < installed == 1.0
        from_afar = re.sub(r"\(box_(\w+), square\[.*?\]", r"(box_\1, target_\1", plan)
        assert fixed_score("boxnet", entry, from_afar) == 0.0


def test_a_plan_carries_all_boxes():
    for entry, plan in plans():
        steps = json.loads(plan)
        scores = [
            fixed_score("boxnet", entry, json.dumps(steps[:number]))
            for number in range(len(steps) + 1)
        ]
        assert scores == [0.0] * len(steps) + [1.0]


@pytest.mark.parametrize(
    "change",
    ["Agent>Bgent", "Agent>square", "Agent[>Agent[-", "Agent>", "square[>square[-"],
)
def test_an_agent_and_a_square_have_their_names(change):
    named, other = change.split(">")
    for entry, plan in plans():
        if named in plan:
            assert fixed_score("boxnet", entry, plan.replace(named, other)) == 0.0


@pytest.mark.parametrize(
    "answer",
    [
        *("move", "[1]", "{}", "1", '["a"]', '[{"x": "move(box_red, target_red)"}]'),
        *('[{"": 1}]', '[{"Agent[9.5, 9.5]": "move(box_red, square[0.5, 0.5])"}]'),
    ],
)
def test_another_text_than_a_plan_scores_0_and_does_not_raise(answer):
    assert fixed_score("boxnet", entries("boxnet")[0], answer) == 0.0
