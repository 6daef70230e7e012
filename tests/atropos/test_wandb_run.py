"""The rows of the W&B table, and the framework's log."""

import asyncio

from tests.support.parts import RIGHT, WRONG, build_env, rollout


def test_more_rollouts_for_wandb_than_a_group_has_lose_nothing():
    async def run():
        env = build_env(num_rollouts_per_group_for_logging=9, num_rollouts_to_keep=2)
        env.config.use_wandb = True
        scored = await env.score([rollout(RIGHT), rollout(WRONG)])
        for _ in range(3):
            await env.add_rollouts_for_wandb(scored)
        await env.close()
        return env.rollouts_for_wandb

    kept = asyncio.run(run())
    assert [len(rollouts) for rollouts in kept] == [2, 2]


def test_nothing_is_decoded_for_wandb_when_it_is_off():
    async def run():
        env = build_env()
        await env.add_rollouts_for_wandb({"tokens": "not even a list"})
        await env.close()
        return env.rollouts_for_wandb

    assert asyncio.run(run()) == []


def test_the_table_of_rollouts_has_the_columns_of_the_original():
    async def run():
        env = build_env(num_rollouts_per_group_for_logging=-1)
        env.config.use_wandb = True
        scored = await env.score([rollout(RIGHT), rollout(WRONG)])
        await env.add_rollouts_for_wandb(scored)
        numbers = await env.create_rollout_table({})
        await env.close()
        return numbers["train/rollouts"]

    table = asyncio.run(run())
    assert table.columns == ["full_text", "score", "expected_answer", "task_name"]
    assert [row[1:] for row in table.data] == [[1.0, "4", "sums"], [0.0, "4", "sums"]]


def test_without_rollouts_there_is_no_table():
    async def run():
        env = build_env()
        numbers = await env.create_rollout_table({"mine": 1})
        await env.close()
        return numbers

    assert asyncio.run(run()) == {"mine": 1}
