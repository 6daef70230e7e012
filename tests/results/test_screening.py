"""What a screen samples, what it makes of its groups, and the settings it writes."""

import pytest

from rg_env.errors import SettingError
from rg_env.library.scales import load_shipped
from rg_env.results.estimates import estimate_share
from rg_env.results.screening import (
    BANDS,
    MIN_GROUPS,
    ScreenRun,
    screen_table,
    screen_tasks,
)
from rg_env.results.terminal import rendered
from rg_env.stream.curriculum import Curriculum
from rg_env.stream.difficulty import Difficulty, build_rules
from rg_env.stream.draws import Stream
from rg_env.stream.task_selection import StreamSettings, TaskChoice
from tests.support.parts import env_config

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


def banded(*shares, each=40, bounds=WHOLE):
    """Return rows of which each band of the levels has a share with variance."""
    low, width = bounds[0], (bounds[1] - bounds[0]) / BANDS
    return [
        row(MIXED if i < round(share * each) else WRONG, low + (band + 0.5) * width)
        for band, share in enumerate(shares)
        for i in range(each)
    ]


def screened(rows, bounds=WHOLE, least_share=0.1, task="gcd"):
    return screen_tasks(rows, {task: bounds}, least_share)[0]


# -- numbers ---------------------------------------------------------------------------


def test_the_share_is_that_of_groups_whose_rewards_differ_and_all_else_are_means():
    penalised = row(RIGHT, finish_reason="length") | {"scores": [1.0, 0.4]}
    task = screened([penalised, row(MIXED), row(RIGHT), row(WRONG)], bounds=None)
    assert task.variance == estimate_share(2, 4)
    assert (task.share, task.score, task.truncated) == (0.5, 0.625, 0.25)


# -- levels ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shares", "levels"),
    [
        ((0.9, 0.5, 0.0, 0.0, 0.0), (0.0, 0.4)),
        ((0.0, 0.0, 0.8, 0.8, 0.1), (0.4, 0.8)),
        ((0.9, 0.9, 0.9, 0.3, 0.3), (0.0, 0.6)),  # poor together, not one alone
        ((0.9, 0.0, 0.9, 0.0, 0.9), (0.0, 1.0)),
    ],
)
def test_ends_of_the_levels_without_variance_go(shares, levels):
    rows = banded(*shares, bounds=(0.2, 0.7))
    low, high = screened(rows, (0.2, 0.7)).levels
    expected = [0.2 + level / 2 for level in levels]
    assert [low, high] == pytest.approx(expected, abs=1e-4)


def test_the_hardest_level_is_of_the_last_band():
    rows = [row(WRONG, 0.1)] * 40 + [row(MIXED, 1.0)] * 40
    assert screened(rows).levels == (0.2, 1.0)


@pytest.mark.parametrize("shares", [(1, 0, 0, 0, 0), (0, 0, 0, 0, 1)])
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


def test_the_table_has_tasks_in_the_order_of_their_shares_and_those_left_out_last():
    rows = [row(RIGHT), row(MIXED, task="lcm"), row(RIGHT, task="lcm")]
    bounds = {"acre": None, "gcd": None, "lcm": None, "maze": (0.2, 0.7)}
    found = screen_tasks([*rows, row(MIXED, 0.5, "maze")], bounds, 0.1)
    lines = [line.split() for line in rendered(screen_table(found)).splitlines()[-4:]]
    maze, lcm, acre, gcd = lines
    assert maze[:3] + maze[-3:] == ["maze", "1", "1.00", "0.2-0.7", "0.50", "0%"]
    assert lcm[:3] + lcm[-2:] == ["lcm", "2", "0.50", "0.75", "0%"]
    assert acre == ["acre", "0", "no", "group"]
    assert gcd[:3] + gcd[-4:] == ["gcd", "1", "0.00", "too", "easy", "1.00", "0%"]


# -- a run -----------------------------------------------------------------------------

TASKS = ("acre", "chain_sum", "gcd")  # acre has no scale
SCALES = {task: load_shipped().scales[task] for task in TASKS[1:]}


