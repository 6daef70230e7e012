"""The inference servers of a run: groups of completions, and whether a server is there.

Whatever goes wrong with a request is a `RequestFailedError`, never a wrong answer.
Until a group was answered, a reply that waiting cannot improve stops the start and
names the setting at fault; later it counts as a failed request like any other, because
a server may be replaced during a run of days.
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

from rg_env.errors import RunError, SettingError
from rg_env.inference.client import Client, ServerLeftOutError
from rg_env.inference.completions import ProbeRequest, Sampling
from rg_env.inference.connection import (
    NOTHING,
    SILENCE,
    UNUSABLE,
    Failure,
    RequestFailedError,
)
from rg_env.inference.routes import Completion, Prompt
from rg_env.logs import is_sampled

logger = logging.getLogger(__name__)

# Requests for one group, each for the choices that are missing, before it failed.
COMPLETION_TRIES = 3

COMPLETION_FIRST_PAUSE_S = 0.5

# For a server to query. A group that waited longer could be cancelled, and its item be
# lost after a few times; one that failed because none is there is free to come back.
LONGEST_WAIT_FOR_SERVER_S = 60.0

# By chance in between, so that all that wait do not query at one moment.
LOOK_FOR_SERVER_S = (0.05, 0.2)

# Nothing but failures of all servers for so long is an outage.
OUTAGE_AFTER_S = 3.0

OUTAGE_LOOK_EVERY_S = 1.0
OUTAGE_FIRST_PAUSE_S, OUTAGE_LONGEST_PAUSE_S = 0.5, 30.0
OUTAGE_SAY_AGAIN_S = 60.0


class Servers:
    """The servers of a run; clients that are not ours are not used.

    Attributes:
        gave_up: Set once it is time to end.
        kinds: Failed requests by kind since the run began, those tried again included.
    """

    def __init__(self, clients: list[Any], tokenizer: Any) -> None:
        self.clients = [each for each in clients if isinstance(each, Client)]
        self.gave_up = asyncio.Event()
        self.kinds: Counter[str] = Counter()
        self._give_up_after_s: float | None = None
        self._watching: asyncio.Task[None] | None = None
        self._failing_since: float | None = None
        self._logged_s: float | None = None
        self._has_answered = False
        self._starting: asyncio.Task[Any] | None = None
        self._refusal: SettingError | None = None
        for client in self.clients:
            client.on_failure = partial(self._end_start_if_refused, client)
            client.tokenizer = client.tokenizer or tokenizer

    @property
    def _urls(self) -> str:
        return ", ".join(client.config.base_url for client in self.clients)

    def require_tokens(self) -> None:
        """Query for token ids and log-probabilities alone, as a trainer needs them."""
        for client in self.clients:
            client.needs_tokens = True

    @property
    def events(self) -> dict[str, int]:
        """What is counted, by the names of metrics."""
        kinds = {f"failed_requests_{kind}": n for kind, n in self.kinds.items()}
        return {"failed_requests": self.kinds.total(), **kinds}

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
            RequestFailedError: Too few are usable after `COMPLETION_TRIES`.
        """
        if not self.clients:
            raise RunError("with testing=True there is no inference server to query")
        usable: list[Completion] = []
        pause_s = COMPLETION_FIRST_PAUSE_S
        for tries_left in reversed(range(COMPLETION_TRIES)):
            try:
                some = await self._query(prompt, n - len(usable), sampling, on_reply)
                usable += [each for each in some if each.unusable is None]
                if len(usable) >= n:
                    break
                whys = [each.unusable for each in some if each.unusable is not None]
                why = whys[0] if whys else Failure(UNUSABLE, "fewer were returned")
                text = f"{len(usable)} of {n} usable completions ({why.text})"
                failure = dataclasses.replace(why, text=text)
            except RequestFailedError as error:
                failure = error.failure
            if not tries_left or self.gave_up.is_set():
                raise RequestFailedError(failure)
            self.kinds[failure.kind] += 1
            await asyncio.sleep(pause_s * random.uniform(0.5, 1.5))
            pause_s *= 2
        self.note_answer()
        for each in usable:
            if len(each.tokens) > sampling.max_tokens:  # the server did not keep to it
                each.tokens = each.tokens[: sampling.max_tokens]
                each.logprobs = each.logprobs and each.logprobs[: sampling.max_tokens]
                each.finish_reason = "length"
        return usable[:n]

    async def _query(
        self,
        prompt: Prompt,
        n: int,
        sampling: Sampling,
        on_reply: Callable[[], None] | None,
    ) -> list[Completion]:
        """Query the server with the most places, once one is there."""

        def places(client: Client) -> int:
            sem = client.sem if sampling.split == "train" else client.eval_sem
            value: int = sem._value
            return value

        ends_s = time.monotonic() + LONGEST_WAIT_FOR_SERVER_S
        while not self.gave_up.is_set():
            admitting = [client for client in self.clients if client.server_healthy]
            if admitting:
                client = max(admitting, key=places)
                with contextlib.suppress(ServerLeftOutError):
                    return await client.complete(prompt, n, sampling, on_reply)
            elif time.monotonic() > ends_s:
                why = self._why_none() or SILENCE
                text = f"no server is left: {why.text}"
                raise RequestFailedError(Failure("NoServerError", text, why.how))
            await asyncio.sleep(random.uniform(*LOOK_FOR_SERVER_S))
        text = "given up after env.give_up_after_s"
        raise RequestFailedError(Failure(UNUSABLE, text, NOTHING))

    # -- the start ---------------------------------------------------------------------

    async def unless_refused(
        self, work: Coroutine[Any, Any, None], request: Callable[[], ProbeRequest]
    ) -> None:
        """Run a command; a `SettingError` if a server rejects the probe for good."""
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
        if self._has_answered or self._starting is None or self._refusal is not None:
            return
        if failure.setting is not None:
            verb = " says" if failure.status else ":"
            text = f"{client.config.base_url}{verb} {failure.text}"
            self._refusal = SettingError(f"{failure.setting}: {text}")
            self._give_up(failure)
            self._starting.cancel()

    # -- failed requests ---------------------------------------------------------------

    async def note_failure(self, failure: Failure) -> None:
        """A request failed; wait a growing while before the caller tries again."""
        self.kinds[failure.kind] += 1
        if self.gave_up.is_set():
            return
        self._note_failing(failure)
        count, urls = self.kinds[failure.kind], self._urls
        if not self.is_down and is_sampled(count):
            logger.warning(
                "%s; %d requests failed so (%s)",
                *(failure.at(urls), count, failure.kind),
            )
        # Half the time that nothing was answered, within bounds.
        pause_s = max(OUTAGE_FIRST_PAUSE_S, self._failing_s() / 2)
        pause_s = min(OUTAGE_LONGEST_PAUSE_S, pause_s)
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self.gave_up.wait(), pause_s)

    def note_answer(self) -> None:
        """A request was answered."""
        if self._logged_s is not None:
            logger.warning("inference answers after %.0f s", self._failing_s())
        self._failing_since = self._logged_s = None
        self._has_answered = True

    # -- an outage ---------------------------------------------------------------------

    @property
    def is_down(self) -> bool:
        """Whether no server can be queried, or none has answered for long."""
        return self._why_none() is not None or self._failing_s() >= OUTAGE_AFTER_S

    def _why_none(self) -> Failure | None:
        """Return why none of the servers can be queried now; None if one can."""
        is_down = self.clients and all(client.is_out for client in self.clients)
        return self.clients[0].failure if is_down else None

    def start(self, *, give_up_after_s: float | None) -> None:
        """Set `gave_up` after so many seconds without an answer while requests fail."""
        self._give_up_after_s = give_up_after_s
        self._watching = asyncio.create_task(self._watch())

    async def close(self) -> None:
        """Stop watching and close the clients; may be called twice."""
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)
            self._watching = None
        for client in self.clients:
            await client.close()

    async def _watch(self) -> None:
        while not self.gave_up.is_set():
            await asyncio.sleep(OUTAGE_LOOK_EVERY_S)
            # Requests that wait for a server report nothing.
            if (why := self._why_none()) is not None:
                self._note_failing(why)

    def _failing_s(self) -> float:
        began = self._failing_since
        return 0.0 if began is None else time.monotonic() - began

    def _give_up(self, failure: Failure) -> None:
        self.gave_up.set()
        for client in self.clients:  # what hangs there need not be waited for
            client.leave_out(failure, is_gone=True)

    def _note_failing(self, failure: Failure) -> None:
        """Log the beginning of an outage, that it goes on, and the giving up."""
        now = time.monotonic()
        self._failing_since = self._failing_since or now
        is_due = self._logged_s is None or now - self._logged_s >= OUTAGE_SAY_AGAIN_S
        limit_s, why = self._give_up_after_s, self._why_none() or failure
        urls = self._urls
        if limit_s is not None and self._failing_s() >= limit_s:
            logger.error(
                "%s; giving up after %g s (env.give_up_after_s)",
                *(why.at(urls), limit_s),
            )
            self._give_up(why)
        elif self._failing_s() >= OUTAGE_AFTER_S and is_due:
            self._logged_s, more = now, ""
            if limit_s is not None:
                more = f" for {limit_s:g} s (env.give_up_after_s)"
            if why.how == NOTHING:
                more += "; start the server or set --openai.base_url"
            logger.log(
                # At a start it is normal: programs are started in any order.
                logging.ERROR if self._has_answered else logging.WARNING,
                "%s; trying again%s",
                *(why.at(urls), more),
            )
