"""The health of one inference server, which is up or down.

A server is down at the start and after several failures in a row, until a probe passes.
A single failure, whose reason may be its item, ejects it only if the reply says when to
try again.

Mends B22 of docs/host_defects.md: a failing server is ejected. If it is gone, the
requests that hang there end, so that `Servers` sends them elsewhere.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable
from typing import Any

from atroposlib.envs.server_handling.server_baseline import APIServer

from rg_env.inference.connection import (
    ABOUT_THE_REQUEST,
    NO_REPLY,
    SILENCE,
    Connection,
    Failure,
    failure_of,
    secrets_of,
)
from rg_env.logs import should_log
from rg_env.shutdown import cancel_and_wait

logger = logging.getLogger(__name__)

# Time limit of a probe: its short completions may wait behind many other requests.
PROBE_WITHIN_S = 120.0

EJECTED_AFTER_FAILURES = 3

HEALTH_EVERY_S = 1.0
# After this many health checks without an answer, the server is ejected, and its
# requests in flight end.
HEALTH_MISSES_IN_A_ROW = 3

# The back-off of requests and probes grows by this with each failure.
PAUSE_S = 0.5
MAX_PAUSE_S = 10.0


def back_off_s(tries: int, retry_after_s: float = 0.0) -> float:
    """Return the pause before the next try, at least as long as the server requests."""
    pause_s = min(PAUSE_S * tries, MAX_PAUSE_S)
    # Jitter, because many environments may wait for one server.
    return max(pause_s, retry_after_s) * random.uniform(1.0, 1.25)


class WatchedServer(APIServer):
    """A server of the framework that is watched; a subclass has `_find_route`.

    Attributes:
        is_up: Whether the server is queried.
        failure: The newest failure, which says why the server is down.
        on_failure: Called with each failure, probes included.
        connection: The connections to the server.
        check_task: The task that watches the server.
        ejections: How often it went down, the start included.
    """

    def __init__(self, config: Any, reasoning_config: Any = None) -> None:
        super().__init__(config, reasoning_config=reasoning_config)
        self.is_up = False
        self.failure = SILENCE
        self.on_failure: Callable[[Failure], object] = lambda _: None
        self.connection = Connection(config)
        self.check_task: asyncio.Future[None] | None = None
        self.initialized = True  # otherwise the framework would start its own check
        self.ejections = 1
        self._failures = 0  # since the last answer or probe that passed
        self._probes = 0  # since the last answer
        self._retry_at_s = 0.0  # by its `Retry-After`, on the monotonic clock

    @property
    def server_healthy(self) -> bool:
        """Whether the framework may choose the server; it is watched from now on."""
        self.watch()
        return self.is_up

    @server_healthy.setter
    def server_healthy(self, _: bool) -> None:
        pass  # the framework's own verdict is ignored

    def note_answer(self) -> None:
        """Record an answer, which ends a row of failures."""
        self._failures = 0
        self._probes = 1

    def note_failure(self, failure: Failure) -> None:
        """Record a failure, and eject the server after several in a row."""
        self.failure = failure
        if failure.status not in ABOUT_THE_REQUEST:
            self._failures += 1
        retry_at_s = time.monotonic() + failure.retry_after_s
        self._retry_at_s = max(self._retry_at_s, retry_at_s)
        if self._failures >= EJECTED_AFTER_FAILURES or failure.retry_after_s:
            self.eject(failure)
        self.on_failure(failure)

    def eject(self, failure: Failure) -> None:
        """Stop using the server, until a probe passes."""
        self.failure = failure
        if not self.is_up:
            return
        self.is_up = False
        self.ejections += 1
        if should_log(self.ejections):
            # A server that says when to retry is healthy.
            level = logging.INFO if failure.retry_after_s else logging.WARNING
            text = "inference at %s is not used for now (%.300s)"
            logger.log(level, text, self.config.base_url, failure.text)

    def watch(self) -> None:
        """Start the task that watches the server, unless it runs."""
        if self.check_task is None or self.check_task.done():
            self.check_task = asyncio.ensure_future(self.check_server_status_task())

    async def check_server_status_task(self, chat_completion: bool = True) -> None:
        """Check the health of the server while it is up, and probe it while it is down.

        Never returns; the framework calls it by this name.
        """
        missed = 0
        while True:
            try:
                if self.is_up:
                    await self._check_health()
                else:
                    await self._probe_after_pause()
                missed = 0
            except Exception as error:  # noqa: BLE001 - any error means that it is down
                failure = failure_of(error, *secrets_of(self.config))
                is_gone = self.is_up or failure.symptom == NO_REPLY
                missed += 1
                if not self.is_up:
                    self.note_failure(failure)
                elif missed >= HEALTH_MISSES_IN_A_ROW:
                    self.eject(failure)
                if is_gone and not self.is_up:
                    await self.connection.close()  # this ends its requests

    async def _check_health(self) -> None:
        await asyncio.sleep(HEALTH_EVERY_S)
        if self.config.health_check:
            await self.connection.check_health()

    async def _probe_after_pause(self) -> None:
        pause_s = back_off_s(self._probes, self._retry_at_s - time.monotonic())
        self._probes += 1
        await asyncio.sleep(pause_s)
        await asyncio.wait_for(self.probe(), PROBE_WITHIN_S)

    async def probe(self) -> None:
        """Find out how to query the server, and mark it as up.

        Raises:
            RequestFailedError: The server cannot be used.
        """
        await self._find_route()
        self.is_up = True
        self._failures = 0

    async def _find_route(self) -> None:
        raise NotImplementedError

    async def close(self) -> None:
        """Stop watching the server and close the connections; may be called twice."""
        await cancel_and_wait([self.check_task])
        await self.connection.close()
