"""A real Atropos API as a trainer uses it, and an environment that it knows.

It needs no worker process and no model to register, to send a group and to take leave.
"""

import asyncio
import contextlib
from types import SimpleNamespace

import httpx

from reasoning_gym_environment import ReasoningGymEnv
from rg_env.atropos.api_client import ApiSession
from tests.support import groups
from tests.support.parts import GUARD_S, build_env, empty_api

SIZE = 2
"""Rollouts of a group; a batch is one group, so that the trainer gets it at once."""

LIMIT = 256
"""The trainer's limit of length, in tokens."""


TRAINER = {
    "wandb_group": "g",
    "wandb_project": "p",
    "batch_size": SIZE,
    "max_token_len": LIMIT,
    "checkpoint_dir": "",
    "save_checkpoint_interval": 0,
    "starting_step": 0,
    "num_steps": 10**6,
}
ENVIRONMENT = {
    "max_token_length": 2048,
    "desired_name": "other",
    "weight": 1.0,
    "group_size": SIZE,
}
"""What a trainer, and an environment, registers with."""


class RealApi:
    def __init__(self, url):
        self.url = url

    def query(self, method, path, payload=None):
        reply = httpx.request(method, self.url + path, json=payload, timeout=30)
        return reply.raise_for_status().json()

    def forget(self):
        """Lose all that it knows, as a restart does."""
        empty_api(self.url)

    def start_trainer(self, max_token_len=LIMIT, batch_size=SIZE):
        sizes = {"max_token_len": max_token_len, "batch_size": batch_size}
        self.query("POST", "/register", TRAINER | sizes)
        self.query("GET", "/batch")

    def batches(self):
        taken = []
        while batch := self.query("GET", "/batch")["batch"]:
            taken += batch
        return taken

    def connected(self):
        """Return how many environments it counts in, by a probe's equal share."""
        me = {"env_id": self.query("POST", "/register-env", ENVIRONMENT)["env_id"]}
        share = self.query("GET", "/status-env", me)["env_weight"]
        self.query("POST", "/disconnect-env", me)
        return round(1 / share) - 1


def group(text="x"):
    return {**groups.group(text=text), "overrides": [{}, {}], "task": "gcd"}


SETTINGS = SimpleNamespace(
    inference_weight=1.0,
    group_size=SIZE,
    max_token_length=2048,
    min_batch_allocation=0.5,
)


@contextlib.asynccontextmanager
async def session_at(url):
    """Yield the session of one that is registered with these settings."""
    session = ApiSession(url)
    try:
        await session.register("env", SETTINGS)
        yield session
    finally:
        await session.leave()


@contextlib.asynccontextmanager
async def registered(url, cls=ReasoningGymEnv, **changes):
    given = {"group_size": SIZE, "rollout_server_url": url} | changes
    env = build_env(cls=cls, **given)
    try:
        await env.register_env()
        await env.get_server_info()
        await env.get_status()
        yield env
    finally:
        await env.close()


def in_time(work):
    return asyncio.wait_for(work, GUARD_S)


class EndsError(RuntimeError):
    """What ends a run in a test."""
