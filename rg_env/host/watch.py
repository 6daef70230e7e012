"""Whether the inference servers answer, said once per episode.

The host's clients wait without a word while a server is unhealthy. This watches their
health and the failed requests, names the URLs when all is down and when it is over,
and tells `process` and `evaluate` when to give up.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

from rg_env.host.inference import InferenceFailed

logger = logging.getLogger(__name__)

T = TypeVar("T")

LOOK_EVERY_S = 1.0
FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 30.0


class InferenceWatch:
    """Watches the servers of a run.

    Args:
        servers: The host's server objects.

    Attributes:
        gave_up: Set once it is time to end.
        failures: Failed requests since the run began.
        episodes: Times that the servers were down.
    """

    def __init__(self, servers: Sequence[Any]) -> None:
        self._servers = servers
        self._give_up_after_s: float | None = None
        self._looking: asyncio.Task[None] | None = None
        self._down_since: float | None = None
        self.gave_up = asyncio.Event()
        self.failures = 0
        self.episodes = 0

    @property
    def urls(self) -> str:
        """Where the servers are, for people."""
        configs = [getattr(server, "config", None) for server in self._servers]
        return ", ".join(config.base_url for config in configs if config is not None)

    def start(self, *, give_up_after_s: float | None) -> None:
        """Begin to look at the servers' health.

        Args:
            give_up_after_s: Seconds without an answer, while requests fail, after which
                `gave_up` is set; None never gives up.
        """
        self._give_up_after_s = give_up_after_s
        self._looking = asyncio.create_task(self._look())

    async def stop(self) -> None:
        """Stop looking; may be called twice."""
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)
            self._looking = None

    async def unless_given_up(self, asking: Coroutine[Any, Any, T]) -> T:
        """Wait for an answer, but no longer than until it is time to give up.

        Raises:
            InferenceFailed: The request failed or was given up.
        """
        request = asyncio.ensure_future(asking)
        giving_up = asyncio.ensure_future(self.gave_up.wait())
        both: set[asyncio.Future[Any]] = {request, giving_up}
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            if not request.done():
                raise InferenceFailed("given up after env.give_up_after_s")
            answer = request.result()
        finally:
            for future in both:
                future.cancel()
        self.note_answer()
        return answer

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            healthy = [getattr(s, "server_healthy", True) for s in self._servers]
            if not any(healthy):
                self._note_down("the health check fails")
            self._check_patience()

    def note_answer(self) -> None:
        """A request was answered."""
        if self._down_since is not None:
            waited_s = time.monotonic() - self._down_since
            logger.warning("inference answers again after %.0f s", waited_s)
        self._down_since = None

    async def note_failure(self, reason: str) -> None:
        """A request failed; wait a growing while before the caller tries again."""
        self.failures += 1
        self._note_down(reason)
        self._check_patience()
        try:
            await asyncio.wait_for(self.gave_up.wait(), self._pause_s())
        except asyncio.TimeoutError:
            return

    def _pause_s(self) -> float:
        """Return half the time that the servers have been down, within bounds."""
        if self._down_since is None:
            return FIRST_PAUSE_S
        down_s = time.monotonic() - self._down_since
        return min(LONGEST_PAUSE_S, max(FIRST_PAUSE_S, down_s / 2))

    def _note_down(self, reason: str) -> None:
        if self._down_since is not None:
            return
        self._down_since = time.monotonic()
        self.episodes += 1
        logger.error(
            "inference at %s does not answer (%s); start the server or set"
            " --openai.base_url; trying again%s",
            self.urls,
            reason,
            ""
            if self._give_up_after_s is None
            else f" for {self._give_up_after_s:g} s (env.give_up_after_s)",
        )

    def _check_patience(self) -> None:
        if self._give_up_after_s is None or self._down_since is None:
            return
        if time.monotonic() - self._down_since >= self._give_up_after_s:
            if not self.gave_up.is_set():
                logger.error("inference at %s: giving up", self.urls)
            self.gave_up.set()