def stream_of(config, choices):
    tasks = [choice.task for choice in choices]
    mode, levels = config.complexity_mode, config.task_levels
    rules = build_rules(tasks, TASKS, {"acre": "none"}, mode, levels)
    scales = {task: SCALES[task] for task in tasks if task in SCALES}
    difficulty = Difficulty(scales, rules, Curriculum(0.7))
    return Stream(choices, StreamSettings(task_choice="in_turn"), difficulty)


def run_of(choices=None, groups=None, **changes):
    given = {"complexity_mode": "random", "group_size": 8, "tasks": list(TASKS)}
    run = ScreenRun(env_config(**(given | changes)), groups, "rows.jsonl")
    choices = choices or [TaskChoice(task) for task in TASKS]
    return run, run.begin(stream_of(run.config, choices))


def found_by(run, shares, given=None):
    """Return the settings of the environment after some shares of ten groups."""
    rows = [
        row(MIXED if i < 10 * share else WRONG, (i + 0.5) / 10, task)
        for task, share in shares.items()
        for i in range(10)
    ]
    tasks = screen_tasks(rows, run.bounds, 0.1)
    return run.settings({"env": given or {}}, tasks)["env"]


# -- what is sampled -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "groups"),
    [
        ({"total_steps": 250, "batch_size": 1024}, 3 * 213),
        ({"total_steps": -1, "batch_size": 1024}, 3 * MIN_GROUPS),
        ({"total_steps": 250, "batch_size": 1024, "groups": 7}, 21),
    ],
)
def test_two_percent_of_the_run_are_screened_or_what_is_asked_for(changes, groups):
    assert run_of(**changes)[1] == groups


def test_a_curriculum_is_screened_at_all_levels_and_moves_none():
    levels = {"gcd": "curriculum", "chain_sum": [0.2, 0.4]}
    given = {"shard_index": 2, "num_shards": 3, "task_choice": "adaptive"}
    run, _ = run_of(complexity_mode="curriculum", task_levels=levels, **given)
    assert run.bounds == {"acre": None, "chain_sum": (0.2, 0.4), "gcd": (0.0, 1.0)}
    config = run.config
    assert (config.complexity_mode, config.task_choice) == ("random", "in_turn")
    assert (config.shard_index, config.num_shards) == (0, 1)


def test_a_group_of_one_rollout_is_refused_before_anything_is_sampled():
    with pytest.raises(SettingError, match=r"env\.group_size: 1 is not allowed"):
        run_of(group_size=1)
    run_of(group_size=2)


def test_a_task_with_two_parameters_in_a_mixture_is_refused():
    choices = [TaskChoice("gcd"), TaskChoice("gcd", params={"max_numbers": 3})]
    with pytest.raises(SettingError, match="with several parameters"):
        run_of(choices)


# -- what is found ---------------------------------------------------------------------


def test_the_tasks_that_are_kept_have_their_share_as_weight():
    run, _ = run_of()
    env = found_by(run, {"acre": 0.5, "chain_sum": 0.0, "gcd": 1.0})
    assert env["tasks"] == ["gcd", "acre"]
    assert env["task_weights"] == {"gcd": 1.0, "acre": 0.5}
    assert env["task_levels"] == {"gcd": [0.0, 1.0]}  # acre has no scale


@pytest.mark.parametrize(
    ("mode", "setting", "written"),
    [
        ("random", 0.7, {"gcd": 0.7}),
        ("random", None, {"gcd": None}),
        ("random", [0.3, 0.3], {"gcd": [0.3, 0.3]}),
        (0.7, 0.7, None),
        (None, "random", {"gcd": [0.0, 1.0]}),
    ],
)
def test_a_level_that_is_no_range_stays(mode, setting, written):
    run, _ = run_of(
        [TaskChoice("gcd")], complexity_mode=mode, task_levels={"gcd": setting}
    )
    assert found_by(run, {"gcd": 1.0}).get("task_levels") == written


def test_parameters_of_a_mixture_become_those_of_its_tasks():
    run, _ = run_of([TaskChoice("gcd", 3.0, {"max_numbers": 3}), TaskChoice("acre")])
    given = {"tasks": ["composite"], "seed": 5}
    env = found_by(run, {"gcd": 1.0, "acre": 1.0}, given)
    assert (env["seed"], env["tasks"]) == (5, ["acre", "gcd"])
    assert env["task_params"] == {"gcd": {"max_numbers": 3}}
