"""Inference servers and an API that misbehave on purpose, served in this process."""

from __future__ import annotations

import contextlib

from rg_env.demo.inference_server import (
    InferenceServer,
    Pace,
    build_app,
    serve_app,
)
from rg_env.demo.model import TextModel
from tests.support.faults import LONE, NASTY, Script, always, listed
from tests.support.spoilt_api import SpoiltApi
from tests.support.text_models import Arithmetic

__all__ = [
    "LONE",
    "NASTY",
    "FaultyServer",
    "always",
    "faulty_api",
    "faulty_server",
    "listed",
]


class FaultyServer(InferenceServer):
    """A server whose model can add, find the greatest common divisor, and guess."""

    def __init__(self, script: Script, seed: int = 0, latency_s: float = 0.0) -> None:
        model = TextModel(Arithmetic(seed), seed)
        super().__init__(model, Pace(1000 * latency_s), script, seed)

    @property
    def requests(self):
        return self.faults.requests

    @property
    def choices(self):
        return self.counts.completions

    @property
    def script(self):
        return self.faults.script

    @script.setter
    def script(self, script):
        self.faults.script = script

    def begin(self, script):
        """Misbehave from now on, and count from now on."""
        self.script, self.faults.requests, self.trials = script, 0, 0
        self.arrivals.clear()

    def app(self):
        return build_app(self)


class FaultyApi(SpoiltApi):
    """The door, with its count of requests."""

    @property
    def requests(self):
        return self.faults.requests


@contextlib.asynccontextmanager
async def faulty_server(script: Script, **settings):
    """Serve in this process; yield the server, with its `url`."""
    server = FaultyServer(script, **settings)
    async with serve_app(server.app()) as server.url:
        yield server


@contextlib.asynccontextmanager
async def faulty_api(script: Script, url: str, only: str | None = None):
    """Serve in this process; yield the stand-in, with its `url`."""
    api = FaultyApi(script, url, only)
    async with serve_app(api.app()) as api.url:
        yield api
