"""Runs of an environment in this process, and what tests read of its items."""

import asyncio
import contextlib
import errno
import os
import signal
import threading
import time

from rg_env import shutdown
from rg_env.demo import simulated_model
from rg_env.demo.simulated_model import sample_completion
from rg_env.demo.stand_in_trainer import StandInTrainer, TrainerConfig
from rg_env.line_file import read_groups
from rg_env.results.result_file import ResultFile
from rg_env.settings.server_and_launch_settings import SIMULATED
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


def process_env(folder, groups, url=SIMULATED, kind="vllm", **changes):
    """Build an environment whose `process_manager` writes some groups to a file."""
    given = {"ensure_scores_are_not_same": False, "include_messages": True}
    given["data_path_to_save_groups"] = str(folder / "rows.jsonl")
    env = build_env(url, kind, **(given | changes))
    env.n_groups_to_process, env.group_size_to_process = groups, env.config.group_size
    return env


async def processed(folder, groups, *server, **changes):
    """Run `process`; return the environment and the rows of its file."""
    env = process_env(folder, groups, *server, **changes)
    await env.process_manager()
    return env, list(read_groups(env.jsonl_writer.path))


async def evaluated(folder, status=0, **changes):
    """Run `evaluate` with the simulated model to an end with this status."""
    env = build_env(SIMULATED, data_dir_to_save_evals=str(folder), **changes)
    with contextlib.suppress(SystemExit):
        await env._run_evaluate()
    assert env.exit_status == status


def samples(folder):
    return list(read_groups(folder / "samples.jsonl"))


def completions_of(monkeypatch, write=sample_completion):
    """Return a list of what the simulated model is asked for from now on.

    It is written by a function, of which an error is that of a server.
    """
    asked = []

    def noted(known, *how):
        asked.append(known)
        return write(known, *how)

    monkeypatch.setattr(simulated_model, "sample_completion", noted)
    return asked


def interrupted_when(monkeypatch, condition, write=sample_completion):
    """Have Ctrl-C pressed once a condition holds when the simulated model is asked."""
    presses = []

    def pressing(*how):
        if not presses and condition():
            presses.append(signal.SIGINT)
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        return write(*how)

    def begin(status):  # which would end this process after a while
        monkeypatch.setattr(shutdown, "_signal_s", time.monotonic())

    monkeypatch.setattr(shutdown, "_start_deadline", begin)
    return completions_of(monkeypatch, pressing)


def always_wrong(*how):
    """Write a completion without knowing the answer."""
    return "<answer>x</answer>", "wrong"


def fill_disk(monkeypatch):
    """Let rows and samples find the disk full."""

    def refused(file, line):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(ResultFile, "append", refused)


async def next_items(env, n):
    return [await env.get_next_item() for _ in range(n)]


async def score_items(env, count):
    """Sample items and score a group of right answers to each."""
    for _ in range(count):
        item = await env.get_next_item()
        text = f"<answer>{item[1]['answer']}</answer>"
        await env.score([rollout_of(item, text)] * 4)


def questions(items):
    return [item[1]["question"] for item in items]


def rollout_of(item, text, **how):
    """Return a rollout of an item with a completion, as `score` takes it."""
    messages, entry, dataset = item
    made = rollout(text, dataset=dataset, entry=entry, **how)
    return made | {"messages": [*messages, {"role": "assistant", "content": text}]}
