"""What a screen makes of its groups: shares, levels, tasks that are left out."""

import pytest

from rg_env.cli.command import rendered
from rg_env.results.estimates import share_of
from rg_env.results.screening import BANDS, screen_rows, table_for

WHOLE = (0.0, 1.0)
MIXED, RIGHT, WRONG = [1.0, 0.0], [1.0, 1.0], [0.0, 0.0]


def row(scores, level=None, task="gcd", finish_reason="stop"):
    return {
        "task": task,
        "level": level,
        "scores": scores,
        "task_scores": scores,
        "finish_reasons": [finish_reason] * len(scores),
    }


def banded(*shares, each=40, bounds=WHOLE, **changes):
    """Return rows of which each band of the levels has a share with variance."""
    low, width = bounds[0], (bounds[1] - bounds[0]) / BANDS
    return [
        row(MIXED if i < round(share * each) else WRONG, low + (band + 0.5) * width)
        | changes
        for band, share in enumerate(shares)
        for i in range(each)
    ]


def screened(rows, bounds=WHOLE, least_share=0.1, task="gcd"):
    return screen_rows(rows, {task: bounds}, least_share)[0]


# -- numbers ---------------------------------------------------------------------------


def test_the_share_is_that_of_groups_whose_rewards_differ():
    task = screened([row(MIXED), row(RIGHT), row(WRONG), row(MIXED)], bounds=None)
    assert task.share == 0.5
    assert (task.variance, task.groups) == (share_of(2, 4), 4)


def test_variance_is_of_the_rewards_and_all_else_are_means():
    penalised = row(RIGHT, finish_reason="length") | {"scores": [1.0, 0.4]}
    task = screened([penalised, row(MIXED)], bounds=None)
    assert (task.share, *task.means) == (1.0, 0.75, 0.5)


# -- levels ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shares", "levels"),
    [
        ((0.9, 0.9, 0.8, 0.7, 0.6), (0.0, 1.0)),
        ((0.9, 0.5, 0.0, 0.0, 0.0), (0.0, 0.4)),
        ((0.0, 0.0, 0.8, 0.8, 0.1), (0.4, 0.8)),
        ((0.0, 0.1, 0.6, 0.9, 0.9), (0.4, 1.0)),
        ((0.9, 0.0, 0.9, 0.0, 0.9), (0.0, 1.0)),
    ],
)
def test_ends_of_the_levels_without_variance_go(shares, levels):
    assert screened(banded(*shares)).levels == levels
    rows = banded(*shares, bounds=(0.2, 0.7))
    low, high = screened(rows, (0.2, 0.7)).levels
    expected = [0.2 + level / 2 for level in levels]
    assert [low, high] == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("shares", [(1, 1, 1, 0, 0), (1, 0, 0, 0, 0), (0, 0, 0, 0, 1)])
def test_few_groups_decide_nothing_about_levels(shares):
    assert screened(banded(*shares, each=1)).levels == WHOLE


# -- tasks -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        ([], "no group"),
        ([row(WRONG)] * 9, "too hard"),
        ([row(RIGHT)] * 9, "too easy"),
        ([row(WRONG, finish_reason="length")] * 9, "truncated"),
        ([row(MIXED)] + [row(WRONG)] * 9, ""),
        ([row(MIXED)] + [row(WRONG)] * 10, "too hard"),
    ],
)
def test_a_task_with_too_little_variance_is_left_out_with_its_reason(rows, why):
    assert screened(rows, bounds=None).left_out == why


def test_tasks_stand_in_the_order_of_their_shares_and_those_left_out_last():
    rows = [row(MIXED, task="lcm"), row(RIGHT, task="lcm"), row(MIXED, task="maze")]
    found = screen_rows(rows, dict.fromkeys(("gcd", "lcm", "maze")), 0.1)
    assert [task.task for task in found] == ["maze", "lcm", "gcd"]


def test_the_table_has_each_task_in_a_line():
    rows = [*banded(0.9, 0.8, 0.7, 0.2, 0.0), row(RIGHT, task="lcm")]
    found = screen_rows(rows, {"gcd": WHOLE, "lcm": None, "maze": None}, 0.1)
    lines = [line.split() for line in rendered(table_for(found)).splitlines()]
    assert ["gcd", "120", "0.80", "(0.72", "to", "0.86)"] in [x[:6] for x in lines]
    assert ["too", "easy"] in [x[-4:-2] for x in lines if x[:1] == ["lcm"]]
    assert ["maze", "0", "no", "group"] in lines
