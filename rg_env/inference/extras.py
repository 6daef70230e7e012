"""What the settings of a server add to every request: headers and fields of the body.

`ServerSettings` checks them; a config that somebody else made has none of them.
"""

from __future__ import annotations

from typing import Any

TEMPLATE_KWARGS = "chat_template_kwargs"
"""What is no sampling: a server renders a chat with it, and we do in its place."""


def headers_of(config: Any) -> dict[str, str]:
    """Return the headers that requests to a server carry beside the key."""
    return dict(getattr(config, "headers", None) or {})


def extra_body_of(config: Any) -> dict[str, Any]:
    """Return what is added to the body of a request."""
    return dict(getattr(config, "extra_body", None) or {})


def secrets_of(config: Any) -> list[str]:
    """Return what no line may repeat of a server's settings: key and headers."""
    values = list(headers_of(config).values())
    tokens = [value.removeprefix("Bearer ") for value in values]
    return [getattr(config, "api_key", None) or "", *values, *tokens]


def sampling_extra_of(config: Any) -> dict[str, Any]:
    """Return the same without what a prompt is rendered with."""
    extra = extra_body_of(config)
    extra.pop(TEMPLATE_KWARGS, None)
    return extra


def template_kwargs_of(config: Any) -> dict[str, Any]:
    """Return what a prompt is rendered with."""
    return dict(extra_body_of(config).get(TEMPLATE_KWARGS) or {})
