"""Environments that are registered at a real API with a trainer that has started."""

import aiohttp

from rg_env.demo.api_process import running_api
from tests.support.parts import (
    build_env,
)


async def registered(http, api, batch_size):
    """Be a trainer that has started."""
    values = {
        "wandb_group": "g",
        "wandb_project": "p",
        "batch_size": batch_size,
        "max_token_len": 512,
        "checkpoint_dir": "",
        "save_checkpoint_interval": 0,
        "starting_step": 0,
        "num_steps": 33,
    }
    async with http.post(f"{api}/register", json=values):
        pass
    async with http.get(f"{api}/batch"):
        pass


async def after_registration(batch_size, work, **changes):
    async with running_api() as api, aiohttp.ClientSession() as http:
        await registered(http, api, batch_size)
        env = build_env(rollout_server_url=api, **changes)
        try:
            await env.register_env()
            await env.get_server_info()
            return await work(env)
        finally:
            await env.close()
