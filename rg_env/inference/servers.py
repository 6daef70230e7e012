"""All inference servers of a run: whether any is available, and the log about it.

Until a server has returned a completion, a reply that waiting cannot improve stops the
start and names the setting at fault. After that, it counts as a failed request like any
other, because a server may be replaced during a run of days. An outage is logged once,
with the URLs, and so is its end. If a request fails while others succeed, that is not
an outage: it is counted by kind, and each kind is logged at increasing intervals.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, TypeVar

from rg_env import patience
from rg_env.errors import SettingError
from rg_env.inference.client import Client
from rg_env.inference.probe import ProbeRequest
from rg_env.inference.request_failures import (
    NOTHING,
    UNUSABLE,
    URL,
    Failure,
    RequestFailedError,
)
from rg_env.inference.server_types import CLIENTS
from rg_env.logs import is_worth_a_line

logger = logging.getLogger(__name__)

T = TypeVar("T")


class NoServerError(RequestFailedError):
    """No server was available for a long time, so the item is not at fault."""


class Servers:
    """The servers of a run.

    Args:
        servers: The framework's server objects; only clients of ours are probed.

    Attributes:
        clients: Those of the servers that are ours.
        gave_up: Set once it is time to end.
        failures: Failed requests since the run began, those tried again included.
        kinds: The same by kind.
    """

    def __init__(self, servers: Sequence[Any]) -> None:
        self._servers = servers
        self.clients = [each for each in servers if isinstance(each, Client)]
        self._left_out: set[Client] = set()
        self._give_up_after_s: float | None = None
        self._watching: asyncio.Task[None] | None = None
        self._failing_since: float | None = None
        self._said_s: float | None = None
        self._newest = Failure("NoServerError", "no request is answered", NOTHING)
        self._has_answered = False
        self._end_start: Callable[[], object] | None = None
        self._refused = 0
        self._refusal: SettingError | None = None
        self.gave_up = asyncio.Event()
        self.failures = 0
        self.kinds: Counter[str] = Counter()
        for client in self.clients:
            client.state.on_change = partial(self._say_change, client)

    @property
    def _urls(self) -> str:
        configs = [getattr(server, "config", None) for server in self._servers]
        return ", ".join(config.base_url for config in configs if config is not None)

    @property
    def events(self) -> dict[str, int]:
        """Name and number of what was counted, as it is logged."""
        kinds = {f"failed_requests_{kind}": n for kind, n in self.kinds.items()}
        return {"failed_requests": self.failures, **kinds}

    @property
    def is_down(self) -> bool:
        """Whether an outage is going on."""
        return self._said_s is not None

    def why_none(self) -> Failure | None:
        """Return why no server can be queried now; None if one can."""
        if any(getattr(server, "server_healthy", True) for server in self._servers):
            return None
        if not self.clients:
            return Failure("NoServerError", "the health check fails", NOTHING)
        return self.clients[0].state.failure

    async def ready(self, *, trains: bool) -> Client | None:
        """Wait for a server; return that with the most places, None of one not ours."""
        ends_s = time.monotonic() + patience.LONGEST_WAIT_FOR_SERVER_S
        while True:
            admitting = [client for client in self.clients if client.state.admits]
            probed = [client for client in admitting if client.is_probed]
            if probed:
                places = [(c.sem if trains else c.eval_sem)._value for c in probed]
                return probed[places.index(max(places))]
            for client in admitting:
                client.recover()
            why = self.why_none()
            if why is None and not self.clients:
                return None
            if time.monotonic() > ends_s:
                why = why or self._newest
                said = f"no server is left: {why.said}"
                raise NoServerError(Failure("NoServerError", said, why.how))
            await asyncio.sleep(random.uniform(*patience.LOOK_FOR_SERVER_S))

    # -- the start ---------------------------------------------------------------------

    async def unless_refused(
        self, work: Coroutine[Any, Any, None], request: Callable[[], ProbeRequest]
    ) -> None:
        """Run a command; cancel it if a server rejects the probe permanently.

        Raises:
            SettingError: The setting at fault.
        """
        this = asyncio.current_task()
        self._end_start = this.cancel if this is not None else None
        for client in self.clients:
            # A client that a subclass names is left to itself at the start.
            if type(client) in CLIENTS.values():
                client.probe_request = request()
                client.on_failure = self._end_start_if_refused
                client.recover()
        try:
            await work
        except asyncio.CancelledError:
            # It was not us, but a signal for example.
            if self._refusal is None:
                raise
            raise self._refusal from None
        finally:
            self._end_start = None

    def _end_start_if_refused(self, client: Client, failure: Failure) -> None:
        """A request failed; end the start if the next one has to fail as well."""
        has_begun = any(each.state.has_answered for each in self.clients)
        if has_begun or self._end_start is None or self._refusal is not None:
            return
        setting = failure.setting
        self._refused += setting is None and not failure.is_temporary
        if self._refused >= patience.REFUSALS_BEFORE_FIRST_ANSWER:
            setting = setting or URL
        if setting is not None:
            told = f"{client.config.base_url}{' says' if failure.status else ':'}"
            self._refusal = SettingError(f"{setting}: {told} {failure.sentence}")
            self.gave_up.set()  # requests under way need not be waited for
            self._end_start()

    # -- failed requests ---------------------------------------------------------------

    async def unless_given_up(self, querying: Coroutine[Any, Any, T]) -> T:
        """Wait for an answer, but no longer than until it is time to give up."""
        request = asyncio.ensure_future(querying)
        giving_up = asyncio.ensure_future(self.gave_up.wait())
        both: set[asyncio.Future[Any]] = {request, giving_up}
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            if not request.done():
                said = "given up after env.give_up_after_s"
                raise RequestFailedError(Failure(UNUSABLE, said, NOTHING))
            answer = request.result()
        finally:
            for future in both:
                future.cancel()
        self.note_answer()
        return answer

    def note_retry(self, failure: Failure) -> None:
        """Count a request that failed and is tried again."""
        self.failures += 1
        self.kinds[failure.kind] += 1

    async def note_failure(self, failure: Failure) -> None:
        """A request failed; wait a growing while before the caller tries again."""
        self.note_retry(failure)
        if self.gave_up.is_set():
            return
        self._note_failing(failure)
        count = self.kinds[failure.kind]
        if not self.is_down and is_worth_a_line(count):
            logger.warning(
                "an inference request failed (%s, %d so far): %.200s",
                *(failure.kind, count, failure.said),
            )
        self._give_up_in_time()
        # Half the time that nothing was answered, within bounds.
        pause_s = max(patience.OUTAGE_FIRST_PAUSE_S, self._failing_s() / 2)
        with contextlib.suppress(asyncio.TimeoutError):
            longest_s = patience.OUTAGE_LONGEST_PAUSE_S
            await asyncio.wait_for(self.gave_up.wait(), min(longest_s, pause_s))

    def note_answer(self) -> None:
        """A request was answered."""
        if self.is_down:
            logger.log(
                logging.WARNING if self._has_answered else logging.INFO,
                "inference answers%s after %.0f s",
                *(" again" if self._has_answered else "", self._failing_s()),
            )
        self._failing_since = self._said_s = None
        self._has_answered = True

    # -- an outage ---------------------------------------------------------------------

    def start(self, *, give_up_after_s: float | None) -> None:
        """Begin to watch whether a server is there.

        `gave_up` is set after so many seconds without an answer while requests fail.
        """
        self._give_up_after_s = give_up_after_s
        self._watching = asyncio.create_task(self._watch())

    async def stop(self) -> None:
        """Stop watching; may be called twice."""
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)
            self._watching = None

    async def _watch(self) -> None:
        while not self.gave_up.is_set():
            await asyncio.sleep(patience.OUTAGE_LOOK_EVERY_S)
            # Requests that wait for a server report nothing.
            if (why := self.why_none()) is not None:
                self._note_failing(why)
            self._give_up_in_time()

    def _note_failing(self, failure: Failure) -> None:
        self._newest = failure
        if self._failing_since is None:
            self._failing_since = time.monotonic()
        why = self.why_none()
        is_lost = why is not None and not any(c.state.is_resting for c in self.clients)
        # Nothing was answered for long, or all servers are out and none only rests.
        if is_lost or self._failing_s() >= patience.OUTAGE_AFTER_S:
            self._say_down(why or failure)

    def _failing_s(self) -> float:
        """Return how long all requests have been failing."""
        began = self._failing_since
        return 0.0 if began is None else time.monotonic() - began

    def _give_up_in_time(self) -> None:
        limit_s = self._give_up_after_s
        if limit_s is None or self._failing_since is None or self.gave_up.is_set():
            return
        if self._failing_s() >= limit_s:
            why = self.why_none() or self._newest
            logger.error(
                "inference at %s %s; giving up after %g s (env.give_up_after_s)",
                self._urls,
                f"({why.said:.300})" if self.is_down else self._in_words(why),
                limit_s,
            )
            self.gave_up.set()

    def _in_words(self, failure: Failure) -> str:
        """Describe what the servers do instead of answering, with advice."""
        said = f"({failure.sentence:.300})"
        if failure.how != NOTHING:
            return f"{failure.how} {said}"
        yet = "" if self._has_answered else " yet"
        what_to_do = "start the server or set --openai.base_url"
        return f"{failure.how}{yet} {said}; {what_to_do}"

    def _say_down(self, failure: Failure) -> None:
        """Name the servers at the beginning of an outage, and once in a while."""
        now, said_s = time.monotonic(), self._said_s
        if said_s is not None and now - said_s < patience.OUTAGE_SAY_AGAIN_S:
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
            *(self._urls, self._in_words(failure), how_long),
        )

    def _say_change(self, client: Client) -> None:
        """Name a server that was left out while others are queried, or is back."""
        url, state = client.config.base_url, client.state
        if client in self._left_out and not state.is_out:
            self._left_out.remove(client)
            logger.warning("inference at %s is back after %.0f s", url, state.out_s)
        elif state.is_out and self.why_none() is None:
            self._left_out.add(client)
            logger.warning(
                "inference at %s is not used for now, other servers are (%.300s)",
                *(url, state.failure.sentence),
            )
        elif not state.is_out and self.is_down and not self._has_answered:
            # The outage ends with an answer; until then requests may be waiting.
            logger.info("inference is available after %.0f s", self._failing_s())
