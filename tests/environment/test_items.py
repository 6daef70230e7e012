"""Items of an environment, and how it is begun and ended, without an API."""

import pytest

from reasoning_gym_environment import ReasoningGymEnv, system_prompt
from tests.support.parts import (
    FAST_TASKS,
    build_env,
    env_config,
    ready_env,
    server_config,
)
from tests.support.runs import next_items


@pytest.mark.processes
async def test_close_leaves_no_worker_behind():
    env = build_env()
    await env.setup()
    pool = env._pool
    await env.close()
    await env.close()
    with pytest.raises(Exception, match="closed"):
        pool.call(len, [], deadline_s=1.0)


async def test_it_takes_a_single_server_config():
    env = ReasoningGymEnv(env_config(), server_config("http://127.0.0.1:7/v1"))
    assert [s.config.base_url for s in env.server.servers] == ["http://127.0.0.1:7/v1"]
    await env.close()


async def test_slurm_is_off_unless_asked_for(monkeypatch):
    monkeypatch.setenv("SLURM_JOB_NODELIST", "n[1-3]")
    env = build_env()
    assert len(env.server.servers) == 1
    await env.close()


@pytest.mark.processes
@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, system_prompt),
        ({"system_prompt": "Be brief."}, "Be brief."),
        ({"custom_thinking_prompt": "Think."}, f"Think.\n\n{system_prompt}"),
    ],
)
async def test_the_system_prompt_is_the_imported_one_or_that_of_the_settings(
    changes, expected
):
    async with ready_env(**changes) as env:
        ((messages, *_),) = await next_items(env, 1)
        assert dict(messages[0])["content"] == expected


@pytest.mark.processes
async def test_evaluation_items_do_not_depend_on_the_training_seed_or_the_choice():
    async def evaluation(**changes):
        async with ready_env(**changes) as env:
            return {
                handle.task: entry["question"]
                for entry, handle in env.test_items_with_scorers
            }

    one = await evaluation(seed=1)
    other = await evaluation(seed=2, tasks=FAST_TASKS[:2])
    assert {task: one[task] for task in other} == other


@pytest.mark.parametrize(
    ("trainer", "own", "limit"),
    [(2048, 8192, 2047), (8192, 8192, 8191), (9000, 8192, 8192), (-1, 8192, 8192)],
)
async def test_a_sequence_stays_below_the_trainers_limit_and_its_own(
    trainer, own, limit
):
    env = build_env(max_token_length=own)
    env.max_token_len = trainer
    assert env.limit_tokens == limit
    await env.close()
