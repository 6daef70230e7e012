"""The model of a server that has exactly one, asked for before a run is built."""

from __future__ import annotations

import dataclasses
import http.client
import urllib.request
from pathlib import Path
from typing import Any

import orjson

from rg_env.inference.connection import headers_of, url_of

PATIENCE_S = 3.0
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
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        request = urllib.request.Request(url, headers=key | headers_of(server))  # noqa: S310 - the user's URL, which is checked
        with direct.open(request, timeout=PATIENCE_S) as reply:
            (row,) = orjson.loads(reply.read(MOST_BYTES))["data"]
        name, root = row["id"], {**row}.get("root")
    except (OSError, http.client.HTTPException, LookupError, TypeError, ValueError):
        return None  # the probe says later what is wrong with a server
    if not isinstance(name, str) or not name.strip():
        return None
    if isinstance(root, str) and "\0" not in root and Path(root).is_dir():
        return OnlyModel(name, root)
    return OnlyModel(name, name)
