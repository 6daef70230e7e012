"""The rows of the W&B table, and the framework's log."""

import asyncio

import pytest

from tests.support.parts import RIGHT, WRONG, build_env, rollout


def in_env(work, **changes):
    """Do work in an environment with W&B on."""

    async def run():
        env = build_env(**changes)
        env.config.use_wandb = True
        try:
            return await work(env)
        finally:
            await env.close()

    return asyncio.run(run())


def test_more_rollouts_for_wandb_than_a_group_has_lose_nothing():
    async def work(env):
        scored = await env.score([rollout(RIGHT), rollout(WRONG)])
        for _ in range(3):
            await env.add_rollouts_for_wandb(scored)
        return env.rollouts_for_wandb

    limits = {"num_rollouts_per_group_for_logging": 9, "num_rollouts_to_keep": 2}
    assert [len(rollouts) for rollouts in in_env(work, **limits)] == [2, 2]


@pytest.mark.slow
def test_the_table_of_rollouts_has_the_columns_of_the_original():
    async def work(env):
        scored = await env.score([rollout(RIGHT), rollout(WRONG)])
        await env.add_rollouts_for_wandb(scored)
        return await env.create_rollout_table({})

    numbers = in_env(work, num_rollouts_per_group_for_logging=-1)
    table = numbers["train/rollouts"]
    assert table.columns == ["full_text", "score", "expected_answer", "task_name"]
    assert [row[1:] for row in table.data] == [[1.0, "4", "sums"], [0.0, "4", "sums"]]
