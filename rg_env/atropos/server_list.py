"""The inference servers of a run: their settings, and the list of them.

Mends B21 of docs/host_defects.md: the framework discards a single server config,
refuses an empty key with openai 3, and fails on Slurm's variables (`8 // "2"`), so the
list is made here and given to it with `slurm=False`.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence

from atroposlib.envs.server_handling.server_manager import (
    APIServerConfig,
    ServerBaseline,
)

from rg_env.errors import SettingError
from rg_env.inference.connection import extra_body_of
from rg_env.settings import setting_types
from rg_env.settings.server_settings import CheckedServer

PLACEHOLDER_KEY = "x"
FIRST_PORT = 9000
LOCAL_PORTS = range(9004, 9008)
"""Where the framework expects servers on this machine when it is given no URL."""


class ServerSettings(CheckedServer, APIServerConfig):
    """What `APIServerConfig` says of a server, checked.

    Source: atroposlib 0.4.0, APIServerConfig; differs: ranges are checked, unknown
    fields are refused.
    """


def checked_kind(kind: type[APIServerConfig]) -> type[APIServerConfig]:
    """Return the class that checks configs of a class; a subclass is left as it is."""
    return ServerSettings if kind is APIServerConfig else kind


def slurm_urls(environ: Mapping[str, str]) -> list[str]:
    """Return the servers' URLs on the inference nodes of a Slurm job.

    The first NUM_TRAINING_NODES nodes train; each of the others runs 8 / INFER_TP
    servers on ports from 9000. One node alone means servers on this machine.

    Raises:
        SettingError: A variable is missing or unusable.

    Source: atroposlib 0.4.0, ServerManager; differs: INFER_TP is read as a number.
    """
    try:
        listing = ["scontrol", "show", "hostnames", environ["SLURM_JOB_NODELIST"]]
        # On Slurm's PATH.
        nodes = subprocess.check_output(listing, text=True, timeout=60).split()
        if len(nodes) < 2:
            return []
        of_servers = nodes[int(environ["NUM_TRAINING_NODES"]) :]
        ports = range(FIRST_PORT, FIRST_PORT + 8 // int(environ.get("INFER_TP", 1)))
    except (KeyError, ValueError, ArithmeticError, OSError) as error:
        raise _no_slurm(f"{type(error).__name__}: {error}") from error
    except subprocess.SubprocessError as error:
        raise _no_slurm(str(error)) from error
    urls = [f"http://{node}:{port}/v1" for node in of_servers for port in ports]
    if not urls:
        raise _no_slurm("NUM_TRAINING_NODES and INFER_TP leave no server")
    return urls


def _no_slurm(reason: str) -> SettingError:
    return SettingError(
        f"slurm: {reason}; run in a Slurm job with SLURM_JOB_NODELIST and"
        " NUM_TRAINING_NODES, and perhaps INFER_TP, or pass --slurm false"
    )


# -- the list -------------------------------------------------------------------------


def _listed(config: ServerBaseline, tokenizer_name: str) -> list[APIServerConfig]:
    """Return a config, or four local servers for the framework's baseline.

    Each has what the framework's clients cannot do without: a key and a tokenizer.
    """
    configs = [config]
    if not isinstance(config, APIServerConfig):
        urls = [f"http://localhost:{port}/v1" for port in LOCAL_PORTS]
        fields = config.model_dump()
        configs = [APIServerConfig(**fields, base_url=url) for url in urls]
    return [
        each.model_copy(
            update={
                "api_key": each.api_key or PLACEHOLDER_KEY,
                "tokenizer_name": (
                    tokenizer_name
                    if each.tokenizer_name == "none"
                    else each.tokenizer_name
                ),
            }
        )
        for each in configs
    ]


def server_list(
    configs: ServerBaseline | Sequence[ServerBaseline],
    *,
    tokenizer_name: str,
    slurm: bool,
    environ: Mapping[str, str] | None = None,
    of_one_type: bool = False,
) -> list[APIServerConfig]:
    """Return the servers of the run: at least one config with a key.

    Args:
        configs: One config or several.
        tokenizer_name: For servers whose config names none.
        slurm: Whether the URLs come from the Slurm job, one server like the first each.
        environ: Where Slurm's variables are; the process's own by default.
        of_one_type: Whether one class of clients has to do for all.

    Raises:
        SettingError: There is no server, they differ in what must be one, or Slurm's
            variables are unusable.
    """
    given = [configs] if isinstance(configs, ServerBaseline) else list(configs)
    servers = [server for each in given for server in _listed(each, tokenizer_name)]
    if not servers:
        raise SettingError("openai: at least one server is needed")
    # A subclass of configs may know more types of servers, and more fields.
    known = set(ServerSettings.model_fields) - {"server_type"}
    for server in servers:
        if not isinstance(server, ServerSettings):
            fields = server.model_dump(include=known, exclude_unset=True)
            setting_types.build("openai", ServerSettings, fields)
    if any(extra_body_of(s) != extra_body_of(servers[0]) for s in servers[1:]):
        raise SettingError(
            "openai.extra_body: all servers must have the same, since a trainer is told"
            " once what is sampled with"
        )
    types = sorted({server.server_type for server in servers})
    if of_one_type and len(types) > 1:
        raise SettingError(
            "openai.server_type: all servers of a client of your own (`server_cls`)"
            f" must have the same type, not {' and '.join(types)}"
        )
    if slurm:
        urls = slurm_urls(os.environ if environ is None else environ)
        if urls:
            return [servers[0].model_copy(update={"base_url": url}) for url in urls]
    for server in servers:
        if not server.base_url:
            raise SettingError(
                "openai.base_url: the URL of an inference server is needed, such as"
                " http://localhost:9004/v1"
            )
    return servers
