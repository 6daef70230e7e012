"""The settings of a run as the framework takes them: the environment's, its servers'.

Mends B19 and B21 of docs/host_defects.md: weights of 0 or less can make the API fail;
the framework discards a single server config and refuses an empty key with openai 3.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from atroposlib.envs.base import BaseEnvConfig, EvalHandlingEnum
from atroposlib.envs.server_handling.server_manager import (
    APIServerConfig,
    ServerBaseline,
)
from pydantic import Field

from rg_env.atropos.start_checks import NO_TOKENIZER
from rg_env.errors import RunError, SettingError, printable, shown
from rg_env.inference.connection import (
    MODEL,
    NOTHING,
    UNAVAILABLE,
    Connection,
    RequestFailedError,
    extra_body_of,
)
from rg_env.inference.protocols import CHAT
from rg_env.installation import TOKENIZER_FOLDER
from rg_env.settings.environment_settings import (
    DEFAULT_TOKENIZER,
    START_MODEL,
    CheckedSettings,
)
from rg_env.settings.program_settings import SIMULATED, CheckedServer
from rg_env.settings.setting_checks import build, without_path

logger = logging.getLogger(__name__)

T = TypeVar("T")

ASK_EVERY_S = 0.5
ANSWERS_WITHIN_S = 3.0
LOCAL_PORTS = range(9004, 9008)  # where the framework expects servers by default


class ReasoningGymEnvConfig(CheckedSettings, BaseEnvConfig):
    """Settings of `ReasoningGymEnv`; docs/settings.md explains each."""

    eval_handling: EvalHandlingEnum = Field(
        default=EvalHandlingEnum.STOP_TRAIN,
        description="Training during an evaluation: STOP_TRAIN, LIMIT_TRAIN or NONE",
    )

    def validate_config(self) -> None:
        """Check more than each field, in a subclass; the environment calls it once."""


class ServerSettings(CheckedServer, APIServerConfig):
    """The checked settings of a server, as in `APIServerConfig`."""


def checked_kind(kind: type[APIServerConfig]) -> type[APIServerConfig]:
    """Return the class that checks configs of a class; a subclass is left as it is."""
    return ServerSettings if kind is APIServerConfig else kind


# -- the list of servers ---------------------------------------------------------------


def each_server(configs: Any) -> list[APIServerConfig]:
    """Return configs as a list; one without an address is of four servers here."""
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
    """Return the servers of the run with all fields that the framework's clients need.

    `tokenizer_name` is for servers without one. With `slurm`, the framework
    finds their URLs in the variables of a Slurm job.
    """
    servers: list[APIServerConfig] = []
    # A subclass of configs may know more types of servers, and more fields.
    known = set(ServerSettings.model_fields) - {"server_type"}
    for each in each_server(configs):
        if not isinstance(each, ServerSettings):
            fields = each.model_dump(include=known, exclude_unset=True)
            build("openai", ServerSettings, fields)
        if not isinstance(each, APIServerConfig) or not (each.base_url or slurm):
            raise SettingError(
                "openai.base_url: the URL of an inference server is needed, such as"
                " http://localhost:9004/v1"
            )
        own = each.tokenizer_name if each.tokenizer_name != "none" else tokenizer_name
        changes = {"api_key": each.api_key or "x", "tokenizer_name": own}
        if each.base_url == SIMULATED:
            changes |= {"model_name": SIMULATED, "health_check": False}
        servers.append(each.model_copy(update=changes))
    if not servers:
        raise SettingError("openai: at least one server is needed")
    urls = {server.base_url for server in servers}
    if SIMULATED in urls and (len(urls) > 1 or slurm):
        raise SettingError("openai.base_url: simulated cannot be combined with servers")
    if any(extra_body_of(s) != extra_body_of(servers[0]) for s in servers[1:]):
        raise SettingError(
            "openai.extra_body: all servers must have the same, since a trainer is told"
            " once the settings of sampling"
        )
    variables = {"SLURM_JOB_NODELIST", "NUM_TRAINING_NODES"}
    if slurm and (not variables <= os.environ.keys() or "INFER_TP" in os.environ):
        raise SettingError(
            "slurm: SLURM_JOB_NODELIST and NUM_TRAINING_NODES are needed, and INFER_TP"
            " makes the framework fail; instead, list the servers under `openai`"
        )
    return servers


# -- a model and a tokenizer that no setting names -------------------------------------


def _at(server: Any, request: Callable[[Connection], Awaitable[T]]) -> T:
    """Return the reply of a server to one request."""

    async def replied() -> T:
        connection = Connection(server)
        try:
            return await request(connection)
        finally:
            await connection.close()

    return asyncio.run(replied())


def served_models(server: Any, give_up_s: float, *, is_needed: bool) -> dict[str, str]:
    """Return the models of a server, once it answers; {} if it does not list them.

    Each name has its tokenizer: a folder if vLLM names one that is here, or the name.
    """
    if server.base_url == SIMULATED:
        return {SIMULATED: str(TOKENIZER_FOLDER)}
    ends_s = time.monotonic() + give_up_s
    log = logger.warning
    while True:
        try:
            rows = _at(server, lambda to: to.models(ANSWERS_WITHIN_S))
            names = {str(row["id"]): str(row.get("root")) for row in rows}
            return {n: d if Path(d or "-").is_dir() else n for n, d in names.items()}
        except (AttributeError, LookupError, TypeError, ValueError):
            return {}
        except RequestFailedError as error:
            fault = error.failure
            if fault.setting:
                address = without_path(server.base_url)
                raise SettingError(f"{fault.setting}: {address}: {error}") from error
            may_come = fault.how == NOTHING or fault.status == UNAVAILABLE
            if not may_come and not is_needed:
                return {}
            text = f"{fault.at(server.base_url)}; set --openai.base_url"
            if not may_come or time.monotonic() >= ends_s:
                raise RunError(text) from error
        log("%s, or start the server, which is waited for", text)
        log = logger.debug
        time.sleep(ASK_EVERY_S)


def _takes_model(server: Any) -> bool:
    """Say whether a server takes its model, which it perhaps does not list."""
    talk = [{"role": "user", "content": "?"}]
    body = {"model": server.model_name, "messages": talk, "max_tokens": 1}
    try:
        _at(server, lambda to: to.post(CHAT.path, body))
    except RequestFailedError as error:
        return error.failure.setting != MODEL
    return True


def with_model(
    config: Any,
    servers: Sequence[Any],
    *,
    named: Sequence[bool],
    names_tokenizer: bool,
    trains: bool,
) -> tuple[Any, list[Any]]:
    """Return settings with a model and a tokenizer where no setting names them.

    The model is the only one of the server. The tokenizer is that of the first server's
    model; none is used if texts are enough and the model's name is neither a folder nor
    a name on the hub. `named` says of each server whether its model was.
    """
    defaults = (START_MODEL, DEFAULT_TOKENIZER)
    follows = not names_tokenizer and config.tokenizer_name in defaults
    limit_s = math.inf if trains else config.give_up_after_s
    changed = []
    tokenizers = []
    for server, is_named in zip(servers, named, strict=True):
        name = server.model_name
        models = {}
        lacks = bool(server.base_url) and not is_named and name == START_MODEL
        lacks = lacks or server.base_url == SIMULATED
        if server.base_url and (lacks or follows):
            models = served_models(server, limit_s, is_needed=lacks)
        if lacks and len(models) == 1:
            (name,) = models
        elif name not in models and (lacks or (models and not _takes_model(server))):
            has = printable(", ".join(list(models)[:12])) or "no model"
            where = f"openai.model_name: {without_path(server.base_url)} has {has}"
            but = f"not {shown(name)}; name one with --openai.model_name"
            raise SettingError(f"{where}, {but}")
        tokenizers.append(models.get(name, name))
        changed.append(server.model_copy(update={"model_name": name}))
    if follows:
        own = tokenizers[0]
        texts_do = not trains and all(s.server_type == "openai" for s in servers)
        if texts_do and "/" not in own and not Path(own).is_dir():
            own = NO_TOKENIZER
        config = config.model_copy(update={"tokenizer_name": own})
    return config, changed
