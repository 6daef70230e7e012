"""The Atropos API: requests with their errors and retries; register, status, leave.

A killed environment stays registered, and if it had a minimum allocation, the API makes
no more batches. Therefore every environment looks at the API's numbers every
`LOOK_EVERY_S` while a batch is held up: no step passes although the waiting groups
would fill the part of a batch that is not allotted.

    without a group there, at the second look      it registers again
    sees another one without, at `LOOKS` looks     it ends that registration
    had no look for more than 1.5 times that       it registers again

A living owner has renewed its registration before that, or does so at its next look; no
group has left the queue meanwhile. Environments of this program have a mark in the
product of weight and length, which decides shares; others are left alone.

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
POLL_S = 1.0  # between two questions to an API that waits for its trainer
SAY_AGAIN_S = 60.0  # between two lines about one outage
STATUS_TRIES = 4  # a single failed status does not mean that the API has forgotten us

LOOK_EVERY_S = 15.0
LOOKS = 4  # the promise of the module needs this many
UNIT = 1e-3
MARK = 0.37  # products are rounded to it; the mark is a part of it
ALL_FREE = 1 - 1e-9  # a part of a batch above it is all, but for rounding

_now = time.time  # the monotonic clock stands still while a machine is suspended


class ApiError(RunError):
    """The API refused a request, failed at it, or did not answer (no status)."""

    about = "the Atropos API failed"

    def __init__(self, text: str, status: int | None = None) -> None:
        super().__init__(text)
        # The API works, and failed at this request; or it would refuse it again.
        self.has_reply = status is not None
        busy = (408, 425, 429)  # which say nothing about the request
        self.is_fault = status in busy or (status or 0) >= FIRST_SERVER_FAULT
        self.is_refusal = (status or 0) >= FIRST_REDIRECT and not self.is_fault


def marked(product: float) -> float:
    """Return nearly the same product of weight and length, with our mark."""
    return (round(product / UNIT) + MARK) * UNIT


def is_marked(product: float) -> bool:
    """Say whether a product has our mark."""
    return abs(product / UNIT % 1 - MARK) < 1e-4


class ApiSession:
    """This environment as one Atropos API knows it.

    `env_id` is None before it has one, the newest `status` {} before the first;
    `retries` counts requests that had to be tried again.
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
        self._begin_looks()

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
        request = f"{method} {path}"
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
            raise self._error(f"{request}: {failure_of(error).text}") from error
        words = body_summary(content)
        if status >= FIRST_REDIRECT:
            words = f"status {status}: {http.headers.get('Location') or words}"
            raise self._error(f"{request}: {words}", status)
        with contextlib.suppress(orjson.JSONDecodeError):  # as of a proxy in its place
            reply = orjson.loads(content)
            if isinstance(reply, dict) and reply.keys() >= {*needs}:
                return reply
        words = f"not a reply of the Atropos API: {words}"
        raise self._error(f"{request}: {words}", status)

    def _error(self, text: str, status: int | None = None) -> ApiError:
        secret = urlsplit(self.url).path  # which run-api may have
        text = text.replace(secret, "/...") if secret else text
        return ApiError(printable(text), status)

    async def ask(self, *request: Any, needs: Sequence[str] = ()) -> dict[str, Any]:
        """Send a request until the API answers it."""
        return await self.patiently(lambda: self.request(*request, needs=needs))

    async def patiently(
        self,
        call: Callable[[], Awaitable[T]],
        may_repeat: Callable[[ApiError], bool] = lambda error: True,
    ) -> T:
        """Repeat a call, with growing waits, until the API answers it.

        Even a refusal is repeated, unless `may_repeat` denies it: the API accepts most
        requests from everybody, so a refusal comes from another program.
        """
        pause_s = FIRST_PAUSE_S
        while True:
            try:
                result = await call()
            except ApiError as error:
                if not may_repeat(error):
                    raise
                self._note_retry(error)
            else:
                if self._warned_s > -math.inf:
                    logger.warning("the Atropos API at %s answers again", self.name)
                self._warned_s = -math.inf
                return result
            # With jitter, so that those that wait do not all try at the same moment.
            await asyncio.sleep(pause_s * random.uniform(0.5, 1.5))
            pause_s = min(2 * pause_s, MAX_PAUSE_S)

    def _note_retry(self, error: ApiError) -> None:
        self.retries += 1
        if time.monotonic() - self._warned_s < SAY_AGAIN_S:
            return
        self._warned_s = time.monotonic()
        how = f"does not answer ({error}); start it with `run-api --port PORT`, or set"
        how += " env.rollout_server_url"
        if error.is_fault or error.is_refusal:
            how = f"answers with an error ({error})"
        logger.warning("the Atropos API at %s %s; trying again", self.name, how)

    # -- beginning ---------------------------------------------------------------------

    async def find(self) -> None:
        """Wait until the API answers; SettingError if another program does."""

        async def front() -> None:
            page = await self.request("GET", "/", timeout_s=FRONT_TIMEOUT_S)
            if "AtroposLib" not in str(page):
                raise ApiError(f"GET /: {page}", 200)

        def may_come(error: ApiError) -> bool:
            is_there = error.has_reply and not error.is_fault
            return not is_there and failure_of(error).setting is None

        try:
            await self.patiently(front, may_come)
        except ApiError as error:
            raise SettingError(
                f"env.rollout_server_url: what is at {self.name} is not the Atropos API"
                f" ({error}); set the address of the API, which `run-api --port PORT`"
                " starts, with its secret if it has one"
            ) from error

    async def wandb_place(self) -> tuple[str | None, str]:
        """Wait for the trainer; return the group and project of its W&B runs."""
        await self.find()
        while True:
            info = await self.ask("GET", "/wandb_info", needs=("group", "project"))
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
        log = logger.info
        while True:
            reply = await self.ask("POST", "/register-env", payload, needs=["status"])
            if reply["status"] == "success":
                break
            log("waiting for the trainer: the API says %r", reply["status"])
            log = logger.debug
            await asyncio.sleep(POLL_S)
        self.env_id = reply["env_id"]
        name = reply["wandb_name"]
        # The newest status is of a former API; our steps have not passed those.
        self.status["current_step"] = reply["starting_step"]
        self._begin_looks()
        logger.info("registered as environment %s (%s)", self.env_id, name)
        return reply

    # -- status ------------------------------------------------------------------------

    def queue(self, more: int = 0) -> tuple[int | None, int, int]:
        """Return our number, the step and how many groups of ours wait there."""
        step = self.status["current_step"]
        waiting = self.status.get("self_queue_size")
        return self.env_id, step, (waiting or 0) + more

    def note_sent(self, groups: int) -> None:
        """Count groups that the newest status does not know."""
        for key in ("queue_size", "self_queue_size"):
            self.status[key] = (self.status.get(key) or 0) + groups

    async def _status_of(self, env_id: int | None) -> dict[str, Any]:
        needs = ("current_step", "queue_size", "env_weight", "unallocated_fraction")
        return await self.request("GET", "/status-env", {"env_id": env_id}, needs=needs)

    async def read_status(self) -> None:
        """Request our status once and use it from then on; raises as `request`."""
        env_id = self.env_id
        status = await self._status_of(env_id)
        # We may have registered again meanwhile, under another number.
        if env_id == self.env_id:
            self.status = status

    async def renew_status(self) -> bool:
        """Request our status until the API answers; return whether it knows us."""
        for _ in range(STATUS_TRIES):
            try:
                await self.read_status()
                return True
            except ApiError as error:
                if not error.has_reply:
                    await self.ask("GET", "/")  # which waits until it is up
            await asyncio.sleep(POLL_S / 2)
        return False

    # -- registrations of dead processes -----------------------------------------------

    def _begin_looks(self) -> None:
        self._step = -1
        self._looks: dict[int, int] = {}
        self._looked_s = _now()

    async def may_be_ended(self, batch_size: int) -> bool:
        """Look, if it is time to; end registrations of the dead that hold up a batch.

        Return whether others may end our registration, or have: it has to be renewed.
        """
        passed_s = _now() - self._looked_s
        status = self.status
        if self.env_id is None or passed_s < LOOK_EVERY_S:
            return False
        queue = await self.request("GET", "/status", needs=("queue_size",))
        waiting = queue["queue_size"]
        free = status["unallocated_fraction"]
        # A sole environment may send so much, whatever the minima of others.
        would_do = (waiting + 1) * status["max_group_size"] >= batch_size * free
        is_same_step = status["current_step"] == self._step
        is_held_up = is_same_step and waiting > 0 and would_do and free < ALL_FREE
        self._step = status["current_step"]
        self._looked_s = _now()
        without = await self._others_without_group() if is_held_up else []
        self._looks = {env_id: self._looks.get(env_id, 0) + 1 for env_id in without}
        for env_id, looks in self._looks.items():
            if looks >= LOOKS:
                await self.end(env_id)
                logger.warning(
                    "ended the registration of environment %d, which was killed or"
                    " hangs, and held up batches",
                    env_id,
                )
        if is_held_up and status["self_queue_size"] == 0:
            await self.end(self.env_id)
            return True
        return passed_s > 1.5 * LOOK_EVERY_S

    async def _others_without_group(self) -> list[int]:
        """Return the numbers of this program's environments without a group there."""
        without: list[int] = []
        for env_id in itertools.count():
            try:
                its = await self._status_of(env_id)
            except ApiError as error:
                if not error.is_fault:
                    raise
                return without  # there is none of this number
            share = its["env_weight"] / self.status["env_weight"]
            is_ours = is_marked(share * self._product)
            if is_ours and env_id != self.env_id and not its["self_queue_size"]:
                without.append(env_id)
        return without

    # -- ending ------------------------------------------------------------------------

    async def end(self, env_id: int) -> None:
        """Tell the API that an environment has ended, if it answers in a moment."""
        leaving = self.ask("POST", "/disconnect-env", {"env_id": env_id})
        try:
            await asyncio.wait_for(leaving, LEAVE_WITHIN_S)
        except asyncio.TimeoutError:
            logger.warning("the API was not told that environment %d ends", env_id)

    async def leave(self) -> None:
        """Tell the API of our end, and close the connections; may be called twice."""
        if self.env_id is not None:
            await self.end(self.env_id)
        if self._http is not None:
            await self._http.close()
            self._http = None
