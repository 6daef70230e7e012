"""The model and the tokenizer of inference servers that no setting names."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rg_env.atropos.start_checks import NO_TOKENIZER
from rg_env.errors import RunError, SettingError, printable, shown
from rg_env.inference.connection import (
    MODEL,
    NO_REPLY,
    UNAVAILABLE,
    Connection,
    RequestFailedError,
)
from rg_env.inference.protocols import CHAT
from rg_env.installation import TOKENIZER_FOLDER
from rg_env.settings.environment_settings import DEFAULT_MODEL, DEFAULT_TOKENIZER
from rg_env.settings.server_and_launch_settings import SIMULATED
from rg_env.settings.setting_checks import without_path

logger = logging.getLogger(__name__)

POLL_INTERVAL_S = 0.5
REPLY_TIMEOUT_S = 3.0


def _request(server: Any, send: Callable[[Connection], Awaitable[Any]]) -> Any:
    """Return the reply to one request, sent on a connection of its own."""

    async def reply() -> Any:
        connection = Connection(server)
        try:
            return await send(connection)
        finally:
            await connection.close()

    return asyncio.run(reply())


def list_models(server: Any, give_up_s: float, *, is_needed: bool) -> dict[str, str]:
    """Poll a server until it lists its models.

    Args:
        server: The settings of the server.
        give_up_s: Seconds after which a server that does not answer is an error.
        is_needed: Whether it is an error if the server cannot list its models.

    Returns:
        Each model with the name of its tokenizer; {} if the server lists none.

    Raises:
        RunError: The server does not answer, or is not an inference server.
        SettingError: The server refuses the request because of a setting.
    """
    if server.base_url == SIMULATED:
        return {SIMULATED: str(TOKENIZER_FOLDER)}
    ends_s = time.monotonic() + give_up_s
    level = logging.WARNING
    while True:
        try:
            rows = _request(server, lambda to: to.models(REPLY_TIMEOUT_S))
            return {str(row["id"]): _tokenizer_of(row) for row in rows}
        except (AttributeError, LookupError, TypeError, ValueError):
            return {}
        except RequestFailedError as error:
            failure = error.failure
            if failure.setting:
                address = without_path(server.base_url)
                raise SettingError(f"{failure.setting}: {address}: {error}") from error
            is_starting = failure.symptom == NO_REPLY or failure.status == UNAVAILABLE
            if not is_starting and not is_needed:
                return {}
            text = f"{failure.at(server.base_url)}; set --openai.base_url"
            if not is_starting or time.monotonic() >= ends_s:
                raise RunError(text) from error
        logger.log(level, "%s, or start the server, which is waited for", text)
        level = logging.DEBUG
        time.sleep(POLL_INTERVAL_S)


def _tokenizer_of(row: Mapping[str, Any]) -> str:
    """Return the tokenizer of a model: its folder, if vLLM names one, or its name."""
    folder = str(row.get("root") or "")
    return folder if folder and Path(folder).is_dir() else str(row["id"])


def _accepts_model(server: Any) -> bool:
    """Return whether a server accepts its model, even if it does not list it."""
    messages = [{"role": "user", "content": "?"}]
    body = {"model": server.model_name, "messages": messages, "max_tokens": 1}
    try:
        _request(server, lambda to: to.post(CHAT.path, body))
    except RequestFailedError as error:
        return error.failure.setting != MODEL
    return True


def _model_of(server: Any, models: Mapping[str, str], *, needs_model: bool) -> str:
    """Return the model to request from a server with these models.

    Raises:
        SettingError: The server does not have the model of the settings; or none is
            set, and the server does not have exactly one.
    """
    name = str(server.model_name)
    if needs_model and len(models) == 1:
        return next(iter(models))
    if name in models:
        return name
    if needs_model or (models and not _accepts_model(server)):
        names = printable(", ".join(list(models)[:12])) or "no model"
        raise SettingError(
            f"openai.model_name: {without_path(server.base_url)} has {names}, not"
            f" {shown(name)}; name one with --openai.model_name"
        )
    return name


def with_model(
    config: Any,
    servers: Sequence[Any],
    *,
    sets_model: Sequence[bool],
    sets_tokenizer: bool,
    trains: bool,
) -> tuple[Any, list[Any]]:
    """Return settings with a model and a tokenizer where none is set.

    The model is the only one of the server. The tokenizer is that of the first server's
    model. No tokenizer is used if texts are enough and the model's name is neither a
    folder nor a name on the hub.

    Args:
        config: The settings of the environment.
        servers: The settings of the servers.
        sets_model: Whether the model of each server is explicitly set.
        sets_tokenizer: Whether the tokenizer is explicitly set.
        trains: Whether a trainer needs token ids, and waits for the servers.
    """
    defaults = (DEFAULT_MODEL, DEFAULT_TOKENIZER)
    needs_tokenizer = not sets_tokenizer and config.tokenizer_name in defaults
    limit_s = math.inf if trains else config.give_up_after_s
    changed = []
    tokenizers = []
    for server, is_set in zip(servers, sets_model, strict=True):
        models = {}
        url = server.base_url
        is_default = bool(url) and not is_set and server.model_name == DEFAULT_MODEL
        needs_model = is_default or url == SIMULATED
        if url and (needs_model or needs_tokenizer):
            models = list_models(server, limit_s, is_needed=needs_model)
        name = _model_of(server, models, needs_model=needs_model)
        tokenizers.append(models.get(name, name))
        changed.append(server.model_copy(update={"model_name": name}))
    if needs_tokenizer:
        tokenizer = tokenizers[0]
        takes_texts = all(server.server_type == "openai" for server in servers)
        is_path = "/" in tokenizer or Path(tokenizer).is_dir()
        if takes_texts and not trains and not is_path:
            tokenizer = NO_TOKENIZER
        config = config.model_copy(update={"tokenizer_name": tokenizer})
    return config, changed
