"""Difficulty, choice and chance in an environment, from its settings to its items."""

import asyncio

import pytest

from rg_env.errors import SettingError
from rg_env.tasks.scales import load_shipped
from tests.support.parts import FAST_TASKS, TOKENIZER, ready_env

pytestmark = pytest.mark.processes

TASKS = ["basic_arithmetic", "chain_sum", "gcd"]
SCALES = load_shipped().scales


def with_env(work, **changes):
    """Run some work on an environment after its setup."""

    async def run():
        async with ready_env(**({"tasks": TASKS} | changes)) as env:
            return await work(env)

    return asyncio.run(run())


async def handles(env, count=12):
    return [(await env.get_next_item())[2] for _ in range(count)]


async def drawn(env, count=12):
    return [(h.task, h.index, h.seed, h.level) for h in await handles(env, count)]


async def score_item(env, rights):
    """Ask for an item and score a group of it, right or wrong as told."""
    messages, entry, handle = await env.get_next_item()
    rollouts = [
        {
            "messages": [
                *messages,
                {
                    "role": "assistant",
                    "content": f"<answer>{entry['answer'] if right else 'x'}</answer>",
                },
            ],
            "rg_item": entry,
            "dataset_obj": handle,
            "finish_reason": "stop",
            "tokens": [1, 2, 3],
            "masks": [-100, 2, 3],
            "logprobs": [1.0, -0.5, -0.5],
        }
        for right in rights
    ]
    await env.score(rollouts)
    return handle


async def score_items(env, count, rights):
    return [await score_item(env, rights) for _ in range(count)]


# -- modes -----------------------------------------------------------------------------


def test_by_default_items_have_the_librarys_parameters():
    found = with_env(handles)
    assert {(h.level, *h.params) for h in found} == {(None,)}


def test_random_levels_differ_from_item_to_item():
    levels = {h.level for h in with_env(handles, complexity_mode="random")}
    assert len(levels) == 12
    assert all(0 <= level <= 1 for level in levels)


def test_a_fixed_level_gives_the_parameters_of_its_step():
    found = with_env(handles, complexity_mode=1.0)
    assert {h.level for h in found} == {1.0}
    assert all(h.params == SCALES[h.task].steps[-1].params for h in found)


def test_a_task_can_have_a_level_of_its_own():
    found = with_env(
        handles,
        complexity_mode="random",
        task_levels={"gcd": 0.0, "*_sum": [0.9, 1.0], "basic_arithmetic": None},
    )
    levels = {task: {h.level for h in found if h.task == task} for task in TASKS}
    assert levels["gcd"] == {0.0}
    assert min(levels["chain_sum"]) >= 0.9
    assert levels["basic_arithmetic"] == {None}


def test_results_move_the_level_of_their_task_alone(logged):
    async def work(env):
        await score_items(env, 12, [True] * 4)
        return dict(env.task_complexity_levels), env.get_curriculum_stats()

    levels, stats = with_env(work, tasks=["gcd", "acre"], complexity_mode="curriculum")
    assert levels.keys() == {"gcd"}
    assert levels["gcd"] > 0.3
    assert stats["curriculum_mode"] is True
    assert stats["tasks_with_adjustments"] == 1
    assert stats["task_details"]["gcd"]["complexity"] == levels["gcd"]
    assert stats["avg_complexity"] == levels["gcd"]
    assert "level of gcd: 0.30 -> " in logged.text


def test_a_level_that_is_set_from_outside_is_that_of_the_next_items():
    async def work(env):
        env.task_complexity_levels["gcd"] = 0.8
        return [h.level for h in await handles(env, 90) if h.task == "gcd"]

    for mode in ("curriculum", "random", None):
        levels = with_env(work, complexity_mode=mode)
        assert levels[-5:] == [0.8] * 5, mode


def test_a_level_can_be_set_before_the_tasks_are_known():
    from tests.support.parts import build_env

    async def run():
        env = build_env(tasks=TASKS, complexity_mode="curriculum")
        env.task_complexity_levels["gcd"] = 0.8
        try:
            await env.setup()
            return {h.level for h in await handles(env) if h.task == "gcd"}
        finally:
            await env.close()

    assert asyncio.run(run()) == {0.8}


@pytest.mark.parametrize(
    ("task", "level", "sentence"),
    [
        ("gdc", 0.5, "did you mean 'gcd'"),
        ("gcd", 1.5, "from 0 to 1"),
        ("acre", 0.5, "no curriculum for it"),
    ],
)
def test_a_level_that_cannot_be_is_refused_when_it_is_set(task, level, sentence):
    async def work(env):
        with pytest.raises(ValueError, match=sentence):
            env.task_complexity_levels[task] = level

    with_env(work, tasks=["acre", "gcd"], complexity_mode="curriculum")


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"task_levels": {"gdc": 0.5}}, "env.task_levels: unknown task 'gdc'; did you"),
        ({"task_levels": {"acre": 0.5}}, "'acre' has no difficulty scale"),
        ({"mixture": "/nowhere.yaml"}, "env.mixture: '/nowhere.yaml' cannot be used"),
        (
            {"complexity_mode": 0.0, "task_params": {"gcd": {"min_numbers": 99}}},
            "env.task_params.gcd: reasoning-gym refuses",
        ),
    ],
)
def test_a_wrong_setting_stops_the_start(changes, sentence):
    with pytest.raises(SettingError) as caught:
        with_env(handles, **({"tasks": ["acre", "gcd"]} | changes))
    assert sentence in str(caught.value)


