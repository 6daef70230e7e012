"""The Atropos API: requests with their errors and retries; register, status, leave.

An environment stays registered until it reports its end, which a killed process cannot
do. If it had a minimum allocation, the API makes no more batches. Therefore every
environment looks at the API's numbers every `LOOK_EVERY_S` while a batch is held up: no
step passes although what waits would fill the part of a batch allotted to nobody.

    without a group there, at the second look      it registers again
    sees another one without, at `LOOKS` looks     it ends that registration
    had no look for more than 1.5 times that       it registers again

While no step passes, no group leaves the queue. A registration that is ended had no
group for three looks; a living owner has renewed it meanwhile, or has missed a look and
renews it at its next one. So one that lives is never ended for good, and it loses no
group. Other programs do not renew theirs and are named only: those of this program have
a mark in the product of weight and length, which decides shares.

Mends B6, B17 and B26 of docs/host_defects.md.
"""

from __future__ import annotations

import asyncio
import collections
import itertools
import logging
import math
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import urlsplit

import aiohttp
import orjson

from rg_env.errors import RunError, SettingError, printable
from rg_env.inference.connection import KEEP_ALIVE_S
from rg_env.inference.request_failures import (
    FIRST_REDIRECT,
    body_summary,
    is_temporary,
    no_reply,
    permanent_fault,
)
from rg_env.retries import tried_again
from rg_env.settings.setting_types import without_path

logger = logging.getLogger(__name__)

T = TypeVar("T")

JSON = {"Content-Type": "application/json"}
LOOPBACK_HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})

REQUEST_TIMEOUT_S, FRONT_TIMEOUT_S, LEAVE_WITHIN_S = 60.0, 5.0, 2.0
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 10.0  # between two tries
POLL_S = 1.0  # between two questions to an API that waits for its trainer
SAY_AGAIN_S = 60.0  # between two lines about one outage
TRIES = 3
"""Odd replies in a row that count: a proxy may answer before it has found the API, and
a single failed status does not mean that the API has forgotten us."""

LOOK_EVERY_S, LOOKS = 15.0, 4  # the promise of the module needs this many
UNIT, MARK = 1e-3, 0.37  # products are rounded to it; the mark is a part of it
SMALLEST_WEIGHT = 0.01  # the API raises smaller shares to it, which tells nothing
ALL_FREE = 1 - 1e-9  # a part of a batch above it is all, but for rounding

_now = time.time
"""Not the monotonic clock, which stands still while a machine is suspended."""


class ApiError(RunError):
    """The API refused a request, failed at it, or did not answer (no status)."""

    about = "the Atropos API failed"

    def __init__(self, text: str, status: int | None = None) -> None:
        super().__init__(text)
        # The API works, and failed at this request; or it would refuse it again.
        self.has_reply = status is not None
        self.is_fault = status is not None and is_temporary(status)
        self.is_refusal = (status or 0) >= FIRST_REDIRECT and not self.is_fault


def marked(product: float) -> float:
    """Return nearly the same product of weight and length, with our mark."""
    return (round(product / UNIT) + MARK) * UNIT


def is_marked(product: float) -> bool:
    """Say whether a product has our mark."""
    return abs(product / UNIT % 1 - MARK) < 1e-4


