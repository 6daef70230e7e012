"""What each rule of the study of choices does with results that are simulated."""

import random
from collections import Counter

import pytest

from examples.studies.rules import RULES

LEVELS = [("gcd", step / 8) for step in range(9)]
TASKS = [("gcd", None), ("lcm", None), ("chain_sum", None)]


def values(share):
    """As many right completions of a group of eight as the share, rounded."""
    right = round(share * 8)
    return [1.0] * right + [0.0] * (8 - right)


def played(rule, share_of, rounds=40):
    """Return how often each place was drawn in the last ten of the rounds of a run."""
    drawn = Counter()
    for number in range(rounds):
        places = [rule.next() for _ in range(16)]
        drawn.update(places if number >= rounds - 10 else ())
        for place in places:
            rule.took(place, values(share_of[place]))
    return drawn


def rule_of(name, places):
    return RULES[name](places, random.Random(0))


def by_place(places, *shares):
    return dict(zip(places, shares, strict=True))


def test_uniform_draws_what_is_never_right_as_often_as_the_rest():
    drawn = played(rule_of("uniform", TASKS), by_place(TASKS, 0.0, 0.5, 1.0), 400)
    assert set(drawn) == set(TASKS) and min(drawn.values()) > 35


def test_the_library_goes_up_above_07_and_down_below_03_one_level_at_a_time():
    rule = rule_of("library", LEVELS)
    levels = []
    for share in [0.75] * 48 * 3 + [0.625] * 96 + [0.25] * 96:
        rule.took(rule.next(), values(share))
        levels.append(LEVELS.index(rule.next()))
    assert levels[46:48] == [0, 1] and levels[48 * 3 - 1 : 48 * 5] == [3] * 97
    assert levels[-1] == 1 and max(levels) == 3
    rule.took(LEVELS[8], [1.0] * 384)  # late, and of another level
    assert LEVELS.index(rule.next()) == 1


def test_rlve_raises_its_bound_by_groups_at_the_bound_alone_and_never_lowers_it():
    rule = rule_of("rlve", LEVELS)
    assert {rule.next() for _ in range(50)} == {LEVELS[0]}
    shares = by_place(LEVELS, *[1.0] * 5, 0.75, *[0.0] * 3)
    assert set(played(rule, shares)) == set(LEVELS[2:6])
    played(rule, dict.fromkeys(LEVELS, 0.0))
    assert {rule.next() for _ in range(99)} == set(LEVELS[2:6])


def test_pools_draw_places_in_the_middle_five_times_as_often():
    rule = rule_of("pools", TASKS)
    assert rule.weights() == [1.0] * 3
    shares = by_place(TASKS, 0.25, 0.75, 1.0)
    drawn = played(rule, shares, 100)
    assert rule.weights() == [0.2, 1.0, 0.2]
    assert drawn[TASKS[1]] / sum(drawn.values()) == pytest.approx(5 / 7, abs=0.1)


def test_variance_draws_in_proportion_to_p_times_1_less_p():
    rule = rule_of("variance", TASKS)
    played(rule, by_place(TASKS, 0.0, 0.5, 0.75), 20)
    nothing, half, most = rule.weights()
    assert half == pytest.approx(0.25) and most == pytest.approx(0.19, abs=0.01)
    assert nothing < 0.02


def test_the_bandit_follows_advantages_and_keeps_what_a_round_has_not_drawn():
    rule = rule_of("sec", TASKS)
    shares = by_place(TASKS, 0.0, 0.5, 1.0)
    drawn = played(rule, shares, 100)
    advantage = 0.5 / (2 / 7) ** 0.5
    assert rule.worth == pytest.approx(by_place(TASKS, 0.0, advantage, 0.0), abs=1e-3)
    assert drawn[TASKS[1]] > 0.95 * sum(drawn.values())
    before = dict(rule.worth)
    rule.took(TASKS[0], values(0.5))
    rule.next()
    assert rule.worth == {**before, TASKS[0]: pytest.approx(advantage / 2)}


def test_the_bandit_is_warmer_among_levels_than_among_tasks():
    drawn = played(rule_of("sec", LEVELS), by_place(LEVELS, 0.5, *[0.0] * 8), 100)
    assert 0.15 < drawn[LEVELS[0]] / sum(drawn.values()) < 0.4
