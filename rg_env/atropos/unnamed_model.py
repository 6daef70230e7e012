"""The model and the tokenizer of a run whose settings do not name them.

A server that has exactly one model is asked for its name before the run is built.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rg_env import patience
from rg_env.atropos.start_checks import NO_TOKENIZER
from rg_env.errors import RunError, SettingError, printable
from rg_env.inference.connection import Connection
from rg_env.inference.request_failures import (
    NOTHING,
    UNAVAILABLE,
    Failure,
    RequestFailedError,
)
from rg_env.settings.environment_settings import DEFAULT_TOKENIZER, START_MODEL
from rg_env.settings.setting_types import without_path

logger = logging.getLogger(__name__)

DEFAULTS = (START_MODEL, DEFAULT_TOKENIZER)
ANSWERS_WITHIN_S = 3.0


@dataclasses.dataclass(frozen=True)
class ServedModel:
    """A model as its server names it.

    Attributes:
        name: What requests call it.
        tokenizer: Its folder if vLLM names one of this machine, else its name.
    """

    name: str
    tokenizer: str


def served_models(server: Any, give_up_s: float = math.inf) -> list[ServedModel] | None:
    """Return the models of a server, once it answers; None if it does not list them.

    Raises:
        SettingError: Its URL can never be reached.
        RunError: It did not answer in time.
    """
    ends_s, said = time.monotonic() + give_up_s, ""
    while isinstance(found := _ask(server), Failure):
        told = f"{server.base_url} {found.how} ({found.text})"
        if found.setting is not None:
            raise SettingError(f"{found.setting}: {told}")
        told += "; start the server or set --openai.base_url"
        if time.monotonic() >= ends_s:
            raise RunError(f"inference at {told}; gave up (env.give_up_after_s)")
        if not said:
            logger.warning("inference at %s; waiting for it", said := told)
        time.sleep(patience.LAUNCH_ASK_EVERY_S)
    return found


def _ask(server: Any) -> list[ServedModel] | Failure | None:
    async def models() -> list[Any]:
        connection = Connection(server, is_openai=server.server_type == "openai")
        try:
            return await connection.models(ANSWERS_WITHIN_S)
        finally:
            await connection.close()

    if not server.base_url:
        return None
    try:
        found = [(str(r["id"]), {**r}.get("root")) for r in asyncio.run(models())]
    except (LookupError, TypeError):
        return None  # the probe says later what is wrong with a server
    except RequestFailedError as error:
        is_down = error.failure.how == NOTHING or error.failure.status == UNAVAILABLE
        return error.failure if is_down else None
    return [ServedModel(name, _folder(root) or name) for name, root in found]


def _folder(root: object) -> str:
    """Return the folder of a model, "" if it is not on this machine."""
    is_here = isinstance(root, str) and "\0" not in root and Path(root).is_dir()
    return str(root) if is_here else ""


def _choose(server: Any, models: Sequence[ServedModel] | None) -> Any:
    """Return a server with the name of its only model.

    Raises:
        SettingError: It has several, or none.
    """
    names = [model.name for model in models or ()]
    address = without_path(server.base_url or "")
    if models is None:
        logger.warning(
            "%s lists no models, so openai.model_name is the default %s",
            *(address, server.model_name),
        )
    elif len(names) == 1:
        return server.model_copy(update={"model_name": names[0]})
    elif server.model_name not in names:
        has = ", ".join(names[:12]) + ", ..." * (len(names) > 12)
        raise SettingError(
            f"openai.model_name: {address} has {printable(has) or 'no model'}; name one"
            " with --openai.model_name"
        )
    return server


def found_model(
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
    a name on the hub.

    Args:
        config: Settings of the environment.
        servers: Settings of the servers.
        named: Whether the model of each of these was named, shape (S,).
        names_tokenizer: Whether the tokenizer was named.
        trains: Whether a trainer gets what the model writes.

    Raises:
        SettingError: A server whose model is not named has several models, or none.
        RunError: No server answered in time.
    """
    follows = not names_tokenizer and config.tokenizer_name in DEFAULTS
    limit_s = math.inf if trains else config.give_up_after_s
    texts_do = not trains and all(s.server_type == "openai" for s in servers)
    changed, tokenizers = list[Any](), list[str]()
    for server, is_named in zip(servers, named, strict=True):
        lacks = not is_named and server.model_name == START_MODEL
        asks = lacks or (follows and server.server_type != "openai")
        models = served_models(server, limit_s) if asks else None
        if lacks:
            server = _choose(server, models)
        of_model = {model.name: model.tokenizer for model in models or ()}
        tokenizers.append(of_model.get(server.model_name, server.model_name))
        changed.append(server)
    if follows:
        own = tokenizers[0]
        if texts_do and "/" not in own and not Path(own).is_dir():
            own = NO_TOKENIZER
        config = config.model_copy(update={"tokenizer_name": own})
    return config, changed
