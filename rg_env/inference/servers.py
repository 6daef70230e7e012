"""The inference servers of a run: groups of completions, and outages.

Each fault of a request is a `RequestFailedError`, never a wrong answer. Until a group
was answered, a reply that waiting cannot improve stops the start and names the setting
at fault; later it counts as a failed request like any other, because a server may be
replaced during a run of days.
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
from rg_env.inference.client import Client
from rg_env.inference.completions import Completion, Sampling
from rg_env.inference.connection import NO_REPLY, UNUSABLE, Failure, RequestFailedError
from rg_env.inference.probe import ProbeRequest
from rg_env.inference.prompts import Prompt
from rg_env.inference.server_health import back_off_s
from rg_env.logs import should_log
from rg_env.shutdown import cancel_and_wait

logger = logging.getLogger(__name__)

# Requests for one group, each for the choices that are missing, before it failed.
COMPLETION_TRIES = 3

# A group that waited longer for a server could be cancelled, and its item be lost after
# a few times; one that failed because no server is up is sampled again.
MAX_WAIT_FOR_SERVER_S = 60.0

# By chance in between, so that all that wait do not query at one moment.
CHECK_FOR_SERVER_S = (0.05, 0.2)

# An outage is logged from here on, and failures are no longer the fault of an item.
OUTAGE_AFTER_S = 3.0

OUTAGE_CHECK_EVERY_S = 1.0
OUTAGE_SAY_AGAIN_S = 60.0


@dataclasses.dataclass
class Outage:
    """No request has been answered since one failed, or since no server is up.

    Attributes:
        began_s: When it began, on the monotonic clock.
        failed: The groups that have failed since.
        log_at_s: How long it will have lasted when it is logged next.
    """

    log_at_s: float
    began_s: float = dataclasses.field(default_factory=time.monotonic)
    failed: int = 0

    @property
    def lasted_s(self) -> float:
        """Seconds since it began."""
        return time.monotonic() - self.began_s


class Servers:
    """The servers of a run; clients that are not ours are not used.

    Attributes:
        gave_up: Set once it is time to end.
        outage: The outage; None after an answer.
        waiting: Requests that wait for a server.
        failures_by_kind: Failed requests, retried ones included, by kind.
    """

    def __init__(self, clients: list[Any], tokenizer: Any) -> None:
        self.clients = [each for each in clients if isinstance(each, Client)]
        self.gave_up = asyncio.Event()
        self.failures_by_kind: Counter[str] = Counter()
        self.outage: Outage | None = None
        self.waiting = 0
        self._give_up_after_s: float | None = None
        self._watching: asyncio.Task[None] | None = None
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
        """The counts of failed requests, by the names of metrics."""
        kinds = {
            f"failed_requests_{kind}": n for kind, n in self.failures_by_kind.items()
        }
        return {"failed_requests": self.failures_by_kind.total(), **kinds}

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
        for tries_left in reversed(range(COMPLETION_TRIES)):
            try:
                client = await self._server_that_is_up(sampling.split)
                missing = n - len(usable)
                some = await client.complete(prompt, missing, sampling, on_reply)
                usable += [each for each in some if each.unusable is None]
                if len(usable) >= n:
                    break
                whys = (each.unusable for each in some if each.unusable)
                why = next(whys, Failure(UNUSABLE, "fewer were returned"))
                text = f"{len(usable)} of {n} usable completions ({why.text})"
                failure = dataclasses.replace(why, text=text)
            except RequestFailedError as error:
                failure = error.failure
            self.failures_by_kind[failure.kind] += 1
            if not tries_left or self.gave_up.is_set():
                self._note_failed(failure)
                raise RequestFailedError(failure)
            failed = 0 if self.outage is None else self.outage.failed
            await self._pause(back_off_s(COMPLETION_TRIES - tries_left + failed))
        self._note_answer()
        for each in usable:
            if len(each.tokens) > sampling.max_tokens:  # the server did not keep to it
                each.tokens = each.tokens[: sampling.max_tokens]
                each.logprobs = each.logprobs and each.logprobs[: sampling.max_tokens]
                each.finish_reason = "length"
        return usable[:n]

    async def _server_that_is_up(self, split: str) -> Client:
        """Return the server with the most places, once one is up."""

        def places(client: Client) -> int:
            return client.places(split)._value

        ends_s = time.monotonic() + MAX_WAIT_FOR_SERVER_S
        self.waiting += 1
        try:
            while not self.gave_up.is_set() and time.monotonic() < ends_s:
                up = [client for client in self.clients if client.server_healthy]
                if up:
                    return max(up, key=places)
                await self._pause(random.uniform(*CHECK_FOR_SERVER_S))
        finally:
            self.waiting -= 1
        why = self.clients[0].failure
        text = f"no server is up: {why.text}"
        raise RequestFailedError(Failure("NoServerError", text, why.symptom))

    async def _pause(self, pause_s: float) -> None:
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self.gave_up.wait(), pause_s)

    def _note_failed(self, failure: Failure) -> None:
        """Count a group that has failed, and log it or the outage."""
        self._check_outage(failure).failed += 1
        count = self.failures_by_kind[failure.kind]
        if not self.is_down and should_log(count):
            text = "%s; %d requests failed so (%s)"
            logger.warning(text, failure.at(self._urls), count, failure.kind)

    def _note_answer(self) -> None:
        """End the outage."""
        self._has_answered = True
        if self.outage is not None and self.outage.log_at_s > OUTAGE_AFTER_S:
            logger.warning("inference answers after %.0f s", self.outage.lasted_s)
        self.outage = None

    # -- the start ---------------------------------------------------------------------

    async def run_command(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a command; a `SettingError` if a server rejects the probe for good."""
        self._starting = asyncio.current_task()
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
        """End the start if the next request has to fail as well."""
        if self._has_answered or self._starting is None or self._refusal is not None:
            return
        if failure.setting is not None:
            verb = " says" if failure.status else ":"
            text = f"{client.config.base_url}{verb} {failure.text}"
            self._refusal = SettingError(f"{failure.setting}: {text}")
            self.gave_up.set()
            self._starting.cancel()

    # -- outages -----------------------------------------------------------------------

    @property
    def is_down(self) -> bool:
        """Whether no server is up, or none has answered for long."""
        is_long = self.outage is not None and self.outage.lasted_s >= OUTAGE_AFTER_S
        return is_long or self._are_all_down

    @property
    def _are_all_down(self) -> bool:
        return bool(self.clients) and not any(client.is_up for client in self.clients)

    def start(self, request: ProbeRequest, *, give_up_after_s: float | None) -> None:
        """Probe with a request from now on; of a command, begin at once.

        `gave_up` is set after so many seconds without an answer while requests fail.
        """
        self._give_up_after_s = give_up_after_s
        for client in self.clients:
            client.probe_request = request
            if self._starting is not None:
                client.watch()
        self._watching = asyncio.create_task(self._watch())

    async def close(self) -> None:
        """Stop watching and close the clients; may be called twice."""
        await cancel_and_wait([self._watching])
        for client in self.clients:
            await client.close()

    async def _watch(self) -> None:
        while not self.gave_up.is_set():
            await self._pause(OUTAGE_CHECK_EVERY_S)
            # Requests that wait for a server report nothing.
            if self._are_all_down:
                self._check_outage(self.clients[0].failure)
        for client in self.clients:  # the requests that hang need not be waited for
            await client.connection.close()

    def _check_outage(self, why: Failure) -> Outage:
        """Log the beginning of an outage, that it goes on, and the giving up."""
        self.outage = outage = self.outage or Outage(OUTAGE_AFTER_S)
        limit_s = self._give_up_after_s
        said = why.at(self._urls)
        limit = "" if limit_s is None else f" {limit_s:g} s (env.give_up_after_s)"
        if limit_s is not None and outage.lasted_s >= limit_s:
            logger.error("%s; giving up after%s", said, limit)
            self.gave_up.set()
        elif outage.lasted_s >= outage.log_at_s:
            outage.log_at_s += OUTAGE_SAY_AGAIN_S
            # At a start it is normal: programs are started in any order.
            level = logging.ERROR if self._has_answered else logging.WARNING
            text = "%s; %d requests wait; trying again%s"
            if why.symptom == NO_REPLY:
                text += "; start the server or set --openai.base_url"
            logger.log(level, text, said, self.waiting, limit and f" for{limit}")
        return outage
