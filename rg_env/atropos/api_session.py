"""The environment's talk with the Atropos API.

Mends B6 (three tries, then death; an API that was restarted is fatal), and the
registration that fails without `wandb_name`.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import math
import random
import string
import time
from datetime import datetime, timezone
from typing import Any

import wandb

from rg_env.atropos.api_client import (
    ApiClient,
    ApiDown,
    ApiFaulted,
    ApiRefused,
    ApiUnreachable,
)
from rg_env.atropos.lifetime import CLOSE_GRACE_S, EndingEnv
from rg_env.errors import SettingError
from rg_env.inference.native_servers import SERVER_CLASSES, NativeServer

logger = logging.getLogger(__name__)

POLL_S = 1.0
FINGERPRINT = 1e-6
"""By up to this share our weight is more than the one that is set."""

LEAST_WEIGHT = 0.01
"""The API's floor of a share: environments there cannot be told apart."""

FORGOTTEN_AFTER_TRIES = 3
"""Status requests refused in a row before the API counts as having forgotten us."""


class ConnectedEnv(EndingEnv):
    """An environment that keeps its connection to the API.

    Attributes:
        status_dict: The API's newest status.
    """

    env_id: int | None = None
    server_cls: Any

    def __init__(
        self,
        config: Any,
        server_configs: Any,
        slurm: bool = False,
        testing: bool = False,
    ) -> None:
        """Build the environment; asks nobody yet.

        The clients of the inference servers are ours, unless a subclass names its own.
        """
        if inspect.isabstract(self.server_cls):
            is_list = isinstance(server_configs, list)
            first = server_configs[0] if is_list else server_configs
            self.server_cls = SERVER_CLASSES[first.server_type]
        super().__init__(config, server_configs, slurm=slurm, testing=testing)
        self.status_dict: dict[str, Any] = {}
        self._status_s = -math.inf
        self._fingerprint = 1.0 + random.random() * FINGERPRINT
        self._api = ApiClient(self.config.rollout_server_url)

    async def setup_wandb(self) -> None:
        """Start W&B with the trainer's project and group, once a trainer is there."""
        if not self.config.use_wandb:
            return
        project = None
        while project is None:
            info = await self._api.patiently(
                lambda: self._api.request(
                    "GET", "/wandb_info", needs=("group", "project")
                )
            )
            project = info["project"]
            self.wandb_group, self.wandb_project = info["group"], project
            if project is None:
                await asyncio.sleep(POLL_S)
        await self._start_wandb(self.config.wandb_name)

    async def _start_wandb(self, name: str | None) -> None:
        suffix = "".join(random.choices(string.ascii_lowercase, k=6))
        today = datetime.now(timezone.utc).date()
        await asyncio.to_thread(
            wandb.init,
            name=f"{name}-{today}-{suffix}" if name else None,
            project=self.wandb_project,
            group=self.wandb_group,
            config=self.config.model_dump(mode="json"),
        )

    async def _register_env(self) -> dict[str, Any]:
        payload = {
            "max_token_length": self.config.max_token_length,
            "desired_name": self.config.wandb_name or self.name,
            "weight": self.config.inference_weight * self._fingerprint,
            "min_batch_allocation": self.config.min_batch_allocation,
            "group_size": self.config.group_size,
        }
        tries = self._api.retries
        reply = await self._api.patiently(
            lambda: self._api.request(
                "POST", "/register-env", payload, needs=("status",)
            )
        )
        if reply["status"] == "success" and self._api.retries > tries:
            await self._end_lost_registrations(reply["env_id"])
        return reply

    async def _end_lost_registrations(self, env_id: int) -> None:
        """End registrations that the API took and whose replies were lost.

        With a minimum allocation they would block every batch. The last digits of our
        weight tell them from those of others.
        """
        for other_id in range(env_id):
            try:
                ours = await self._status_of(env_id)
                other = await self._status_of(other_id)
            except (ApiDown, ApiRefused):
                continue
            weight = ours["env_weight"]
            if LEAST_WEIGHT < weight == other["env_weight"]:
                logger.warning("environment %d is us, its reply was lost", other_id)
                await self._disconnect(other_id)

    async def register_env(self) -> None:
        """Register at the API, once its trainer has started.

        The first registration of a resumed run loads its checkpoint.

        Raises:
            SettingError: Neither the settings nor the trainer say how long the run is.
        """
        is_first = self.env_id is None
        reply = await self._register_env()
        if reply["status"] != "success":
            logger.info("waiting for the trainer: the API says %r", reply["status"])
        while reply["status"] != "success":
            await asyncio.sleep(POLL_S)
            reply = await self._register_env()
        self.env_id = reply["env_id"]
        if is_first:
            # It names the checkpoints, which a later registration must not part.
            self.wandb_prepend = reply["wandb_name"]
        # The newest status is of a former API, whose steps ours have not passed.
        self.curr_step = self.status_dict["current_step"] = reply["starting_step"]
        self.checkpoint_dir = reply["checkpoint_dir"]
        self.checkpoint_interval = reply["checkpoint_interval"]
        if self.config.total_steps == -1:
            self.config.total_steps = reply["num_steps"]
        if self.config.total_steps == -1:
            raise SettingError(
                "env.total_steps: -1 takes the trainer's number of steps, which has"
                " none either; set one of the two"
            )
        logger.info(
            "registered as environment %s (%s)", self.env_id, self.wandb_prepend
        )
        await self._note_registration()
        if is_first and self.curr_step > 0:
            self.load_checkpoint()

    async def _note_registration(self) -> None:
        """Remember a registration; a subclass knows where."""

    async def get_server_info(self) -> None:
        """Take over the trainer's batch size and length limit.

        Raises:
            SettingError: There is no batch size, or it cannot hold a group.
        """
        info = await self._api.patiently(
            lambda: self._api.request(
                "GET", "/info", needs=("batch_size", "max_token_len")
            )
        )
        if info["batch_size"] != -1:
            self.config.batch_size = info["batch_size"]
        if info["max_token_len"] != -1:
            self.max_token_len = info["max_token_len"]
        if self.max_token_len <= 0:
            logger.warning(
                "the trainer sets no limit of length: groups of any are sent"
            )
        batch, group = self.config.batch_size, self.config.group_size
        if batch == -1:
            raise SettingError("env.batch_size: neither the trainer nor env sets one")
        if group > batch:
            raise SettingError(
                f"env.group_size: {group} does not fit the trainer's batch of {batch}"
            )
        if batch % group:
            logger.warning(
                "the trainer's batch of %d is no multiple of env.group_size %d: the API"
                " makes no batch of such groups alone, and says nothing",
                batch,
                group,
            )

    async def _status_of(self, env_id: int | None) -> dict[str, Any]:
        needs = ("current_step", "queue_size", "env_weight")
        me = {"env_id": env_id}
        return await self._api.request("GET", "/status-env", me, needs)

    async def _own_status(self) -> dict[str, Any]:
        """Ask for our status, and go by it from then on."""
        env_id = self.env_id
        status = await self._status_of(env_id)
        if env_id == self.env_id:
            self.status_dict, self._status_s = status, time.monotonic()
            self.max_num_workers = self.config.max_num_workers
            if self.max_num_workers == -1:
                per_node = self.config.max_num_workers_per_node
                self.max_num_workers = per_node * len(self.server.servers)
            await self.server.update_weight(status["env_weight"])
        return status

    def _status_age_s(self) -> float:
        """Seconds since the API last told our status."""
        return time.monotonic() - self._status_s

    async def get_status(self) -> None:
        """Read the API's status; register again where it has forgotten us."""
        while True:
            try:
                await self._own_status()
                return
            except ApiUnreachable:
                await self._api.patiently(lambda: self._api.request("GET", "/"))
            except (ApiFaulted, ApiRefused) as error:
                if not await self._is_forgotten():
                    continue
                logger.warning("the API has lost us (%s); registering again", error)
                await self.register_env()
                await self.get_server_info()

    async def _is_forgotten(self) -> bool:
        """Say whether the API answers, and refuses to know us again and again.

        One reply that fails by accident must not make us register a second time: the
        first registration stays, and its minimum allocation blocks every batch.
        """
        for _ in range(FORGOTTEN_AFTER_TRIES):
            await asyncio.sleep(POLL_S / 2)
            try:
                await self._own_status()
            except (ApiFaulted, ApiRefused):
                continue
            except ApiUnreachable:
                pass
            return False
        return True

    async def _close_connections(self) -> None:
        """Close all connections, after telling the API that we end."""
        await super()._close_connections()
        for server in self.server.servers:
            if isinstance(server, NativeServer):
                await server.close()
        if self.env_id is not None:
            await self._disconnect(self.env_id)
        await self._api.close()

    async def _disconnect(self, env_id: int) -> None:
        # Without it an environment with a minimum allocation blocks every batch of
        # every other one for ever.
        me = {"env_id": env_id}
        leaving = self._api.patiently(
            lambda: self._api.request("POST", "/disconnect-env", me)
        )
        try:
            await asyncio.wait_for(leaving, CLOSE_GRACE_S)
        except asyncio.TimeoutError:
            logger.warning("the API was not told that environment %d ends", env_id)
