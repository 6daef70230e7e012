"""The environment's session with the Atropos API: register, read the status, leave.

Mends B6, B17 and B26 of docs/host_defects.md: the framework gives up after three
requests, does not survive a restart of the API, cannot register without a name, and
lets the registration of a killed process hold up every batch (see `registrations`).
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Mapping, Sequence
from typing import Any

import aiohttp

from rg_env import patience
from rg_env.atropos import registrations
from rg_env.atropos.api_client import (
    ApiClient,
    ApiDownError,
    ApiFaultError,
    ApiRefusedError,
    ApiUnreachableError,
)
from rg_env.errors import RunError, SettingError
from rg_env.inference.request_failures import (
    LONGEST_READ,
    body_summary,
    is_temporary,
    permanent_fault,
)

logger = logging.getLogger(__name__)

FIELD = "env.rollout_server_url:"
OWN_NAME = "AtroposLib"
"""In the sentence of the API's front page."""


async def refuse_another_program(client: ApiClient) -> None:
    """Raise an error if another program answers at the address of the API.

    The address is probed several times, because a proxy may answer before it has found
    the API. If nothing answers, or only an error, this waits.

    Args:
        client: Client with the address of the API.

    Raises:
        SettingError: It is another program, or can never be reached.
    """
    timeout = aiohttp.ClientTimeout(total=patience.PROBE_SILENT_AFTER_S)
    async with aiohttp.ClientSession(timeout=timeout) as session:
        for _ in range(patience.LOOKS_AT_ANOTHER_PROGRAM):
            try:
                # Not followed: the refusal names where a redirect leads.
                async with session.get(
                    f"{client.url}/", allow_redirects=False
                ) as front:
                    content = await front.content.read(LONGEST_READ)
            except (aiohttp.ClientError, asyncio.TimeoutError, OSError) as error:
                fault = permanent_fault(error)
                if fault is not None:
                    said = f"{client.name} cannot be reached: {fault}"
                    raise SettingError(f"{FIELD} {said}") from error
                return
            text = content.decode("utf-8", "replace")
            if is_temporary(front.status) or OWN_NAME in text:
                return
            await asyncio.sleep(patience.API_POLL_S / 2)
    leads = front.headers.get("Location")
    said = f"leads to {leads}" if leads else body_summary(text)
    raise SettingError(
        f"{FIELD} what is at {client.name}/ answers {front.status}"
        f" {client.without_secret(said)}: not the Atropos API; set the address of the"
        " API, which `run-api --port PORT` starts, with its secret if it has one"
    )


class ApiForgotUsError(RunError):
    """The API answers and does not know this environment: it was restarted or reset."""

    about = "the Atropos API has lost this environment"


