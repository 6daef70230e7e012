"""The settings of a run as the framework takes them: the environment's, its servers'.

Mends B19 and B21 of docs/host_defects.md: weights of 0 or less can make the API fail;
the framework discards a single server config, refuses an empty key with openai 3, and
fails on Slurm's variables (`8 // "2"`), so the list of servers is made here.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from atroposlib.envs.base import BaseEnvConfig, EvalHandlingEnum
from atroposlib.envs.server_handling.server_manager import (
    APIServerConfig,
    ServerBaseline,
)
from pydantic import Field

from rg_env.atropos.start_checks import NO_TOKENIZER
from rg_env.errors import RunError, SettingError, printable
from rg_env.inference.connection import Connection, extra_body_of
from rg_env.inference.request_failures import NOTHING, UNAVAILABLE, RequestFailedError
from rg_env.settings.environment_settings import (
    DEFAULT_TOKENIZER,
    START_MODEL,
    CheckedSettings,
)
from rg_env.settings.program_settings import CheckedServer
from rg_env.settings.setting_types import build, without_path

logger = logging.getLogger(__name__)

ASK_EVERY_S, ANSWERS_WITHIN_S = 0.5, 3.0
LOCAL_PORTS = range(9004, 9008)
"""Where the framework expects servers on this machine when it is given no URL."""


class ReasoningGymEnvConfig(CheckedSettings, BaseEnvConfig):
    """Settings of `ReasoningGymEnv`; docs/settings.md explains each.

    Source: atropos 296a0bc, ReasoningGymEnvConfig; differs: ranges are checked, unknown
    fields are refused, and `CheckedSettings` has new ones.
    """

    eval_handling: EvalHandlingEnum = Field(
        default=EvalHandlingEnum.STOP_TRAIN,
        description="Training during an evaluation: STOP_TRAIN, LIMIT_TRAIN or NONE",
    )

    def validate_config(self) -> None:
        """Check more than each field, in a subclass; the environment calls it once."""


class ServerSettings(CheckedServer, APIServerConfig):
    """What `APIServerConfig` says of a server, checked.

    Source: atroposlib 0.4.0, APIServerConfig; differs: ranges are checked, unknown
    fields are refused.
    """


def checked_kind(kind: type[APIServerConfig]) -> type[APIServerConfig]:
    """Return the class that checks configs of a class; a subclass is left as it is."""
    return ServerSettings if kind is APIServerConfig else kind


# -- the list of servers ---------------------------------------------------------------


def slurm_urls() -> list[str]:
    """Return the servers' URLs on the inference nodes of a Slurm job.

    The first NUM_TRAINING_NODES nodes train; each of the others runs 8 / INFER_TP
    servers on ports from 9000. One node alone means servers on this machine.

    Raises:
        SettingError: A variable is missing or unusable.

    Source: atroposlib 0.4.0, ServerManager; differs: INFER_TP is read as a number.
    """
    environ = os.environ
    try:
        listing = ["scontrol", "show", "hostnames", environ["SLURM_JOB_NODELIST"]]
        nodes = subprocess.check_output(listing, text=True, timeout=60).split()
        if len(nodes) < 2:
            return []
        of_servers = nodes[int(environ["NUM_TRAINING_NODES"]) :]
        ports = range(9000, 9000 + 8 // int(environ.get("INFER_TP", 1)))
        urls = [f"http://{node}:{port}/v1" for node in of_servers for port in ports]
        if not urls:
            raise ValueError("NUM_TRAINING_NODES and INFER_TP leave no server")
    except (
        *(KeyError, ValueError, ArithmeticError),
        *(OSError, subprocess.SubprocessError),
    ) as error:
        raise SettingError(
            f"slurm: {type(error).__name__}: {error}; run in a Slurm job with"
            " SLURM_JOB_NODELIST and NUM_TRAINING_NODES, and perhaps INFER_TP, or pass"
            " --slurm false"
        ) from error
    return urls


def server_list(
    configs: ServerBaseline | Sequence[ServerBaseline],
    *,
    tokenizer_name: str,
    slurm: bool,
) -> list[APIServerConfig]:
    """Return the servers of the run, each with what the framework's clients need.

    Args:
        configs: One config or several.
        tokenizer_name: For servers whose config names none.
        slurm: Whether the URLs come from the Slurm job, one server like the first each.

    Raises:
        SettingError: There is no server, or Slurm's variables are unusable.
    """
    servers: list[APIServerConfig] = []
    for each in [configs] if isinstance(configs, ServerBaseline) else configs:
        if isinstance(each, APIServerConfig):
            servers.append(each)
            continue
        for port in LOCAL_PORTS:
            url = f"http://localhost:{port}/v1"
            servers.append(APIServerConfig(**each.model_dump(), base_url=url))
    if not servers:
        raise SettingError("openai: at least one server is needed")
    # A subclass of configs may know more types of servers, and more fields.
    known = set(ServerSettings.model_fields) - {"server_type"}
    for i, server in enumerate(servers):
        if not isinstance(server, ServerSettings):
            fields = server.model_dump(include=known, exclude_unset=True)
            build("openai", ServerSettings, fields)
        is_named = server.tokenizer_name != "none"
        own = server.tokenizer_name if is_named else tokenizer_name
        changes = {"api_key": server.api_key or "x", "tokenizer_name": own}
        servers[i] = server.model_copy(update=changes)
    if any(extra_body_of(s) != extra_body_of(servers[0]) for s in servers[1:]):
        raise SettingError(
            "openai.extra_body: all servers must have the same, since a trainer is told"
            " once what is sampled with"
        )
    if slurm and (urls := slurm_urls()):
        return [servers[0].model_copy(update={"base_url": url}) for url in urls]
    if not all(server.base_url for server in servers):
        raise SettingError(
            "openai.base_url: the URL of an inference server is needed, such as"
            " http://localhost:9004/v1"
        )
    return servers


# -- a model and a tokenizer that nobody has named -------------------------------------


def served_models(server: Any, give_up_s: float = math.inf) -> dict[str, str] | None:
    """Return the models of a server, once it answers; None if it does not list them.

    Each name has its tokenizer: a folder if vLLM names one that is here, or the name.

    Raises:
        SettingError: Its URL can never be reached.
        RunError: It did not answer in time.
    """

    async def rows() -> list[Any]:
        connection = Connection(server, is_openai=server.server_type == "openai")
        try:
            return await connection.models(ANSWERS_WITHIN_S)
        finally:
            await connection.close()

    ends_s, is_waiting = time.monotonic() + give_up_s, False
    while server.base_url:
        try:
            names = {str(r["id"]): str(r.get("root")) for r in asyncio.run(rows())}
            return {n: d if Path(d or "-").is_dir() else n for n, d in names.items()}
        except (LookupError, TypeError, ValueError):
            return None  # the probe says later what is wrong with a server
        except RequestFailedError as error:
            failure = error.failure
        if failure.how != NOTHING and failure.status != UNAVAILABLE:
            return None
        line = f"{server.base_url} {failure.how} ({failure.text})"
        if failure.setting is not None:
            raise SettingError(f"{failure.setting}: {line}")
        line += "; start the server or set --openai.base_url"
        if time.monotonic() >= ends_s:
            raise RunError(f"inference at {line}; gave up (env.give_up_after_s)")
        if not is_waiting:
            logger.warning("inference at %s; waiting for it", line)
        is_waiting = True
        time.sleep(ASK_EVERY_S)
    return None


def with_model(
    config: Any,
    servers: Sequence[Any],
    *,
    named: Sequence[bool],
    names_tokenizer: bool,
    trains: bool,
) -> tuple[Any, list[Any]]:
    """Return settings with a model and a tokenizer where nobody has named them.

    The model is the only one of the server. The tokenizer is that of the first server's
    model; none is used if texts are enough and the model's name is neither a folder nor
    a name on the hub. `named` says of each server whether its model was.

    Raises:
        SettingError: A server whose model is not named has several models, or none.
        RunError: No server answered in time.
    """
    defaults = (START_MODEL, DEFAULT_TOKENIZER)
    follows = not names_tokenizer and config.tokenizer_name in defaults
    limit_s = math.inf if trains else config.give_up_after_s
    changed, tokenizers = [], []
    for server, is_named in zip(servers, named, strict=True):
        name, address = server.model_name, without_path(server.base_url or "")
        lacks = not is_named and name == START_MODEL
        asks = lacks or (follows and server.server_type != "openai")
        models = served_models(server, limit_s) if asks else None
        if lacks and models is None:
            logger.warning(
                "%s lists no models, so openai.model_name is the default %s",
                *(address, name),
            )
        elif lacks and models is not None and name not in models:
            if len(models) != 1:
                has = printable(", ".join([*models][:12])) or "no model"
                raise SettingError(
                    f"openai.model_name: {address} has {has}; name one with"
                    " --openai.model_name"
                )
            (name,) = models
        tokenizers.append((models or {}).get(name, name))
        changed.append(server.model_copy(update={"model_name": name}))
    if follows:
        own = tokenizers[0]
        texts_do = not trains and all(s.server_type == "openai" for s in servers)
        if texts_do and "/" not in own and not Path(own).is_dir():
            own = NO_TOKENIZER
        config = config.model_copy(update={"tokenizer_name": own})
    return config, changed
