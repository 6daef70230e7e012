"""The rows of the W&B table, and the framework's log."""

import asyncio

from parts import (
    RIGHT,
    WRONG,
    build_env,
    rollout,
)


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
