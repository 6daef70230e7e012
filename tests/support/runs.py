"""Runs of an environment in this process, and what tests read of its items."""

import asyncio
import errno
import os

from reasoning_gym_environment import ReasoningGymEnv
from rg_env.demo.simulated_model import SimulatedClient
from rg_env.demo.stand_in_trainer import StandInTrainer, TrainerConfig
from rg_env.results.rows import ResultFile
from tests.support.parts import GUARD_S, build_env, rollout


def trainer_config(api="", steps=10**6, **changes):
    """Return the settings of a trainer whose batches are four groups of four."""
    given = {"batch_size": 16, "group_size": 4, "max_token_len": 2048}
    return TrainerConfig(api_url=api, num_steps=steps, **(given | changes))


async def serve(env, config, steps):
    """Run an environment and a trainer to their ends; return the trainer's counts."""
    trainer = StandInTrainer(config)
    work = [
        asyncio.create_task(trainer.run(steps)),
        asyncio.create_task(env.env_manager()),
    ]
    try:
        await asyncio.wait_for(asyncio.gather(*work), GUARD_S)
    finally:
        for task in work:
            task.cancel()
        await asyncio.gather(*work, return_exceptions=True)
    return trainer.counts


def process_env(url, path, groups, kind="vllm", cls=ReasoningGymEnv, **changes):
    """Build an environment whose `process_manager` writes some groups to a file."""
    given = {"ensure_scores_are_not_same": False, "include_messages": True}
    given["data_path_to_save_groups"] = str(path)
    env = build_env(url, kind, cls, **(given | changes))
    env.n_groups_to_process, env.group_size_to_process = groups, env.config.group_size
    return env


async def status_of(work):
    try:
        await work
    except SystemExit as end:
        return end.code
    return 0


def completions_of(monkeypatch):
    """Return a list of all completions that the simulated model writes from now on."""
    written, ask = [], SimulatedClient.ask

    async def noted(*args):
        completions = await ask(*args)
        written.extend(completions)
        return completions

    monkeypatch.setattr(SimulatedClient, "ask", noted)
    return written


def fill_disk(monkeypatch):
    """Let rows and samples find the disk full."""

    def refused(file, line):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(ResultFile, "append", refused)


async def next_items(env, n):
    return [await env.get_next_item() for _ in range(n)]


def questions(items):
    return [item[1]["question"] for item in items]


def rollout_of(item, text, **how):
    """Return a rollout of an item with a completion, as `score` takes it."""
    messages, entry, dataset = item
    made = rollout(text, dataset=dataset, entry=entry, **how)
    return made | {"messages": [*messages, {"role": "assistant", "content": text}]}
