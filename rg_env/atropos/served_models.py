"""The model and the tokenizer of servers where no setting names them."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from rg_env.atropos.start_checks import NO_TOKENIZER
from rg_env.errors import RunError, SettingError, printable, shown
from rg_env.inference.connection import (
    MODEL,
    NOTHING,
    UNAVAILABLE,
    Connection,
    RequestFailedError,
)
from rg_env.inference.protocols import CHAT
from rg_env.installation import TOKENIZER_FOLDER
from rg_env.settings.environment_settings import DEFAULT_TOKENIZER, START_MODEL
from rg_env.settings.program_settings import SIMULATED
from rg_env.settings.setting_checks import without_path

logger = logging.getLogger(__name__)

T = TypeVar("T")

POLL_INTERVAL_S = 0.5
REPLY_TIMEOUT_S = 3.0


def _at(server: Any, request: Callable[[Connection], Awaitable[T]]) -> T:
    """Return the reply of a server to one request."""

    async def replied() -> T:
        connection = Connection(server)
        try:
            return await request(connection)
        finally:
            await connection.close()

    return asyncio.run(replied())


def list_models(server: Any, give_up_s: float, *, is_needed: bool) -> dict[str, str]:
    """Return the models of a server, once it answers; {} if it does not list them.

    Each name has its tokenizer: a folder if vLLM names one that is here, or the name.
    """
    if server.base_url == SIMULATED:
        return {SIMULATED: str(TOKENIZER_FOLDER)}
    ends_s = time.monotonic() + give_up_s
    log = logger.warning
    while True:
        try:
            rows = _at(server, lambda to: to.models(REPLY_TIMEOUT_S))
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
        time.sleep(POLL_INTERVAL_S)


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
    sets_model: Sequence[bool],
    sets_tokenizer: bool,
    trains: bool,
) -> tuple[Any, list[Any]]:
    """Return settings with a model and a tokenizer where no setting names them.

    The model is the only one of the server. The tokenizer is that of the first server's
    model; none is used if texts are enough and the model's name is neither a folder nor
    a name on the hub. `sets_model` says of each server whether its model was.
    """
    defaults = (START_MODEL, DEFAULT_TOKENIZER)
    follows = not sets_tokenizer and config.tokenizer_name in defaults
    limit_s = math.inf if trains else config.give_up_after_s
    changed = []
    tokenizers = []
    for server, is_named in zip(servers, sets_model, strict=True):
        name = server.model_name
        models = {}
        lacks = bool(server.base_url) and not is_named and name == START_MODEL
        lacks = lacks or server.base_url == SIMULATED
        if server.base_url and (lacks or follows):
            models = list_models(server, limit_s, is_needed=lacks)
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
