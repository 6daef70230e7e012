"""Plans of boxnet, played by their rules."""

import json
import re

import pytest

from tests.support.fixed_scores import both_scores, entries, fixed_score


def agent_at(place):
    return f"Agent[{place[0]}, {place[1]}]"


def box_by_box(entry, boxes):
    """Carry the first boxes to their targets, rows first."""
    initial = entry["metadata"]["initial_state"]
    place = {
        i: tuple(map(float, name.split("_")))
        for name, items in initial.items()
        for i in items
    }
    steps = []
    for box in sorted(i for i in place if i.startswith("box_"))[:boxes]:
        target = f"target_{box[4:]}"
        at, goal = place[box], place[target]
        while at != goal:
            axis = 0 if at[0] != goal[0] else 1
            to = list(at)
            to[axis] += 1.0 if goal[axis] > at[axis] else -1.0
            steps.append({agent_at(at): f"move({box}, square[{to[0]}, {to[1]}])"})
            at = (to[0], to[1])
        steps.append({agent_at(at): f"move({box}, {target})"})
    return json.dumps(steps)


def test_a_plan_with_moves_that_are_not_possible_is_paid_by_the_library_alone():
    for entry in entries("boxnet"):
        plan = box_by_box(entry, 3)
        twice = json.dumps(json.loads(plan) * 2)
        installed, fixed = both_scores("boxnet", entry, twice)
        assert fixed == 0.0 < installed == 1.0
        from_afar = re.sub(r"\(box_(\w+), square\[.*?\]", r"(box_\1, target_\1", plan)
        assert fixed_score("boxnet", entry, from_afar) == 0.0


@pytest.mark.parametrize("boxes", [0, 1, 2, 3])
def test_a_plan_carries_all_boxes(boxes):
    for entry in entries("boxnet"):
        assert fixed_score("boxnet", entry, box_by_box(entry, boxes)) == boxes // 3


@pytest.mark.parametrize(
    ("named", "other"),
    [
        ("Agent", "Bgent"),
        ("Agent", "square"),
        ("Agent[", "Agent[-"),
        ("Agent", ""),
        ("square[", "square[-"),
    ],
)
def test_an_agent_and_a_square_have_their_names(named, other):
    for entry in entries("boxnet"):
        plan = box_by_box(entry, 3)
        if named in plan:
            assert fixed_score("boxnet", entry, plan.replace(named, other)) == 0.0


@pytest.mark.parametrize(
    "answer",
    [
        *("move", "[1]", "{}", "1", '["a"]', '[{"x": "move(box_red, target_red)"}]'),
        *('[{"": 1}]', '[{"Agent[9.5, 9.5]": "move(box_red, square[0.5, 0.5])"}]'),
    ],
)
def test_a_plan_that_is_none_is_worth_nothing_and_raises_nothing(answer):
    assert fixed_score("boxnet", entries("boxnet")[0], answer) == 0.0
