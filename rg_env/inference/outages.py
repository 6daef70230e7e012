"""Whether the inference servers answer, said once per outage.

The framework's clients wait without a word while a server is unhealthy. This watches
their health and the failed requests, names the URLs when nothing is answered and when
that is over, and tells `process` and `evaluate` when to give up.

A request that fails while others are answered is no outage: it is counted by its kind,
and each kind is named ever more seldom. Of several servers, one that is left out is
named when that begins and when it is over.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import time
from collections import Counter
from collections.abc import Coroutine, Sequence
from functools import partial
from typing import Any, TypeVar

from rg_env import patience
from rg_env.inference.circuit import why_all_out
from rg_env.inference.client import Client
from rg_env.inference.inference import InferenceFailed
from rg_env.inference.replies import BadReplyError

logger = logging.getLogger(__name__)

T = TypeVar("T")

_STATUS = re.compile(r"(?:status|code|ClientResponseError):? *([45]\d\d)\b")
_NAME = re.compile(r"([A-Za-z_]+(?:Error|Timeout|Exception))\b")
_END = re.compile(r"\bfinish_reason (\w{1,32})")


def kind_of(reason: str) -> str:
    """Return what is counted of what `InferenceFailed` says: a status or a name."""
    status, name = _STATUS.search(reason), _NAME.match(reason)
    if status is not None:
        return f"status_{status[1]}"
    if (end := _END.search(reason)) is not None:
        return f"finish_reason_{end[1]}"
    return name[1] if name is not None else "unusable"


class OutageWatch:
    """Watches the servers of a run.

    Args:
        servers: The framework's server objects.

    Attributes:
        gave_up: Set once it is time to end.
        failures: Failed requests since the run began, those tried again included.
        kinds: The same by kind.
    """

    def __init__(self, servers: Sequence[Any]) -> None:
        self._servers = servers
        self._give_up_after_s: float | None = None
        self._watching: asyncio.Task[None] | None = None
        self._failing_since: float | None = None
        self._said_s: float | None = None
        self._has_answered = False
        self._newest_reason = "no request is answered"
        self.gave_up = asyncio.Event()
        self.failures = 0
        self.kinds: Counter[str] = Counter()
        for server in servers if len(servers) > 1 else ():
            if isinstance(server, Client):
                server.circuit.on_change = partial(self._say_circuit, server)

    @property
    def urls(self) -> str:
        """Where the servers are, for people."""
        configs = [getattr(server, "config", None) for server in self._servers]
        return ", ".join(config.base_url for config in configs if config is not None)

    @property
    def is_down(self) -> bool:
        """Whether an outage is going on."""
        return self._said_s is not None

    def start(self, *, give_up_after_s: float | None) -> None:
        """Begin to watch the servers' health.

        Args:
            give_up_after_s: Seconds without an answer, while requests fail, after which
                `gave_up` is set; None never gives up.
        """
        self._give_up_after_s = give_up_after_s
        self._watching = asyncio.create_task(self._watch())

    async def stop(self) -> None:
        """Stop watching; may be called twice."""
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)
            self._watching = None

    async def unless_given_up(self, querying: Coroutine[Any, Any, T]) -> T:
        """Wait for an answer, but no longer than until it is time to give up.

        Raises:
            InferenceFailed: The request failed or was given up.
        """
        request = asyncio.ensure_future(querying)
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

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(patience.OUTAGE_LOOK_EVERY_S)
            if (reason := why_all_out(self._servers)) is not None:
                self._note_failing(reason)
            self._check_patience()

    def _note_failing(self, reason: str) -> None:
        if self._failing_since is None:
            self._failing_since = time.monotonic()
        if self._is_outage():
            self._say_down(why_all_out(self._servers) or reason)

    def _is_outage(self) -> bool:
        """Say whether nothing is answered for long, or no server is there to rest."""
        is_lost = why_all_out(self._servers) is not None
        circuits = (getattr(server, "circuit", None) for server in self._servers)
        rests = any(circuit is not None and circuit.is_resting for circuit in circuits)
        return self._failing_s() >= patience.OUTAGE_AFTER_S or (is_lost and not rests)

    def _say_circuit(self, server: Client) -> None:
        url, circuit = server.config.base_url, server.circuit
        if circuit.is_open:
            logger.warning(
                "inference at %s is left out, others are queried (%.300s)",
                url,
                " ".join(circuit.reason.split()),
            )
        else:
            logger.warning("inference at %s is back after %.0f s", url, circuit.open_s)

    def note_presence(self) -> None:
        """A server is there that was not, as is seen without a request.

        The outage ends with an answer; until then its clients may be waiting.
        """
        if self.is_down:
            logger.info("inference is there after %.0f s", self._failing_s())

    def note_answer(self) -> None:
        """A request was answered."""
        if self.is_down:
            logger.log(
                logging.WARNING if self._has_answered else logging.INFO,
                "inference answers%s after %.0f s",
                " again" if self._has_answered else "",
                self._failing_s(),
            )
        self._failing_since = self._said_s = None
        self._has_answered = True

    def note_absence(self, reason: str) -> None:
        """No server is there, as is seen without a request."""
        self._failing_since = self._failing_since or time.monotonic()
        self._say_down(reason)

    async def note_failure(self, reason: str) -> None:
        """A request failed; wait a growing while before the caller tries again."""
        kind = self.note_retry(reason)
        if self.gave_up.is_set():
            return
        self._note_failing(reason)
        count = self.kinds[kind]
        if not self.is_down and count & (count - 1) == 0:  # 1, 2, 4, 8 ...
            logger.warning(
                "an inference request failed (%s, %d so far): %.200s",
                kind,
                count,
                " ".join(reason.split()),
            )
        self._check_patience()
        # Half the time that nothing was answered, within bounds.
        pause_s = max(patience.OUTAGE_FIRST_PAUSE_S, self._failing_s() / 2)
        with contextlib.suppress(asyncio.TimeoutError):
            longest_s = patience.OUTAGE_LONGEST_PAUSE_S
            await asyncio.wait_for(self.gave_up.wait(), min(longest_s, pause_s))

    def note_retry(self, reason: str) -> str:
        """Count a request that failed and is tried again; return its kind."""
        self._newest_reason = reason
        self.failures += 1
        kind = kind_of(reason)
        self.kinds[kind] += 1
        return kind

    def _failing_s(self) -> float:
        """Return for how long nothing but failures has come."""
        began = self._failing_since
        return 0.0 if began is None else time.monotonic() - began

    def _say_down(self, reason: str) -> None:
        """Name the servers at the beginning of an outage, and once in a while."""
        now = time.monotonic()
        if self._said_s is not None and (
            now - self._said_s < patience.OUTAGE_SAY_AGAIN_S
        ):
            return
        self._said_s = now
        how_long = ""
        if self._give_up_after_s is not None:
            left_s = max(0.0, self._give_up_after_s - self._failing_s())
            how_long = f" for {round(left_s, 1):g} s (env.give_up_after_s)"
        logger.log(
            # At a start it is normal: programs are started in any order.
            logging.ERROR if self._has_answered else logging.WARNING,
            "inference at %s %s; trying again%s",
            self.urls,
            self._how(reason),
            how_long,
        )

    def _how(self, reason: str) -> str:
        """Return what the servers do in the place of answering, and what to do."""
        reason = " ".join(reason.split())[:300]
        if _STATUS.search(reason) is not None:
            return f"answers with an error ({reason})"
        kinds: list[type[Exception]] = [BadReplyError, *BadReplyError.__subclasses__()]
        bad = {kind.__name__ for kind in kinds}
        if kind_of(reason) in bad or "usable completions" in reason:
            return f"gives no usable reply ({reason})"
        yet = "" if self._has_answered else " yet"
        what_to_do = "start the server or set --openai.base_url"
        return f"does not answer{yet} ({reason}); {what_to_do}"

    def _check_patience(self) -> None:
        if self._give_up_after_s is None or self._failing_since is None:
            return
        if self._failing_s() >= self._give_up_after_s and not self.gave_up.is_set():
            reason = why_all_out(self._servers) or self._newest_reason
            logger.error(
                "inference at %s %s; giving up after %g s (env.give_up_after_s)",
                self.urls,
                f"({reason:.300})" if self.is_down else self._how(reason),
                self._give_up_after_s,
            )
            self.gave_up.set()
