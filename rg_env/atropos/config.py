"""The config classes of the environment and its servers, and the list of servers.

Mends B19 and B21 of docs/host_defects.md: weights of 0 or less can make the API fail;
the framework discards a single server config and refuses an empty key with openai 3.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from atroposlib.envs.base import BaseEnvConfig, EvalHandlingEnum
from atroposlib.envs.server_handling.server_manager import (
    APIServerConfig,
    ServerBaseline,
)
from pydantic import Field

from rg_env.errors import SettingError
from rg_env.inference.connection import extra_body_of
from rg_env.settings.environment_settings import CheckedSettings
from rg_env.settings.server_and_launch_settings import SIMULATED, CheckedServer
from rg_env.settings.setting_checks import build

LOCAL_PORTS = range(9004, 9008)  # where the framework expects servers by default


class ReasoningGymEnvConfig(CheckedSettings, BaseEnvConfig):
    """Settings of `ReasoningGymEnv`; docs/settings.md explains each."""

    eval_handling: EvalHandlingEnum = Field(
        default=EvalHandlingEnum.STOP_TRAIN,
        description="Training during an evaluation: STOP_TRAIN, LIMIT_TRAIN or NONE",
    )

    def validate_config(self) -> None:
        """Check several fields together; a hook for subclasses, called once."""


class ServerSettings(CheckedServer, APIServerConfig):
    """The fields of `APIServerConfig`, with checks."""


def checked_class(kind: type[APIServerConfig]) -> type[APIServerConfig]:
    """Return the class that checks configs of a class; a subclass is left as it is."""
    return ServerSettings if kind is APIServerConfig else kind


# -- the list of servers ---------------------------------------------------------------


def expand_servers(configs: Any) -> list[APIServerConfig]:
    """Return the configs as a list.

    A `ServerBaseline` stands for the four local servers of the framework.
    """
    if not isinstance(configs, ServerBaseline):
        return list(configs)
    if isinstance(configs, APIServerConfig):
        return [configs]
    fields = configs.model_dump(exclude_unset=True)
    urls = [f"http://localhost:{port}/v1" for port in LOCAL_PORTS]
    return [APIServerConfig(**fields, base_url=url) for url in urls]


def server_list(
    configs: ServerBaseline | Sequence[ServerBaseline],
    *,
    tokenizer_name: str,
    slurm: bool,
) -> list[APIServerConfig]:
    """Return the servers of a run with all fields that the framework's clients need.

    Args:
        configs: The configs of the servers.
        tokenizer_name: For servers without one.
        slurm: Whether the framework finds the URLs in the variables of a Slurm job.

    Raises:
        SettingError: A config is wrong, or no run can use these servers.
    """
    servers = []
    # A subclass of configs may know more types of servers, and more fields.
    known = set(ServerSettings.model_fields) - {"server_type"}
    for config in expand_servers(configs):
        if not isinstance(config, ServerSettings):
            fields = config.model_dump(include=known, exclude_unset=True)
            build("openai", ServerSettings, fields)  # only validates them
        if not isinstance(config, APIServerConfig) or not (config.base_url or slurm):
            raise SettingError(
                "openai.base_url: the URL of an inference server is needed, such as"
                " http://localhost:9004/v1"
            )
        changes = {"api_key": config.api_key or "x"}
        if config.tokenizer_name == "none":
            changes["tokenizer_name"] = tokenizer_name
        if config.base_url == SIMULATED:
            changes |= {"model_name": SIMULATED, "health_check": False}
        servers.append(config.model_copy(update=changes))
    _check_servers(servers, slurm=slurm)
    return servers


def _check_servers(servers: Sequence[APIServerConfig], *, slurm: bool) -> None:
    if not servers:
        raise SettingError("openai: at least one server is needed")
    urls = {server.base_url for server in servers}
    if SIMULATED in urls and (len(urls) > 1 or slurm):
        raise SettingError("openai.base_url: simulated cannot be combined with servers")
    if any(extra_body_of(s) != extra_body_of(servers[0]) for s in servers[1:]):
        raise SettingError(
            "openai.extra_body: all servers must have the same, because the trainer is"
            " told only one"
        )
    variables = {"SLURM_JOB_NODELIST", "NUM_TRAINING_NODES"}
    if slurm and (not variables <= os.environ.keys() or "INFER_TP" in os.environ):
        raise SettingError(
            "slurm: SLURM_JOB_NODELIST and NUM_TRAINING_NODES are needed, and INFER_TP"
            " makes the framework fail; instead, list the servers under `openai`"
        )
