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
from typing import Any, TypeVar

from tenacity import RetryError

from rg_env import patience
from rg_env.errors import SettingError
from rg_env.inference.client import CLIENTS, Client, ServerLeftOutError
from rg_env.inference.completions import (
    PROMPT_MASK,
    Completion,
    Sampling,
    cut,
    from_chat,
    highest_id,
    why_unusable,
)
from rg_env.inference.connection import secrets_of
from rg_env.inference.probe import ProbeRequest
from rg_env.inference.prompts import Prompt
from rg_env.inference.request_failures import (
    NO_SERVER,
    NOTHING,
    UNUSABLE,
    URL,
    Failure,
    RequestFailedError,
    failure_of,
)
from rg_env.logs import is_worth_a_line

logger = logging.getLogger(__name__)

T = TypeVar("T")

TOKEN_TYPES = frozenset({"vllm", "sglang"})
"""Types whose clients are queried for token ids, where a subclass names the client."""

MOST_ENDS, LONGEST_END = 16, 32
"""Words for an end that are counted, each by its name; the others are `other`."""


class NoServerError(RequestFailedError):
    """No server was available for a long time, so the item is not at fault."""


class Servers:
    """The servers of a run.

    Args:
        manager: The framework's `ServerManager`; only clients of ours are probed.
        tokenizer: The environment's tokenizer.
        server_type: vllm, sglang, openai or trl: of servers whose client does not say.

    Attributes:
        clients: Those of the servers that are ours.
        gave_up: Set once it is time to end.
        failures: Failed requests since the run began, those tried again included.
        kinds: The same by kind.
        ends: How many completions ended with which word.
    """

    def __init__(self, manager: Any, tokenizer: Any, server_type: str) -> None:
        self._manager = manager
        self._tokenizer = tokenizer
        self._server_type = server_type
        self.clients = [each for each in manager.servers if isinstance(each, Client)]
        self._trains = False
        self._left_out: set[Client] = set()
        self._give_up_after_s: float | None = None
        self._watching: asyncio.Task[None] | None = None
        self._failing_since: float | None = None
        self._logged_s: float | None = None
        self._newest = NO_SERVER
        self._has_answered = False
        self._end_start: Callable[[], object] | None = None
        self._refused = 0
        self._refusal: SettingError | None = None
        self.gave_up = asyncio.Event()
        self.failures = 0
        self.kinds: Counter[str] = Counter()
        self.ends: Counter[str] = Counter()
        for client in self.clients:
            client.state.on_change = partial(self._log_change, client)
            if not hasattr(client, "tokenizer"):
                client.tokenizer = tokenizer

    @property
    def trains(self) -> bool:
        """Whether a trainer gets the completions."""
        return self._trains

    @trains.setter
    def trains(self, trains: bool) -> None:
        self._trains = trains
        for client in self.clients:
            client.needs_tokens = trains

    @property
    def events(self) -> dict[str, int]:
        """Name and number of what was counted, as it is logged."""
        kinds = {f"failed_requests_{kind}": n for kind, n in self.kinds.items()}
        ends = {f"finish_reason_{end}": n for end, n in self.ends.items()}
        return {"failed_requests": self.failures, **kinds, **ends}

    @property
    def _urls(self) -> str:
        configs = [getattr(server, "config", None) for server in self._manager.servers]
        return ", ".join(each.base_url for each in configs if each is not None)

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

        Args:
            prompt: What is sent.
            n: How many.
            sampling: How they are sampled.
            on_reply: Called when a reply has come, before it is read.

        Raises:
            RequestFailedError: No usable reply, or too few choices, in
                `COMPLETION_TRIES`; or it is time to give up.
        """
        limit = len(prompt.tokens) + sampling.max_tokens
        usable: list[Completion] = []

        async def attempt() -> list[Completion]:
            some = await self._request(prompt, n - len(usable), sampling, on_reply)
            for completion in some:
                if completion.unusable is None:
                    usable.append(cut(completion, limit))
                    word = str(completion.finish_reason)[:LONGEST_END]
                    is_counted = word in self.ends or len(self.ends) < MOST_ENDS
                    self.ends[word if is_counted else "other"] += 1
            if len(usable) < n:
                whys = (c.unusable for c in some if c.unusable is not None)
                why = next(whys, Failure(UNUSABLE, "fewer were returned"))
                text = f"{len(usable)} of {n} usable completions ({why.text})"
                raise RequestFailedError(dataclasses.replace(why, text=text))
            return usable[:n]

        trying = patience.tried_again(
            attempt,
            _may_try_again,
            lambda error: self.note_retry(failure_of(error)),
            tries=patience.COMPLETION_TRIES,
            first_pause_s=patience.COMPLETION_FIRST_PAUSE_S,
            longest_pause_s=patience.COMPLETION_LONGEST_PAUSE_S,
        )
        return await self.unless_given_up(trying)

    async def _request(
        self,
        prompt: Prompt,
        n: int,
        sampling: Sampling,
        on_reply: Callable[[], None] | None,
    ) -> list[Completion]:
        while True:
            client = await self._free_client(trains=sampling.split == "train")
            try:
                if client is None or self._manager.use_proxy:
                    return await self._by_framework(prompt, n, sampling)
                return await client.complete(prompt, n, sampling, on_reply)
            except ServerLeftOutError:
                await asyncio.sleep(random.uniform(*patience.LOOK_FOR_SERVER_S))
            except RequestFailedError:
                raise
            except Exception as error:
                # Of a client that is not ours: openai's, pydantic's, in a retry error.
                configs = [getattr(s, "config", None) for s in self._manager.servers]
                secrets = [secret for each in configs for secret in secrets_of(each)]
                raise RequestFailedError(failure_of(error, *secrets)) from error

    async def _free_client(self, *, trains: bool) -> Client | None:
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
                text = f"no server is left: {why.text}"
                raise NoServerError(Failure("NoServerError", text, why.how))
            await asyncio.sleep(random.uniform(*patience.LOOK_FOR_SERVER_S))

    async def _by_framework(
        self, prompt: Prompt, n: int, sampling: Sampling
    ) -> list[Completion]:
        """Query by the framework's own ways: its proxy, or a client of a subclass."""
        arguments = {"n": n, **dataclasses.asdict(sampling)}
        arguments["messages"] = [dict(message) for message in prompt.messages]
        config = getattr(self._manager.servers[0], "config", None)
        kind = getattr(config, "server_type", self._server_type)
        if not self.trains and kind not in TOKEN_TYPES:
            reply = await self._manager.chat_completion(**arguments)
            choices = [choice.model_dump() for choice in reply.choices]
            return from_chat(self._tokenizer, prompt, choices)
        async with self._manager.managed_server(tokenizer=self._tokenizer) as managed:
            reply = await managed.chat_completion(**arguments)
            both = zip(reply.choices, managed.get_state()["nodes"], strict=True)
        completions = []
        for choice, node in both:
            begin, end = node.masked_tokens.count(PROMPT_MASK), choice.finish_reason
            sampled = node.tokens[begin:], node.logprobs[begin:]
            completion = Completion(
                text=choice.message.content or "",
                finish_reason=end,
                tokens=node.tokens,
                masks=node.masked_tokens,
                logprobs=node.logprobs,
                unusable=why_unusable(*sampled, end, highest_id(self._tokenizer)),
            )
            completions.append(completion)
        return completions

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
            verb = " says" if failure.status else ":"
            text = f"{client.config.base_url}{verb} {failure.sentence}"
            self._refusal = SettingError(f"{setting}: {text}")
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
                text = "given up after env.give_up_after_s"
                raise RequestFailedError(Failure(UNUSABLE, text, NOTHING))
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
                *(failure.kind, count, failure.text),
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
            again = " again" if self._has_answered else ""
            logger.warning("inference answers%s after %.0f s", again, self._failing_s())
        self._failing_since = self._logged_s = None
        self._has_answered = True

    # -- an outage ---------------------------------------------------------------------

    def why_none(self) -> Failure | None:
        """Return why no server can be queried now; None if one can."""
        servers = self._manager.servers
        if any(getattr(server, "server_healthy", True) for server in servers):
            return None
        if not self.clients:
            return Failure("NoServerError", "the health check fails", NOTHING)
        return self.clients[0].state.failure

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

    def _failing_s(self) -> float:
        """Return how long all requests have been failing."""
        began = self._failing_since
        return 0.0 if began is None else time.monotonic() - began

    def _note_failing(self, failure: Failure) -> None:
        """Log the beginning of an outage, and once in a while that it goes on."""
        self._newest, now = failure, time.monotonic()
        if self._failing_since is None:
            self._failing_since = now
        why = self.why_none()
        is_lost = why is not None and not any(c.state.is_resting for c in self.clients)
        # Nothing was answered for long, or all servers are out and none only rests.
        is_outage = is_lost or self._failing_s() >= patience.OUTAGE_AFTER_S
        logged_s = -float("inf") if self._logged_s is None else self._logged_s
        if not is_outage or now - logged_s < patience.OUTAGE_SAY_AGAIN_S:
            return
        self._logged_s, why = now, why or failure
        how, advice, how_long = why.how, "", ""
        if how == NOTHING:
            how += "" if self._has_answered else " yet"
            advice = "; start the server or set --openai.base_url"
        if self._give_up_after_s is not None:
            rest_s = max(0.0, self._give_up_after_s - self._failing_s())
            how_long = f" for {round(rest_s, 1):g} s (env.give_up_after_s)"
        logger.log(
            # At a start it is normal: programs are started in any order.
            logging.ERROR if self._has_answered else logging.WARNING,
            "inference at %s %s (%.300s)%s; trying again%s",
            *(self._urls, how, why.sentence, advice, how_long),
        )

    def _give_up_in_time(self) -> None:
        limit_s = self._give_up_after_s
        if limit_s is None or self._failing_since is None or self.gave_up.is_set():
            return
        if self._failing_s() >= limit_s:
            why = self.why_none() or self._newest
            logger.error(
                "inference at %s %s (%.300s); giving up after %g s"
                " (env.give_up_after_s)",
                *(self._urls, why.how, why.sentence, limit_s),
            )
            self.gave_up.set()

    def _log_change(self, client: Client) -> None:
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


def _may_try_again(error: BaseException) -> bool:
    """Say whether another try is ours; a client that is not ours has made its own."""
    if not isinstance(error, RequestFailedError) or isinstance(error, NoServerError):
        return False
    return not isinstance(error.__cause__, RetryError)
