"""The model and the tokenizer of a run whose settings do not name them.

A server that has exactly one model is asked for its name before the run is built.
"""

from __future__ import annotations

import dataclasses
import http.client
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson

from rg_env.atropos.start_checks import NO_TOKENIZER
from rg_env.inference.connection import headers_of, url_of
from rg_env.settings.environment_settings import START_MODEL

ANSWERS_WITHIN_S = 3.0
MOST_BYTES = 2**20


@dataclasses.dataclass(frozen=True)
class OnlyModel:
    """A model as its server names it.

    Attributes:
        name: What requests call it.
        tokenizer: Its folder where vLLM tells one of this machine, else its name.
    """

    name: str
    tokenizer: str


def only_model(server: Any) -> OnlyModel | None:
    """Return the model of a server; None if it has several, or does not say in time."""
    key = {"Authorization": f"Bearer {server.api_key}"} if server.api_key else {}
    is_openai = server.server_type == "openai"
    url = url_of(server.base_url or "", "/v1/models", is_openai=is_openai)
    # A server with one model is one's own, and stands behind no proxy.
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        request = urllib.request.Request(url, headers=key | headers_of(server))  # noqa: S310 - the user's URL, which is checked
        with direct.open(request, timeout=ANSWERS_WITHIN_S) as reply:
            (row,) = orjson.loads(reply.read(MOST_BYTES))["data"]
        name, root = row["id"], {**row}.get("root")
    except (OSError, http.client.HTTPException, LookupError, TypeError, ValueError):
        return None  # the probe says later what is wrong with a server
    if not isinstance(name, str) or not name.strip():
        return None
    if isinstance(root, str) and "\0" not in root and Path(root).is_dir():
        return OnlyModel(name, root)
    return OnlyModel(name, name)


def found_model(
    config: Any,
    servers: Sequence[Any],
    *,
    named: Sequence[bool],
    names_tokenizer: bool,
    trains: bool,
) -> tuple[Any, list[Any]]:
    """Return settings with a model and a tokenizer where nobody has named them.

    The model is that of a server that has exactly one. The tokenizer is that of the
    first server's model; none is used if texts are enough and the model's name is
    neither a folder nor a name on the hub.

    Args:
        config: Settings of the environment.
        servers: Settings of the servers.
        named: Whether the model of each of these was named, shape (S,).
        names_tokenizer: Whether the tokenizer was named.
        trains: Whether a trainer gets what the model writes.
    """
    follows = not names_tokenizer and config.tokenizer_name == START_MODEL
    texts_do = not trains and all(s.server_type == "openai" for s in servers)
    changed, tokenizers = list[Any](), list[str]()
    for server, is_named in zip(servers, named, strict=True):
        lacks = not is_named and server.model_name == START_MODEL
        asks = lacks or (follows and server.server_type != "openai")
        found = only_model(server) if asks else None
        if found and lacks:
            server = server.model_copy(update={"model_name": found.name})
        is_its = found is not None and found.name == server.model_name
        tokenizers.append(found.tokenizer if found and is_its else server.model_name)
        changed.append(server)
    if follows:
        own = tokenizers[0]
        if texts_do and "/" not in own and not Path(own).is_dir():
            own = NO_TOKENIZER
        config = config.model_copy(update={"tokenizer_name": own})
    return config, changed
