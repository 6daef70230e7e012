"""The inference servers of a run: groups of completions, and whether a server is there.

For training, every server is queried for token ids and log-probabilities. Otherwise a
server that returns none, or that has the type openai, is queried as a chat. Whatever
goes wrong with a request is a `RequestFailedError`, and never a wrong answer.

Until a server has returned a completion, a reply that waiting cannot improve stops the
start and names the setting at fault. After that, it counts as a failed request like any
other, because a server may be replaced during a run of days. An outage is logged once,
with the URLs, and so is its end. If a request fails while others succeed, that is not
an outage: it is counted by kind, and each kind is logged at increasing intervals.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
import random
import time
from collections import Counter
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from rg_env.errors import SettingError
from rg_env.inference.client import Client, ServerLeftOutError
from rg_env.inference.completions import Completion, Prompt, Sampling
from rg_env.inference.probe import ProbeRequest
from rg_env.inference.request_failures import (
    NO_SERVER,
    NOTHING,
    UNUSABLE,
    Failure,
    RequestFailedError,
)
from rg_env.logs import is_worth_a_line

logger = logging.getLogger(__name__)

COMPLETION_TRIES = 3
"""Requests for one group, each for the choices that are missing, before it failed."""

COMPLETION_FIRST_PAUSE_S, COMPLETION_LONGEST_PAUSE_S = 0.5, 10.0

LONGEST_WAIT_FOR_SERVER_S = 60.0
"""For a server to query. A group that waited longer could be cancelled, and its item be
lost after a few times; one that failed because none is there is free to come back."""

LOOK_FOR_SERVER_S = (0.05, 0.2)
"""By chance in between, so that all that wait do not query at one moment."""

OUTAGE_AFTER_S = 2.0
"""Nothing but failures of all servers for so long is an outage."""

OUTAGE_LOOK_EVERY_S = 1.0
OUTAGE_FIRST_PAUSE_S, OUTAGE_LONGEST_PAUSE_S = 0.5, 30.0
OUTAGE_SAY_AGAIN_S = 60.0


class NoServerError(RequestFailedError):
    """No server was available for a long time, so the item is not at fault."""


class Servers:
    """The servers of a run.

    Args:
        clients: One for each; those that are not ours are not used.
        tokenizer: The environment's tokenizer.

    Attributes:
        gave_up: Set once it is time to end.
        kinds: Failed requests by kind since the run began, those tried again included.
    """

    def __init__(self, clients: list[Any], tokenizer: Any) -> None:
        self.clients = [each for each in clients if isinstance(each, Client)]
        self.gave_up = asyncio.Event()
        self.kinds: Counter[str] = Counter()
        self._left_out: set[Client] = set()
        self._give_up_after_s: float | None = None
        self._watching: asyncio.Task[None] | None = None
        self._failing_since: float | None = None
        self._logged_s: float | None = None
        self._newest = NO_SERVER
        self._has_answered = False
        self._starting: asyncio.Task[Any] | None = None
        self._refusal: SettingError | None = None
        for client in self.clients:
            client.on_change = partial(self._log_change, client)
            client.on_failure = partial(self._end_start_if_refused, client)
            client.tokenizer = client.tokenizer or tokenizer

    def require_tokens(self) -> None:
        """Query for token ids and log-probabilities alone, as a trainer needs them."""
        for client in self.clients:
            client.needs_tokens = True

    @property
    def failures(self) -> int:
        """Failed requests since the run began."""
        return self.kinds.total()

    @property
    def events(self) -> dict[str, int]:
        """What is counted, by the names of metrics."""
        kinds = {f"failed_requests_{kind}": n for kind, n in self.kinds.items()}
        return {"failed_requests": self.failures, **kinds}

    @property
    def is_down(self) -> bool:
        """Whether an outage is going on."""
        return self._logged_s is not None

    # -- completions -------------------------------------------------------------------

    async def generate(
        self,
        prompt: Prompt,
        n: int,
        sampling: Sampling,
        on_reply: Callable[[], None] | None = None,
    ) -> list[Completion]:
        """Sample exactly `n` completions of one prompt, of at most `max_tokens` each.

        `on_reply` is called when a reply has come, before it is read.

        Raises:
            RequestFailedError: No usable reply, or too few choices, in
                `COMPLETION_TRIES`; or it is time to give up.
        """
        request = asyncio.ensure_future(self._generate(prompt, n, sampling, on_reply))
        giving_up = asyncio.ensure_future(self.gave_up.wait())
        try:
            await asyncio.wait(
                {request, giving_up}, return_when=asyncio.FIRST_COMPLETED
            )
            if not request.done():
                text = "given up after env.give_up_after_s"
                raise RequestFailedError(Failure(UNUSABLE, text, NOTHING))
            completions = request.result()
        finally:
            request.cancel()
            giving_up.cancel()
        self.note_answer()
        return completions

    async def _generate(
        self,
        prompt: Prompt,
        n: int,
        sampling: Sampling,
        on_reply: Callable[[], None] | None,
    ) -> list[Completion]:
        limit = len(prompt.tokens) + sampling.max_tokens
        usable: list[Completion] = []
        tries = 0
        while len(usable) < n:
            client = await self._free_client(trains=sampling.split == "train")
            try:
                missing = n - len(usable)
                some = await client.complete(prompt, missing, sampling, on_reply)
                usable += [each.cut(limit) for each in some if each.unusable is None]
                whys = [each.unusable for each in some if each.unusable is not None]
                why = whys[0] if whys else Failure(UNUSABLE, "fewer were returned")
                text = f"{len(usable)} of {n} usable completions ({why.text})"
                failure = dataclasses.replace(why, text=text)
            except ServerLeftOutError:
                await asyncio.sleep(random.uniform(*LOOK_FOR_SERVER_S))
                continue
            except RequestFailedError as error:
                failure = error.failure
            tries += 1
            if len(usable) < n:
                if tries == COMPLETION_TRIES:
                    raise RequestFailedError(failure)
                self.note_retry(failure)
                pause_s = COMPLETION_FIRST_PAUSE_S * 2 ** (tries - 1)
                pause_s = min(pause_s, COMPLETION_LONGEST_PAUSE_S)
                await asyncio.sleep(pause_s * random.uniform(0.5, 1.5))
        return usable[:n]

    async def _free_client(self, *, trains: bool) -> Client:
        """Wait for a server that was probed; return that with the most places."""
        ends_s = time.monotonic() + LONGEST_WAIT_FOR_SERVER_S
        while True:
            admitting = [client for client in self.clients if client.admits]
            probed = [client for client in admitting if client.is_probed]
            if probed:
                places = [(c.sem if trains else c.eval_sem)._value for c in probed]
                return probed[places.index(max(places))]
            for client in admitting:
                client.recover()
            if time.monotonic() > ends_s:
                why = self.why_none() or self._newest
                text = f"no server is left: {why.text}"
                raise NoServerError(Failure("NoServerError", text, why.how))
            await asyncio.sleep(random.uniform(*LOOK_FOR_SERVER_S))

    # -- the start ---------------------------------------------------------------------

    async def unless_refused(
        self, work: Coroutine[Any, Any, None], request: Callable[[], ProbeRequest]
    ) -> None:
        """Run a command; cancel it if a server rejects the probe permanently.

        Raises:
            SettingError: The setting at fault.
        """
        self._starting = asyncio.current_task()
        for client in self.clients:
            client.probe_request = request()
            client.recover()
        try:
            await work
        except asyncio.CancelledError:
            # It was not us, but a signal for example.
            if self._refusal is None:
                raise
            raise self._refusal from None
        finally:
            self._starting = None

    def _end_start_if_refused(self, client: Client, failure: Failure) -> None:
        """A request failed; end the start if the next one has to fail as well."""
        has_begun = any(each.has_answered for each in self.clients)
        if has_begun or self._starting is None or self._refusal is not None:
            return
        if failure.setting is not None:
            verb = " says" if failure.status else ":"
            text = f"{client.config.base_url}{verb} {failure.text}"
            self._refusal = SettingError(f"{failure.setting}: {text}")
            self.gave_up.set()  # requests under way need not be waited for
            self._starting.cancel()

    # -- failed requests ---------------------------------------------------------------

    def note_retry(self, failure: Failure) -> None:
        """Count a request that failed and is tried again."""
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
                *(failure.kind, count, failure.text),
            )
        # Half the time that nothing was answered, within bounds.
        pause_s = max(OUTAGE_FIRST_PAUSE_S, self._failing_s() / 2)
        pause_s = min(OUTAGE_LONGEST_PAUSE_S, pause_s)
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self.gave_up.wait(), pause_s)

    def note_answer(self) -> None:
        """A request was answered."""
        if self.is_down:
            again = " again" if self._has_answered else ""
            logger.warning("inference answers%s after %.0f s", again, self._failing_s())
        self._failing_since = self._logged_s = None
        self._has_answered = True

    # -- an outage ---------------------------------------------------------------------

    def why_none(self) -> Failure | None:
        """Return why no server can be queried now; None if one can."""
        if any(client.admits for client in self.clients):
            return None
        return self.clients[0].failure if self.clients else self._newest

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
            await asyncio.sleep(OUTAGE_LOOK_EVERY_S)
            # Requests that wait for a server report nothing.
            if (why := self.why_none()) is not None:
                self._note_failing(why)

    def _failing_s(self) -> float:
        """Return how long all requests have been failing."""
        began = self._failing_since
        return 0.0 if began is None else time.monotonic() - began

    def _note_failing(self, failure: Failure) -> None:
        """Log the beginning of an outage, that it goes on, and the giving up."""
        self._newest, now, none = failure, time.monotonic(), self.why_none()
        self._failing_since = self._failing_since or now
        is_lost = none is not None and not any(c.is_resting for c in self.clients)
        # Nothing was answered for long, or all servers are out and none only rests.
        is_outage = is_lost or self._failing_s() >= OUTAGE_AFTER_S
        is_due = self._logged_s is None or (now - self._logged_s >= OUTAGE_SAY_AGAIN_S)
        limit_s, why = self._give_up_after_s, none or failure
        urls = ", ".join(client.config.base_url for client in self.clients)
        if limit_s is not None and self._failing_s() >= limit_s:
            logger.error(
                "inference at %s %s (%.300s); giving up after %g s"
                " (env.give_up_after_s)",
                *(urls, why.how, why.text, limit_s),
            )
            self.gave_up.set()
        elif is_outage and is_due:
            self._logged_s, how, for_s = now, why.how, ""
            if how == NOTHING and not self._has_answered:
                how += " yet"
            if limit_s is not None:
                rest_s = round(limit_s - self._failing_s(), 1)
                for_s = f" for {rest_s:g} s (env.give_up_after_s)"
            if why.how == NOTHING:
                for_s += "; start the server or set --openai.base_url"
            logger.log(
                # At a start it is normal: programs are started in any order.
                logging.ERROR if self._has_answered else logging.WARNING,
                "inference at %s %s (%.300s); trying again%s",
                *(urls, how, why.text, for_s),
            )

    def _log_change(self, client: Client) -> None:
        """Name a server that was left out while others are queried, or is back."""
        url = client.config.base_url
        if client in self._left_out and not client.is_out:
            self._left_out.remove(client)
            out_s = time.monotonic() - client.out_since
            logger.warning("inference at %s is back after %.0f s", url, out_s)
        elif client.is_out and self.why_none() is None:
            self._left_out.add(client)
            logger.warning(
                "inference at %s is not used for now, other servers are (%.300s)",
                *(url, client.failure.text),
            )
