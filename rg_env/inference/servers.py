"""The inference servers of a run: groups of completions, and outages.

Each fault of a request is a `RequestFailedError`, never a wrong answer. Until the first
answer, an error that a retry cannot fix, such as a wrong key or an unknown model, ends
the command and names the setting. Later it is a failed request like any other, because
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
from rg_env.inference.client import Client
from rg_env.inference.completions import Completion, Sampling
from rg_env.inference.connection import NO_REPLY, UNUSABLE, Failure, RequestFailedError
from rg_env.inference.probe import ProbeRequest
from rg_env.inference.prompts import Prompt
from rg_env.inference.server_health import back_off_s
from rg_env.logs import should_log
from rg_env.shutdown import cancel_and_wait

logger = logging.getLogger(__name__)

# Tries for one group; each requests the completions that are still missing.
COMPLETION_TRIES = 3

# Shorter than the framework's limit for a group (`worker_timeout`): a cancelled group
# costs its item a try, and one that fails because no server is up does not.
MAX_WAIT_FOR_SERVER_S = 60.0

# Random in this range, so that waiting requests do not all go out at once.
CHECK_FOR_SERVER_S = (0.05, 0.2)

# After this time without an answer, an outage is logged, and failures are no longer the
# fault of an item.
OUTAGE_AFTER_S = 3.0

OUTAGE_CHECK_EVERY_S = 1.0
OUTAGE_LOG_EVERY_S = 60.0


@dataclasses.dataclass
class Outage:
    """A period without an answer, from a failed request or since no server is up.

    Attributes:
        log_at_s: Its duration when it is logged next.
        began_s: When it began, on the monotonic clock.
        failed: The number of groups that have failed since.
    """

    log_at_s: float
    began_s: float = dataclasses.field(default_factory=time.monotonic)
    failed: int = 0

    @property
    def lasted_s(self) -> float:
        """Seconds since it began."""
        return time.monotonic() - self.began_s


class Servers:
    """The servers of a run; only our own clients are used.

    Attributes:
        gave_up: Set when no more requests should be made.
        outage: The current outage; None after an answer.
        waiting: The number of requests that wait for a server.
        failures_by_kind: Failed requests, retried ones included, by kind.
    """

    def __init__(self, clients: list[Any], tokenizer: Any) -> None:
        self.clients = [each for each in clients if isinstance(each, Client)]
        self.gave_up = asyncio.Event()
        self.failures_by_kind: Counter[str] = Counter()
        self.outage: Outage | None = None
        self.waiting = 0
        self._give_up_after_s: float | None = None
        self._watch_task: asyncio.Task[None] | None = None
        self._has_answered = False
        self._command: asyncio.Task[Any] | None = None
        self._refusal: SettingError | None = None
        for client in self.clients:
            client.on_failure = partial(self._end_command_if_refused, client)
            client.tokenizer = client.tokenizer or tokenizer

    @property
    def _urls(self) -> str:
        return ", ".join(client.config.base_url for client in self.clients)

    def require_tokens(self) -> None:
        """Query only for token ids with log-probabilities, as a trainer needs them."""
        for client in self.clients:
            client.needs_tokens = True

    @property
    def events(self) -> dict[str, int]:
        """The counts of failed requests, by the names of metrics."""
        counts = self.failures_by_kind
        by_kind = {f"failed_requests_{kind}": n for kind, n in counts.items()}
        return {"failed_requests": counts.total(), **by_kind}

    # -- completions -------------------------------------------------------------------

    async def generate(
        self,
        prompt: Prompt,
        n: int,
        sampling: Sampling,
        on_reply: Callable[[], None] | None = None,
    ) -> list[Completion]:
        """Sample exactly `n` completions of one prompt.

        `on_reply` is called when a reply has come, before it is read.

        Raises:
            RequestFailedError: Too few are usable after `COMPLETION_TRIES`.
        """
        if not self.clients:
            raise RunError("with testing=True there is no inference server to query")
        usable: list[Completion] = []
        for tries in range(1, COMPLETION_TRIES + 1):
            try:
                client = await self._free_server(sampling.split)
                missing = n - len(usable)
                completions = await client.complete(prompt, missing, sampling, on_reply)
            except RequestFailedError as error:
                failure = error.failure
            else:
                usable += [each for each in completions if each.unusable is None]
                if len(usable) >= n:
                    self._note_answer()
                    return usable[:n]
                failure = _shortage(completions, f"{len(usable)} of {n}")
            self.failures_by_kind[failure.kind] += 1
            if self.gave_up.is_set():
                break
            if tries < COMPLETION_TRIES:
                failed_groups = 0 if self.outage is None else self.outage.failed
                await self._pause(back_off_s(tries + failed_groups))
        self._note_failed(failure)
        raise RequestFailedError(failure)

    async def _free_server(self, split: str) -> Client:
        """Wait for a server that is up; return that with the most free slots."""

        def free_slots(client: Client) -> int:
            return client.request_slots(split)._value

        ends_s = time.monotonic() + MAX_WAIT_FOR_SERVER_S
        self.waiting += 1
        try:
            while not self.gave_up.is_set() and time.monotonic() < ends_s:
                up = [client for client in self.clients if client.server_healthy]
                if up:
                    return max(up, key=free_slots)
                await self._pause(random.uniform(*CHECK_FOR_SERVER_S))
        finally:
            self.waiting -= 1
        failure = self.clients[0].failure
        text = f"no server is up: {failure.text}"
        raise RequestFailedError(Failure("NoServerError", text, failure.symptom))

    async def _pause(self, pause_s: float) -> None:
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self.gave_up.wait(), pause_s)

    def _note_failed(self, failure: Failure) -> None:
        """Count a group that has failed, and log it or the outage."""
        self._note_outage(failure).failed += 1
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
        """Run a command.

        Raises:
            SettingError: Before the first answer, a server refused a request for a
                reason that a retry cannot fix.
        """
        self._command = asyncio.current_task()
        try:
            await work
        except asyncio.CancelledError:
            # Cancelled by somebody else, such as a signal.
            if self._refusal is None:
                raise
            raise self._refusal from None
        finally:
            self._command = None

    def _end_command_if_refused(self, client: Client, failure: Failure) -> None:
        """End a command that has no answer yet, if a retry cannot help."""
        if self._has_answered or self._command is None or self._refusal is not None:
            return
        if failure.setting is not None:
            server = client.config.base_url
            if failure.status is None:
                text = f"{failure.setting}: {server}: {failure.text}"
            else:
                text = f"{failure.setting}: {server} says {failure.text}"
            self._refusal = SettingError(text)
            self.gave_up.set()
            self._command.cancel()

    # -- outages -----------------------------------------------------------------------

    @property
    def is_down(self) -> bool:
        """Whether no server is up, or none has answered for `OUTAGE_AFTER_S`."""
        is_long = self.outage is not None and self.outage.lasted_s >= OUTAGE_AFTER_S
        return is_long or self._are_all_down

    @property
    def _are_all_down(self) -> bool:
        return bool(self.clients) and not any(client.is_up for client in self.clients)

    def start(self, request: ProbeRequest, *, give_up_after_s: float | None) -> None:
        """Use a request as the probe, and watch for outages.

        Inside a command, the servers are probed at once. `gave_up` is set if requests
        fail for `give_up_after_s` without an answer.
        """
        self._give_up_after_s = give_up_after_s
        for client in self.clients:
            client.probe_request = request
            if self._command is not None:
                client.watch()
        self._watch_task = asyncio.create_task(self._watch())

    async def close(self) -> None:
        """Stop watching and close the clients; may be called twice."""
        await cancel_and_wait([self._watch_task])
        for client in self.clients:
            await client.close()

    async def _watch(self) -> None:
        while not self.gave_up.is_set():
            await self._pause(OUTAGE_CHECK_EVERY_S)
            # Requests that wait for a server do not fail, so nothing else notices it.
            if self._are_all_down:
                self._note_outage(self.clients[0].failure)
        for client in self.clients:  # this ends the requests that hang
            await client.connection.close()

    def _note_outage(self, failure: Failure) -> Outage:
        """Begin an outage, or log that it goes on; return it."""
        outage = self.outage or Outage(log_at_s=OUTAGE_AFTER_S)
        self.outage = outage
        limit_s = self._give_up_after_s
        if limit_s is not None and outage.lasted_s >= limit_s:
            text = "%s; giving up after %g s (env.give_up_after_s)"
            logger.error(text, failure.at(self._urls), limit_s)
            self.gave_up.set()
        elif outage.lasted_s >= outage.log_at_s:
            outage.log_at_s += OUTAGE_LOG_EVERY_S
            self._log_outage(failure)
        return outage

    def _log_outage(self, failure: Failure) -> None:
        # Before the first answer it is normal: programs are started in any order.
        level = logging.ERROR if self._has_answered else logging.WARNING
        text = f"{failure.at(self._urls)}; {self.waiting} requests wait; trying again"
        if self._give_up_after_s is not None:
            text += f" for {self._give_up_after_s:g} s (env.give_up_after_s)"
        if failure.symptom == NO_REPLY:
            text += "; start the server or set --openai.base_url"
        logger.log(level, "%s", text)


def _shortage(completions: list[Completion], usable: str) -> Failure:
    """Return the failure of a reply after which only some completions are usable."""
    failures = (each.unusable for each in completions if each.unusable is not None)
    failure = next(failures, Failure(UNUSABLE, "fewer were returned"))
    text = f"{usable} usable completions ({failure.text})"
    return dataclasses.replace(failure, text=text)