class ApiSession:
    """This environment as the API knows it.

    Attributes:
        env_id: The API's number for this environment, None before it is registered.
        status: The API's newest status of this environment, {} before the first.
    """

    def __init__(self, client: ApiClient) -> None:
        self.client = client
        self._product = 0.0
        self._status_s = -math.inf
        self.env_id: int | None = None
        self.status: dict[str, Any] = {}

    # -- beginning ---------------------------------------------------------------------

    async def _request_first(
        self, method: str, path: str, payload: Any = None, needs: Sequence[str] = ()
    ) -> dict[str, Any]:
        """Send a request; before the first registration, check that the API answers.

        Raises:
            SettingError: Whatever answers there is no Atropos API.
        """
        # `patiently` says nothing before the request fails, which takes up to a minute.
        hanging = asyncio.get_running_loop().call_later(
            patience.PROBE_SILENT_AFTER_S, self.client.say_silent
        )
        try:
            return await self.client.request(method, path, payload, needs)
        except (ApiUnreachableError, ApiRefusedError):
            if self.env_id is None:
                await refuse_another_program(self.client)
            raise
        finally:
            hanging.cancel()

    async def wandb_place(self) -> tuple[str | None, str]:
        """Wait for the trainer, and return the group and project of its W&B runs.

        Raises:
            SettingError: Whatever answers there is no Atropos API.
        """
        while True:
            info = await self.client.patiently(
                lambda: self._request_first(
                    "GET", "/wandb_info", needs=("group", "project")
                )
            )
            if info["project"] is not None:
                return info["group"], info["project"]
            await asyncio.sleep(patience.API_POLL_S)

    async def register(
        self,
        *,
        name: str,
        weight: float,
        group_size: int,
        max_token_length: int,
        min_batch_allocation: float | None,
    ) -> dict[str, Any]:
        """Register, once the trainer has started; return what the API says.

        Args:
            name: What is asked for; the API numbers environments of one name.
            weight: This environment's share of the inference servers, above 0.
            group_size: Rollouts of a group.
            max_token_length: Longest sequence, in tokens.
            min_batch_allocation: Least share of a batch, in [0, 1], or None.

        Raises:
            SettingError: Whatever answers there is no Atropos API.
        """
        product = registrations.marked(weight * max_token_length)
        payload: dict[str, Any] = {
            "max_token_length": max_token_length,
            "desired_name": name,
            "weight": product / max_token_length,
            "min_batch_allocation": min_batch_allocation,
            "group_size": group_size,
        }
        reply = await self._register_once(payload)
        if reply["status"] != "success":
            logger.info("waiting for the trainer: the API says %r", reply["status"])
        while reply["status"] != "success":
            await asyncio.sleep(patience.API_POLL_S)
            reply = await self._register_once(payload)
        former, its_product = self.env_id, self._product
        self.env_id, self._product = reply["env_id"], product
        # The newest status is of a former API, whose steps ours have not passed.
        self.status["current_step"] = reply["starting_step"]
        logger.info(
            "registered as environment %s (%s)", self.env_id, reply["wandb_name"]
        )
        if former is not None:
            await self._end_former(former, its_product)
        return reply

    async def _register_once(self, payload: Mapping[str, Any]) -> dict[str, Any]:
        return await self.client.patiently(
            lambda: self._request_first(
                "POST", "/register-env", payload, needs=("status",)
            )
        )

    async def _end_former(self, env_id: int, its_product: float) -> None:
        """End our former registration, unless a new API gave its number to others."""
        if env_id == self.env_id:
            return
        try:
            await self.read_status()
            found = self.product_in(await self.status_of(env_id))
        except (ApiDownError, ApiRefusedError):
            return
        if found is not None and registrations.is_same(found, its_product):
            await self.end(env_id)

    async def trainer_limits(self) -> tuple[int, int]:
        """Return the trainer's batch, in rollouts, and limit of length, in tokens.

        A sequence must stay below the limit; -1 where the trainer says nothing.
        """
        needs = ("batch_size", "max_token_len")
        info = await self.client.patiently(
            lambda: self.client.request("GET", "/info", needs=needs)
        )
        return info["batch_size"], info["max_token_len"]

    # -- status ------------------------------------------------------------------------

    @property
    def status_age_s(self) -> float:
        """Seconds since the API last told our status."""
        return time.monotonic() - self._status_s

    async def status_of(self, env_id: int | None) -> dict[str, Any]:
        """Request the status of any environment; raises as `read_status`."""
        needs = ("current_step", "queue_size", "env_weight", "unallocated_fraction")
        me = {"env_id": env_id}
        return await self.client.request("GET", "/status-env", me, needs)

    def product_in(self, status: Mapping[str, Any]) -> float | None:
        """Return the product of weight and length of whom a status is of, if known.

        The API gives each environment's share of the sum of all products.
        """
        its, own = status["env_weight"], self.status["env_weight"]
        if min(its, own) <= registrations.SMALLEST_WEIGHT:
            return None
        return float(its / own * self._product)

    async def read_status(self) -> None:
        """Request our status once and use it from then on.

        Raises:
            ApiDownError, ApiRefusedError: There is none.
        """
        env_id = self.env_id
        status = await self.status_of(env_id)
        # We may have registered again meanwhile, under another number.
        if env_id == self.env_id:
            self.status, self._status_s = status, time.monotonic()

    async def renew_status(self) -> None:
        """Request our status until the API answers, even if it is down for a long time.

        Raises:
            ApiForgotUsError: The API answers but does not know this environment.
        """
        while True:
            try:
                await self.read_status()
                return
            except ApiUnreachableError:
                # Not our status: an API that has forgotten us answers its front page.
                await self.client.patiently(lambda: self.client.request("GET", "/"))
            except (ApiFaultError, ApiRefusedError) as error:
                if await self._is_forgotten():
                    raise ApiForgotUsError(str(error)) from error

    async def _is_forgotten(self) -> bool:
        """Return whether the API repeatedly answers that it does not know us.

        A single failed reply must not make us register a second time: the first
        registration would remain, and its minimum allocation would block every batch.
        """
        for _ in range(patience.FORGOTTEN_AFTER_TRIES):
            await asyncio.sleep(patience.API_POLL_S / 2)
            try:
                await self.read_status()
            except (ApiFaultError, ApiRefusedError):
                continue
            except ApiUnreachableError:
                pass
            return False
        return True

    # -- ending ------------------------------------------------------------------------

    async def end(self, env_id: int) -> None:
        """Tell the API that an environment has ended.

        The API would keep waiting for the minimum allocation of one that ended without
        a word, so an API that is down gets a moment to come back.
        """
        me = {"env_id": env_id}
        leaving = self.client.patiently(
            lambda: self.client.request("POST", "/disconnect-env", me)
        )
        try:
            await asyncio.wait_for(leaving, patience.CLOSE_GRACE_S)
        except asyncio.TimeoutError:
            logger.warning("the API was not told that environment %d ends", env_id)

    async def leave(self) -> None:
        """Tell the API that this environment ends, and close the connections."""
        if self.env_id is not None:
            await self.end(self.env_id)
        await self.client.close()
