"""The Atropos API: requests with their errors and retries; register, status, leave.

A killed environment stays registered, and if it had a minimum allocation, the API makes
no more batches. Therefore every environment checks the API's queue every
`CHECK_EVERY_S`. A batch is held up if no step has passed since the last check although
the waiting groups would fill the part of a batch that is not allotted. Then

- an environment without a group in the queue registers again;
- one that had none at `CHECKS_BEFORE_END` checks in a row has its registration ended.

An environment also registers again if its last check is more than 1.5 times
`CHECK_EVERY_S` ago. So a live one registers again before its registration is ended, or
at its next check; no group leaves the queue meanwhile. Only environments of this
program are ended: they have a mark in the product of weight and length.

Mends B6, B17 and B26 of docs/host_defects.md.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import math
import random
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import urlsplit

import aiohttp
import orjson

from rg_env.errors import RunError, SettingError, printable
from rg_env.inference.connection import (
    FIRST_REDIRECT,
    FIRST_SERVER_FAULT,
    KEEP_ALIVE_S,
    body_summary,
    failure_of,
)
from rg_env.settings.setting_checks import without_path

logger = logging.getLogger(__name__)

T = TypeVar("T")

REQUEST_TIMEOUT_S = 60.0
FRONT_TIMEOUT_S = 5.0
LEAVE_WITHIN_S = 2.0
FIRST_PAUSE_S = 0.5
MAX_PAUSE_S = 10.0  # between two tries
POLL_S = 1.0  # between two requests to an API that waits for its trainer
OUTAGE_LOG_EVERY_S = 60.0
STATUS_TRIES = 4  # a single failed status does not mean that the API has forgotten us

CHECK_EVERY_S = 15.0
CHECKS_BEFORE_END = 4  # with fewer, the registration of a live environment could end
UNIT = 1e-3  # products of weight and length are rounded to it
MARK = 0.37  # the fraction of a unit that is added to a rounded product
ALL_FREE = 1 - 1e-9  # a larger part of a batch is all of it, except for rounding

_now = time.time  # the monotonic clock stands still while a machine is suspended


class ApiError(RunError):
    """The API refused a request, failed at it, or did not answer (no status).

    Attributes:
        has_reply: Whether the API answered.
        is_fault: It may accept the same request later.
        is_refusal: It would refuse the same request again.
    """

    about = "the Atropos API failed"

    def __init__(self, text: str, status: int | None = None) -> None:
        super().__init__(text)
        self.has_reply = status is not None
        busy = (408, 425, 429)  # not about the request
        self.is_fault = status in busy or (status or 0) >= FIRST_SERVER_FAULT
        self.is_refusal = (status or 0) >= FIRST_REDIRECT and not self.is_fault


def marked(product: float) -> float:
    """Return nearly the same product of weight and length, with our mark."""
    return (round(product / UNIT) + MARK) * UNIT


def is_marked(product: float) -> bool:
    """Return whether a product has our mark."""
    return abs(product / UNIT % 1 - MARK) < 1e-4


class ApiSession:
    """The registration of this environment at one Atropos API.

    Attributes:
        env_id: The number of this environment; None before the registration.
        status: The newest reply about it; {} before the first.
        retries: Failed requests that were tried again.
    """

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        self.name = without_path(self.url)
        host = urlsplit(self.url).hostname
        self.is_remote = host not in ("localhost", "127.0.0.1", "::1")
        self.retries = 0
        self.env_id: int | None = None
        self.status: dict[str, Any] = {}
        self._warned_s = -math.inf
        self._http: aiohttp.ClientSession | None = None
        self._product = 0.0
        self._reset_checks()

    # -- requests ----------------------------------------------------------------------

    async def request(
        self,
        method: str,
        path: str,
        payload: Any = None,
        *,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        needs: Sequence[str] = (),
        timeout_s: float = REQUEST_TIMEOUT_S,
    ) -> dict[str, Any]:
        """Send one request and return the decoded reply, which has the keys it `needs`.

        The payload is sent as JSON; a body that is encoded already has its headers.
        `ApiError` is raised if there is no reply that can be used.
        """
        # Not in `__init__`: aiohttp binds a session to the loop that is running.
        if self._http is None:
            connector = aiohttp.TCPConnector(keepalive_timeout=KEEP_ALIVE_S)
            self._http = aiohttp.ClientSession(connector=connector)
        title = f"{method} {path}"
        sending = self._http.request(
            method,
            self.url + path,
            json=payload,
            data=body,
            headers=headers,
            timeout=aiohttp.ClientTimeout(total=timeout_s),
            allow_redirects=False,
        )
        try:
            async with sending as http:
                content = await http.read()
                status = http.status
        except (aiohttp.ClientError, asyncio.TimeoutError) as error:
            raise self._error(f"{title}: {failure_of(error).text}") from error
        words = body_summary(content)
        if status >= FIRST_REDIRECT:
            reason = http.headers.get("Location") or words
            raise self._error(f"{title}: status {status}: {reason}", status)
        with contextlib.suppress(orjson.JSONDecodeError):  # the page of a proxy
            reply = orjson.loads(content)
            if isinstance(reply, dict) and reply.keys() >= {*needs}:
                return reply
        raise self._error(f"{title}: not a reply of the Atropos API: {words}", status)

    def _error(self, text: str, status: int | None = None) -> ApiError:
        secret = urlsplit(self.url).path  # which run-api may have
        text = text.replace(secret, "/...") if secret else text
        return ApiError(printable(text), status)

    async def query(
        self, method: str, path: str, payload: Any = None, *, needs: Sequence[str] = ()
    ) -> dict[str, Any]:
        """Repeat a request until the API answers it; see `request` and `retry`."""
        return await self.retry(
            lambda: self.request(method, path, payload, needs=needs)
        )

    async def retry(
        self,
        call: Callable[[], Awaitable[T]],
        may_retry: Callable[[ApiError], bool] = lambda error: True,
    ) -> T:
        """Repeat a call, with growing waits, until the API answers it.

        By default, even a refused call is repeated: the API accepts most requests from
        everybody, so a refusal comes from another program.
        """
        pause_s = FIRST_PAUSE_S
        while True:
            try:
                result = await call()
            except ApiError as error:
                if not may_retry(error):
                    raise
                self._note_retry(error)
            else:
                if self._warned_s > -math.inf:
                    logger.warning("the Atropos API at %s answers again", self.name)
                self._warned_s = -math.inf
                return result
            # With jitter, so that environments do not all try at the same moment.
            await asyncio.sleep(pause_s * random.uniform(0.5, 1.5))
            pause_s = min(2 * pause_s, MAX_PAUSE_S)

    def _note_retry(self, error: ApiError) -> None:
        self.retries += 1
        if time.monotonic() - self._warned_s < OUTAGE_LOG_EVERY_S:
            return
        self._warned_s = time.monotonic()
        if error.is_fault or error.is_refusal:
            text = "the Atropos API at %s answers with an error (%s); trying again"
        else:
            text = (
                "the Atropos API at %s does not answer (%s); start it with `run-api"
                " --port PORT`, or set env.rollout_server_url; trying again"
            )
        logger.warning(text, self.name, error)

    # -- beginning ---------------------------------------------------------------------

    async def find(self) -> None:
        """Wait until the API answers.

        Raises:
            SettingError: Another program answers at the address.
        """

        async def check_front_page() -> None:
            page = await self.request("GET", "/", timeout_s=FRONT_TIMEOUT_S)
            if "AtroposLib" not in str(page):
                raise ApiError(f"GET /: {page}", 200)

        def may_retry(error: ApiError) -> bool:
            is_answer = error.has_reply and not error.is_fault
            return not is_answer and failure_of(error).setting is None

        try:
            await self.retry(check_front_page, may_retry)
        except ApiError as error:
            raise SettingError(
                f"env.rollout_server_url: what is at {self.name} is not the Atropos API"
                f" ({error}); set the address of the API, which `run-api --port PORT`"
                " starts, with its secret if it has one"
            ) from error

    async def wandb_names(self) -> tuple[str | None, str]:
        """Wait for the trainer; return the group and project of its W&B runs."""
        await self.find()
        while True:
            info = await self.query("GET", "/wandb_info", needs=("group", "project"))
            if info["project"] is not None:
                return info["group"], info["project"]
            await asyncio.sleep(POLL_S)

    async def register(self, name: str, config: Any) -> dict[str, Any]:
        """Register, once the trainer has started; return the reply of the API."""
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
        level = logging.INFO
        while True:
            reply = await self.query("POST", "/register-env", payload, needs=["status"])
            if reply["status"] == "success":
                break
            logger.log(
                level, "waiting for the trainer: the API says %r", reply["status"]
            )
            level = logging.DEBUG
            await asyncio.sleep(POLL_S)
        self.env_id = reply["env_id"]
        name = reply["wandb_name"]
        # Until the next status, the one of a former API would be used.
        self.status["current_step"] = reply["starting_step"]
        self._reset_checks()
        logger.info("registered as environment %s (%s)", self.env_id, name)
        return reply

    # -- status ------------------------------------------------------------------------

    def queue(self, added_groups: int = 0) -> tuple[int | None, int, int]:
        """Return our number, the step, and how many groups of ours are in the queue."""
        step = self.status["current_step"]
        waiting = self.status.get("self_queue_size")
        return self.env_id, step, (waiting or 0) + added_groups

    def note_sent(self, groups: int) -> None:
        """Add groups to the newest status that were sent after it."""
        for key in ("queue_size", "self_queue_size"):
            self.status[key] = (self.status.get(key) or 0) + groups

    async def _status_of(self, env_id: int | None) -> dict[str, Any]:
        needs = ("current_step", "queue_size", "env_weight", "unallocated_fraction")
        return await self.request("GET", "/status-env", {"env_id": env_id}, needs=needs)

    async def read_status(self) -> None:
        """Request our status once, and keep it."""
        env_id = self.env_id
        status = await self._status_of(env_id)
        if env_id == self.env_id:  # else we have registered again meanwhile
            self.status = status

    async def renew_status(self) -> bool:
        """Request our status until the API answers; return whether it knows us."""
        for _ in range(STATUS_TRIES):
            try:
                await self.read_status()
                return True
            except ApiError as error:
                if not error.has_reply:
                    await self.query("GET", "/")  # which waits until it is up
            await asyncio.sleep(POLL_S / 2)
        return False

    # -- registrations of killed processes ---------------------------------------------

    def _reset_checks(self) -> None:
        self._checked_step = -1
        self._idle_checks: dict[int, int] = {}
        self._checked_s = _now()

    async def check_registrations(self, batch_size: int) -> bool:
        """If a check is due, end registrations of killed environments.

        Returns:
            Whether others may have ended our registration, so that we register again.
        """
        passed_s = _now() - self._checked_s
        if self.env_id is None or passed_s < CHECK_EVERY_S:
            return False
        status = self.status
        is_held_up = await self._is_held_up(status, batch_size)
        self._checked_step = status["current_step"]
        self._checked_s = _now()
        idle = await self._idle_others() if is_held_up else []
        self._idle_checks = {id_: self._idle_checks.get(id_, 0) + 1 for id_ in idle}
        for env_id, checks in self._idle_checks.items():
            if checks >= CHECKS_BEFORE_END:
                await self.end(env_id)
                logger.warning(
                    "ended the registration of environment %d, which was killed or"
                    " hangs, and held up batches",
                    env_id,
                )
        if is_held_up and status["self_queue_size"] == 0:
            await self.end(self.env_id)
            return True
        return passed_s > 1.5 * CHECK_EVERY_S

    async def _is_held_up(self, status: Mapping[str, Any], batch_size: int) -> bool:
        queue = await self.request("GET", "/status", needs=("queue_size",))
        waiting = queue["queue_size"]
        free = status["unallocated_fraction"]
        # If only one environment sends groups, it may send this many, despite the
        # minimum allocations of others.
        is_enough = (waiting + 1) * status["max_group_size"] >= batch_size * free
        is_same_step = status["current_step"] == self._checked_step
        return bool(is_same_step and waiting > 0 and is_enough and free < ALL_FREE)

    async def _idle_others(self) -> list[int]:
        """Return the numbers of this program's environments without a group there."""
        idle: list[int] = []
        for env_id in itertools.count():
            try:
                status = await self._status_of(env_id)
            except ApiError as error:
                if not error.is_fault:
                    raise
                return idle  # there is none of this number
            share = status["env_weight"] / self.status["env_weight"]
            is_ours = is_marked(share * self._product)
            if is_ours and env_id != self.env_id and not status["self_queue_size"]:
                idle.append(env_id)
        return idle

    # -- ending ------------------------------------------------------------------------

    async def end(self, env_id: int) -> None:
        """End a registration, if the API answers within `LEAVE_WITHIN_S`."""
        leaving = self.query("POST", "/disconnect-env", {"env_id": env_id})
        try:
            await asyncio.wait_for(leaving, LEAVE_WITHIN_S)
        except asyncio.TimeoutError:
            logger.warning("the API was not told that environment %d ends", env_id)

    async def leave(self) -> None:
        """End our registration and close the connections; may be called twice."""
        if self.env_id is not None:
            await self.end(self.env_id)
        if self._http is not None:
            await self._http.close()
            self._http = None
