"""What the settings of a server make of a request: URL, headers, fields of the body.

`ServerSettings` checks them; a config that somebody else made has none but the URL.
"""

from __future__ import annotations

import re
from typing import Any

from rg_env.settings.server_settings import TEMPLATE_KWARGS

CHAT = "/v1/chat/completions"
V1 = "/v1"
"""What paths of the OpenAI kind begin with, and the settings' URL ends with."""

_OVERLONG = re.compile(r"(/(chat/)?completions)?/*$")
_VERSIONS = re.compile(rf"({V1})+$")


def url_of(base_url: str, path: str, *, is_openai: bool) -> str:
    """Return where a path is, below a URL as the user wrote it.

    Below one of an endpoint of the OpenAI kind that does not end with the version stand
    OpenAI's paths without theirs.
    """
    base = _OVERLONG.sub("", base_url, count=1)
    root = _VERSIONS.sub("", base)
    if is_openai and root == base:
        path = path.removeprefix(V1)
    return root + path


def headers_of(config: Any) -> dict[str, str]:
    """Return the headers that requests to a server carry beside the key."""
    return dict(getattr(config, "headers", None) or {})


def secrets_of(config: Any) -> list[str]:
    """Return what no line may repeat of a server's settings: key and headers."""
    values = list(headers_of(config).values())
    tokens = [value.removeprefix("Bearer ") for value in values]
    return [getattr(config, "api_key", None) or "", *values, *tokens]


def extra_body_of(config: Any) -> dict[str, Any]:
    """Return what is added to the body of a request."""
    return dict(getattr(config, "extra_body", None) or {})


def sampling_extra_of(config: Any) -> dict[str, Any]:
    """Return the same without what a prompt is rendered with."""
    extra = extra_body_of(config)
    extra.pop(TEMPLATE_KWARGS, None)
    return extra


def template_kwargs_of(config: Any) -> dict[str, Any]:
    """Return what a prompt is rendered with."""
    return dict(extra_body_of(config).get(TEMPLATE_KWARGS) or {})