class ApiSession:
    """This environment as one Atropos API knows it.

    Args:
        url: Of the API, e.g. http://localhost:8000.

    Attributes:
        name: Address for messages, without a path, which may be a secret.
        is_far: Whether it is on another machine, as far as its address tells.
        events: Counts requests that had to be tried again, and batches that
            environments of other programs hold up, since the run began.
        env_id: The API's number for this environment, None before it is registered.
        status: The API's newest status of this environment, {} before the first.
    """

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        self.name = without_path(self.url)
        self.is_far = urlsplit(self.url).hostname not in LOOPBACK_HOSTS
        self.events = collections.Counter(api_retries=0)
        self.env_id: int | None = None
        self.status: dict[str, Any] = {}
        self._status_s = self._said_s = -math.inf
        self._http: aiohttp.ClientSession | None = None
        self._product = 0.0
        self._said_at_step = -1
        self._begin_looks()

    # -- requests ----------------------------------------------------------------------

    async def request(
        self,
        method: str,
        path: str,
        payload: Any = None,
        headers: Mapping[str, str] = JSON,
        *,
        needs: Sequence[str] = (),
        timeout_s: float = REQUEST_TIMEOUT_S,
    ) -> dict[str, Any]:
        """Send one request and return the decoded reply.

        Args:
            method: GET or POST.
            path: Below the URL, with a slash before it.
            payload: What is sent as JSON, or that as bytes; None for nothing.
            headers: Of the payload.
            needs: Keys that every reply of the Atropos API contains.
            timeout_s: For the whole reply.

        Raises:
            ApiError: There is no reply that can be used.
        """
        if payload is not None and not isinstance(payload, bytes):
            payload = orjson.dumps(payload)
        # Not in `__init__`: aiohttp binds a session to the loop that is running.
        if self._http is None:
            self._http = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(keepalive_timeout=KEEP_ALIVE_S)
            )
        status = None
        try:
            async with self._http.request(
                method,
                self.url + path,
                data=payload,
                headers=None if payload is None else headers,
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(total=timeout_s),
            ) as http:
                content, status = await http.read(), http.status
            text = content.decode("utf-8", "replace")
            if status >= FIRST_REDIRECT:
                words = http.headers.get("Location") or body_summary(text)
                words = f"status {status}: {words}"
            else:
                reply = orjson.loads(content)
                if isinstance(reply, dict) and reply.keys() >= {*needs}:
                    return reply
                words = f"not a reply of the Atropos API: {body_summary(text)}"
        except orjson.JSONDecodeError:  # as of a proxy in place of the API
            words = f"the reply is no JSON: {body_summary(text)}"
        except (aiohttp.ClientError, asyncio.TimeoutError) as error:
            raise self._error(f"{method} {path}: {no_reply(error).text}") from error
        raise self._error(f"{method} {path}: {words}", status)

    def _error(self, text: str, status: int | None = None) -> ApiError:
        secret = urlsplit(self.url).path  # which run-api may have
        text = text.replace(secret, "/...") if secret else text
        return ApiError(printable(text), status)

    async def patiently(
        self,
        call: Callable[[], Awaitable[T]],
        may_repeat: Callable[[ApiError], bool] = lambda error: True,
    ) -> T:
        """Repeat a call, with growing waits, until the API answers it.

        Even a refusal is repeated, unless `may_repeat` denies it: the API accepts most
        requests from everybody, so a refusal comes from another program.
        """
        result = await tried_again(
            call,
            lambda error: isinstance(error, ApiError) and may_repeat(error),
            self._note_retry,
            first_pause_s=FIRST_PAUSE_S,
            longest_pause_s=LONGEST_PAUSE_S,
        )
        if self._said_s > -math.inf:
            self._said_s = -math.inf
            logger.warning("the Atropos API at %s answers again", self.name)
        return result

    def _note_retry(self, error: Exception) -> None:
        self.events["api_retries"] += 1
        if time.monotonic() - self._said_s < SAY_AGAIN_S:
            return
        self._said_s = time.monotonic()
        if isinstance(error, ApiError) and (error.is_fault or error.is_refusal):
            how = f"answers with an error ({error})"
        else:
            how = (
                f"does not answer ({error}); start it with `run-api --port PORT`, or"
                " set env.rollout_server_url"
            )
        logger.warning("the Atropos API at %s %s; trying again", self.name, how)

    # -- beginning ---------------------------------------------------------------------

    async def find(self) -> None:
        """Wait until the API answers at its address.

        Raises:
            SettingError: Another program answers there, or nothing ever can.
        """

        async def front() -> None:
            page = await self.request("GET", "/", timeout_s=FRONT_TIMEOUT_S)
            if "AtroposLib" not in str(page):
                raise ApiError(f"GET /: {page}", 200)

        def may_come(error: ApiError) -> bool:
            is_there = error.has_reply and not error.is_fault
            return not is_there and permanent_fault(error) is None

        for _ in range(TRIES):
            try:
                return await self.patiently(front, may_come)
            except ApiError as error:
                fault = error
            await asyncio.sleep(POLL_S / 2)
        raise SettingError(
            f"env.rollout_server_url: what is at {self.name} is not the Atropos API"
            f" ({fault}); set the address of the API, which `run-api --port PORT`"
            " starts, with its secret if it has one"
        ) from fault

    async def wandb_place(self) -> tuple[str | None, str]:
        """Wait for the trainer; return the group and project of its W&B runs."""
        await self.find()
        needs = ("group", "project")
        while True:
            info = await self.patiently(
                lambda: self.request("GET", "/wandb_info", needs=needs)
            )
            if info["project"] is not None:
                return info["group"], info["project"]
            await asyncio.sleep(POLL_S)

    async def register(self, name: str, config: Any) -> dict[str, Any]:
        """Register, once the trainer has started; return what the API says.

        Raises:
            SettingError: Whatever answers there is no Atropos API.
        """
        if self.env_id is None:
            await self.find()
        length = config.max_token_length
        self._product = marked(config.inference_weight * length)
        payload = {
            "max_token_length": length,
            "desired_name": name,
            "weight": self._product / length,
            "min_batch_allocation": config.min_batch_allocation,
            "group_size": config.group_size,
        }
        for tries in itertools.count():
            reply = await self.patiently(
                lambda: self.request(
                    *("POST", "/register-env", payload), needs=("status",)
                )
            )
            if reply["status"] == "success":
                break
            if not tries:
                logger.info("waiting for the trainer: the API says %r", reply["status"])
            await asyncio.sleep(POLL_S)
        self.env_id = reply["env_id"]
        # The newest status is of a former API, whose steps ours have not passed.
        self.status["current_step"] = reply["starting_step"]
        self._begin_looks()
        logger.info(
            "registered as environment %s (%s)", self.env_id, reply["wandb_name"]
        )
        return reply

    async def trainer_limits(self) -> tuple[int, int]:
        """Return the trainer's batch, in rollouts, and limit of length, in tokens."""
        needs = ("batch_size", "max_token_len")
        info = await self.patiently(lambda: self.request("GET", "/info", needs=needs))
        return info["batch_size"], info["max_token_len"]

    # -- status ------------------------------------------------------------------------

    @property
    def status_age_s(self) -> float:
        """Seconds since the API last told our status."""
        return time.monotonic() - self._status_s

    async def status_of(self, env_id: int | None) -> dict[str, Any]:
        """Request the status of any environment; raises as `request`."""
        needs = ("current_step", "queue_size", "env_weight", "unallocated_fraction")
        return await self.request("GET", "/status-env", {"env_id": env_id}, needs=needs)

    async def read_status(self) -> None:
        """Request our status once and use it from then on; raises as `request`."""
        env_id = self.env_id
        status = await self.status_of(env_id)
        # We may have registered again meanwhile, under another number.
        if env_id == self.env_id:
            self.status, self._status_s = status, time.monotonic()

    async def renew_status(self) -> bool:
        """Request our status until the API answers, even if it is down for a long time.

        Returns:
            Whether the API knows this environment: it may have been restarted or reset.
        """
        odd_replies = 0
        while odd_replies <= TRIES:
            try:
                await self.read_status()
                return True
            except ApiError as error:
                if error.is_refusal or error.is_fault:
                    odd_replies += 1
                    await asyncio.sleep(POLL_S / 2)
                    continue
            # Not our status: an API that has forgotten us answers its front page.
            odd_replies = 0
            await self.patiently(lambda: self.request("GET", "/"))
        return False

    # -- registrations of dead processes -----------------------------------------------

    def _begin_looks(self) -> None:
        self._step = -1
        self._looks: collections.Counter[int] = collections.Counter()
        self._looked_s = _now()

    async def may_be_ended(self, batch_size: int, own_share: float) -> bool:
        """Look, if it is time to; end registrations of the dead that hold up a batch.

        Args:
            batch_size: The trainer's, in rollouts.
            own_share: Our own minimum allocation, 0 without.

        Returns:
            Whether others may end our registration, or have: it has to be renewed.
        """
        passed_s, status = _now() - self._looked_s, self.status
        if self.env_id is None or passed_s < LOOK_EVERY_S:
            return False
        queue = await self.request("GET", "/status", needs=("queue_size",))
        waiting, free = queue["queue_size"], status["unallocated_fraction"]
        # A sole environment may send so much, whatever the minima of others.
        would_do = (waiting + 1) * status["max_group_size"] >= batch_size * free
        is_same_step = status["current_step"] == self._step
        is_held_up = is_same_step and waiting > 0 and would_do and free < ALL_FREE
        if is_held_up and free + own_share < ALL_FREE:
            await self._look_at_others(waiting)
        else:
            self._looks.clear()
        self._step, self._looked_s = status["current_step"], _now()
        if is_held_up and status["self_queue_size"] == 0:
            await self.end(self.env_id)
            return True
        return passed_s > 1.5 * LOOK_EVERY_S

    async def _look_at_others(self, waiting: int) -> None:
        looks: collections.Counter[int] = collections.Counter()
        ours = set()
        for env_id in itertools.count():
            try:
                its = await self.status_of(env_id)
            except ApiError as error:
                if error.is_fault:  # as it answers for one that was never there
                    break
                raise
            if env_id == self.env_id or its["self_queue_size"]:
                continue
            looks[env_id] = self._looks[env_id] + 1
            shares = its["env_weight"], self.status["env_weight"]
            if min(shares) > SMALLEST_WEIGHT:
                product = shares[0] / shares[1] * self._product
                ours |= {env_id} if is_marked(product) else set()
        self._looks = looks
        due = [env_id for env_id, number in looks.items() if number >= LOOKS]
        for env_id in ours.intersection(due):
            await self.end(env_id)
            logger.warning(
                "ended the registration of environment %d, which was killed or hangs,"
                " and held up batches",
                env_id,
            )
        if due and not ours.intersection(due) and self._said_at_step != self._step:
            self._said_at_step = self._step
            self.events["batches_held_up"] += 1
            logger.warning(
                "the API makes no batch of the %d groups that are waiting, because at"
                " least one of the environments without a group there (%s) has a"
                " minimum allocation; end the registrations of those that were killed:"
                " curl -X POST %s/disconnect-env -H 'Content-Type: application/json'"
                " -d '{\"env_id\": %d}'",
                *(waiting, ", ".join(map(str, due)), self.name, due[0]),
            )

    # -- ending ------------------------------------------------------------------------

    async def end(self, env_id: int) -> None:
        """Tell the API that an environment has ended.

        The API would keep waiting for the minimum allocation of one that ended without
        a word, so an API that is down gets a moment to come back.
        """
        leaving = self.patiently(
            lambda: self.request("POST", "/disconnect-env", {"env_id": env_id})
        )
        try:
            await asyncio.wait_for(leaving, LEAVE_WITHIN_S)
        except asyncio.TimeoutError:
            logger.warning("the API was not told that environment %d ends", env_id)

    async def leave(self) -> None:
        """Tell the API that this environment ends, and close the connections."""
        if self.env_id is not None:
            await self.end(self.env_id)
        await self.close()

    async def close(self) -> None:
        """Close the connections; may be called twice."""
        if self._http is not None:
            await self._http.close()
            self._http = None
