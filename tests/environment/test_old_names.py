"""Names that callers of the original use: views of the real things."""

import logging
import random

import pytest

import reasoning_gym_environment
from tests.support.parts import RIGHT, WRONG, build_env, ready_env, rollout
from tests.support.runs import next_items, questions


@pytest.mark.processes
async def test_the_stream_has_a_position_and_a_generator_that_leaves_it_as_it_is():
    before = build_env(seed=7).rng.random()
    async with ready_env(seed=7) as env:
        assert env.rng.random() == before
        first = await next_items(env, 3)
        assert env.iter == 3
        env.iter = 1
        assert questions(await next_items(env, 2)) == questions(first[1:])


async def test_dump_names_are_views_of_the_writers(tmp_path):
    env = build_env(
        dump_rollouts=True, dump_failed_rollouts=True, data_dumps_dir=str(tmp_path)
    )
    await env.score([rollout(RIGHT), rollout(WRONG)])
    await env.score([rollout(WRONG), rollout(WRONG)])
    assert env.datadumps_dir == str(tmp_path)
    assert (env.processed_item_count, env.failed_processed_item_count) == (1, 1)
    assert len(env.rollouts_to_save_buffer) == 1
    assert len(env.failed_rollouts_to_save_buffer) == 1
    await env._save_rollouts_to_jsonl()
    await env._save_failed_rollouts_to_jsonl()
    assert (env.save_file_batch_num, env.failed_save_file_batch_num) == (1, 1)
    assert env.rollouts_to_save_buffer == []
    await env.close()
    run_uuid = env.run_uuid
    assert {path.name for path in tmp_path.iterdir()} == {
        f"reasoning_gym_environment_rollouts_{run_uuid}_0000.jsonl",
        f"reasoning_gym_environment_FAILED_rollouts_{run_uuid}_0000.jsonl",
    }


# -- assignments -----------------------------------------------------------------------

ASSIGNED = {
    "test_items_with_scorers": [({"question": "?", "answer": "1"}, None)],
    "rollouts_to_save_buffer": [{"item_id": "own"}],
    "failed_rollouts_to_save_buffer": [{"item_id": "own"}],
    "processed_item_count": 7,
    "failed_processed_item_count": 8,
    "save_file_batch_num": 2,
    "failed_save_file_batch_num": 3,
    "percent_correct_buffer": [1.0, 0.0],
    "eval_metrics": [("eval/own", 1.0)],
    "rollouts_for_wandb": [[("text", 1.0, "4", "sums")]],
    "completion_lengths": [12],
    "task_complexity_levels": {"gcd": 0.5},
    "task_performance_history": {},
    "task_group_counts": {},
    "task_curricula": {"gcd": None},
    "run_uuid": "own",
    "logger": logging.getLogger("own"),
    "iter": 0,
}
"""Attributes of the original, all plain: what is assigned is read again."""


@pytest.mark.processes
async def test_what_is_assigned_to_a_name_of_the_original_is_read_again(tmp_path):
    env = build_env()
    assigned = ASSIGNED | {"datadumps_dir": str(tmp_path)}
    for is_set_up in (False, True):
        if is_set_up:
            await env.setup()
        for name, value in assigned.items():
            setattr(env, name, value)
        assert {name: getattr(env, name) for name in assigned} == assigned
    await env.close()


@pytest.mark.processes
async def test_the_prompt_of_the_module_can_be_assigned(monkeypatch):
    monkeypatch.setattr(reasoning_gym_environment, "system_prompt", "Mine.")
    async with ready_env() as env:
        messages, _, _ = await env.get_next_item()
    assert messages[0]["content"] == "Mine."


@pytest.mark.processes
async def test_setup_makes_no_evaluation_item_and_the_first_read_makes_all():
    async with ready_env() as env:
        done = env._items.evaluation.done
        items = env.test_items_with_scorers
        items.append("own")
        assert done == 0 and len(items) == len(env.task_names) + 1
        assert env.test_items_with_scorers is items


@pytest.mark.processes
async def test_tasks_assigned_before_the_setup_are_those_of_the_run():
    env = build_env()
    env.task_names = ["gcd"]
    env.rng = random.Random()
    env.task_names = []  # as the constructor of the original does
    await env.setup()
    with pytest.raises(AttributeError, match=r"env\.tasks"):
        env.task_names = ["lcm"]
    with pytest.raises(AttributeError, match=r"env\.seed"):
        env.rng = random.Random()
    await env.close()
    assert env.task_names == ["gcd"]