def test_adaptive_choice_asks_less_often_where_no_group_carries_a_signal():
    async def work(env):
        asked = []
        for _ in range(300):
            _, _, handle = await env.get_next_item()
            mixed = handle.task == "chain_sum"
            env._feedback.take(handle.task, 0.5 if mixed else 1.0, None, mixed)
            asked.append(handle.task)
        return asked[150:]

    asked = with_env(work, task_choice="adaptive", tasks=["gcd", "chain_sum"])
    assert asked.count("gcd") < asked.count("chain_sum") / 4


# -- a mixture -------------------------------------------------------------------------

MIXTURE = """\
size: 500
seed: 7
datasets:
  - name: gcd
    weight: 1
    config: {min_numbers: 3, max_numbers: 3}
  - name: composite
    weight: 2
    config:
      datasets:
        - {name: chain_sum, weight: 1, config: {}}
        - {name: lcm, weight: 3, config: {}}
"""


def test_a_fault_of_the_mixtures_file_is_said_of_the_file(tmp_path):
    path = tmp_path / "mixture.yaml"
    path.write_text("datasets: [{name: gdc}]")
    with pytest.raises(
        SettingError, match=r"env\.mixture\.datasets: unknown task 'gdc'"
    ):
        with_env(handles, tasks=None, mixture=str(path))


def test_a_file_of_the_librarys_format_is_the_mixture_that_is_asked(tmp_path):
    path = tmp_path / "mixture.yaml"
    path.write_text(MIXTURE)
    found = with_env(lambda env: handles(env, 60), tasks=None, mixture=str(path))
    counts = {
        task: sum(h.task == task for h in found) for task in {h.task for h in found}
    }
    assert counts.keys() == {"gcd", "chain_sum", "lcm"}
    assert counts["lcm"] > counts["chain_sum"]
    assert {tuple(h.params.items()) for h in found if h.task == "gcd"} == {
        (("min_numbers", 3), ("max_numbers", 3))
    }


# -- chance that repeats ---------------------------------------------------------------


def test_instances_share_no_item_and_together_ask_the_whole_stream():
    async def work(env):
        return await drawn(env, 10)

    shards = [
        with_env(work, complexity_mode="random", shard_index=i, num_shards=3)
        for i in range(3)
    ]
    together = sorted(item for shard in shards for item in shard)
    whole = with_env(lambda env: drawn(env, 30), complexity_mode="random")
    assert sorted(item[1:] for item in together) == sorted(item[1:] for item in whole)


RESUMED = {"complexity_mode": "curriculum", "task_choice": "adaptive", "seed": 5}


def test_a_run_resumes_with_its_levels_and_the_item_that_would_have_come(tmp_path):
    async def save(env):
        env.checkpoint_dir = str(tmp_path)
        await score_items(env, 40, [True] * 4)
        env.save_checkpoint(3)
        return await drawn(env, 10)

    async def load(env):
        env.checkpoint_dir, env.curr_step = str(tmp_path), 3
        env.load_checkpoint()
        return await drawn(env, 10), dict(env.task_complexity_levels)

    expected = with_env(save, tasks=FAST_TASKS, **RESUMED)
    found, levels = with_env(load, tasks=FAST_TASKS, **RESUMED)
    assert found == expected and max(levels.values()) > 0.3


@pytest.mark.parametrize(
    "changes",
    [
        {"seed": 6},
        {"tasks": ["gcd"]},
        {"complexity_mode": "random"},
        {"task_choice": "weighted"},
    ],
)
def test_a_checkpoint_of_a_run_with_other_items_is_refused(tmp_path, changes):
    async def save(env):
        env.checkpoint_dir = str(tmp_path)
        env.save_checkpoint(3)

    async def load(env):
        env.checkpoint_dir, env.curr_step = str(tmp_path), 3
        with pytest.raises(SettingError, match=f"another {next(iter(changes))}"):
            env.load_checkpoint()

    settings = {"tasks": TASKS} | RESUMED
    with_env(save, **settings)
    with_env(load, **(settings | changes))


def test_levels_and_results_go_to_wandb(monkeypatch):
    import wandb

    logged = []
    monkeypatch.setattr(wandb, "log", lambda numbers, **_: logged.append(numbers))

    async def work(env):
        await score_items(env, 6, [True] * 4)
        env.config.use_wandb = True
        await env.wandb_log()

    with_env(work, complexity_mode="curriculum", tokenizer_name=TOKENIZER)
    keys = {key for numbers in logged for key in numbers}
    assert {f"curriculum/{name}" for name in ("avg_complexity", "tasks")} <= keys
