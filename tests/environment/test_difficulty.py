"""Difficulty, choice and chance in an environment, from its settings to its items."""

import pytest

from rg_env.errors import SettingError
from tests.support.parts import FAST_TASKS
from tests.support.runs import next_items, rollout_of, with_env

pytestmark = pytest.mark.processes


async def handles(env, count=12):
    return [item[2] for item in await next_items(env, count)]


async def score_items(env, count):
    """Sample items and score a group of right answers to each."""
    for _ in range(count):
        item = await env.get_next_item()
        text = f"<answer>{item[1]['answer']}</answer>"
        await env.score([rollout_of(item, text)] * 4)


# -- modes -----------------------------------------------------------------------------


def test_results_move_the_level_of_their_task_alone(logged):
    async def work(env):
        await score_items(env, 12)
        return dict(env.task_complexity_levels), env.get_curriculum_stats()

    levels, stats = with_env(work, tasks=["gcd", "acre"], complexity_mode="curriculum")
    assert levels.keys() == {"gcd"}
    assert levels["gcd"] > 0.3
    assert stats["curriculum_mode"] is True
    assert stats["tasks_with_adjustments"] == 1
    assert stats["task_details"]["gcd"]["complexity"] == levels["gcd"]
    assert stats["avg_complexity"] == levels["gcd"]
    assert "level of gcd: 0.30 -> " in logged.text


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"task_levels": {"gdc": 0.5}}, "env.task_levels: unknown task 'gdc'; did you"),
        ({"task_levels": {"acre": 0.5}}, "'acre' has no difficulty scale"),
        (
            {"complexity_mode": 0.0, "task_params": {"gcd": {"min_numbers": 99}}},
            "env.task_params.gcd: its config refuses",
        ),
    ],
)
def test_a_wrong_setting_stops_the_start(changes, sentence):
    with pytest.raises(SettingError) as caught:
        with_env(handles, **({"tasks": ["acre", "gcd"]} | changes))
    assert sentence in str(caught.value)


# -- chance that repeats ---------------------------------------------------------------


def test_a_run_resumes_with_its_levels_and_the_item_that_would_have_come(tmp_path):
    given = {"complexity_mode": "curriculum", "task_choice": "adaptive", "seed": 5}

    async def save(env):
        env.checkpoint_dir = str(tmp_path)
        await score_items(env, 40)
        env.save_checkpoint(3)
        return await handles(env, 10)

    async def load(env):
        env.checkpoint_dir, env.curr_step = str(tmp_path), 3
        env.load_checkpoint()
        return await handles(env, 10), dict(env.task_complexity_levels)

    expected = with_env(save, tasks=FAST_TASKS, **given)
    found, levels = with_env(load, tasks=FAST_TASKS, **given)
    assert found == expected and max(levels.values()) > 0.3
