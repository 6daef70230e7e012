"""What a screen samples, and the settings that it writes."""

import pytest

from rg_env.errors import SettingError
from rg_env.library.scales import load_shipped
from rg_env.results.screening import LEAST_GROUPS, ScreenRun, screen_rows
from rg_env.stream.curriculum import Curriculum
from rg_env.stream.difficulty import Difficulty, build_rules
from rg_env.stream.draws import Stream
from rg_env.stream.task_selection import StreamSettings, TaskChoice
from tests.support.parts import env_config

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


def row(task, has_variance=True, level=None):
    scores = [1.0, 0.0] if has_variance else [0.0, 0.0]
    return {
        "task": task,
        "level": level,
        "scores": scores,
        "task_scores": scores,
        "finish_reasons": ["stop"] * 2,
        "completion_tokens": [1, 1],
        "seconds": 1.0,
    }


def found_by(run, shares, given=None):
    """Return the settings of the environment after some shares of ten groups."""
    rows = [
        row(task, i < 10 * share, level=(i + 0.5) / 10)
        for task, share in shares.items()
        for i in range(10)
    ]
    tasks = screen_rows(rows, run.bounds, 0.1)
    return run.settings({"env": given or {}}, tasks)["env"]


# -- what is sampled -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "groups"),
    [
        ({"total_steps": 250, "batch_size": 1024}, 3 * 213),
        ({"total_steps": 2, "batch_size": 1024}, 3 * LEAST_GROUPS),
        ({"total_steps": -1, "batch_size": 1024}, 3 * LEAST_GROUPS),
        ({"total_steps": 2, "batch_size": -1}, 3 * LEAST_GROUPS),
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
