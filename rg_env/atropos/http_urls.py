"""Addresses of servers: what is one, and what was perhaps meant by what is none."""

from __future__ import annotations

import re

from pydantic import AnyHttpUrl, TypeAdapter, ValidationError

from rg_env.errors import shown

_URL = TypeAdapter(AnyHttpUrl)
_FORM = re.compile(
    r"https?://(\[[0-9a-f:.]+\]|(?!\d+([:/]|$))\w[\w.-]*)(:[1-9]\d*)?(/[^\s?#,\\]*)?",
    re.IGNORECASE,
)
"""Stricter than a URL: no user, question or fragment; a host that is no bare number."""


def _is_url(text: str) -> bool:
    try:
        return bool(_FORM.fullmatch(text) and _URL.validate_python(text))
    except ValidationError:  # a port or a name beyond what there is
        return False


def check_url(text: str, path: str = "") -> str:
    """Return an address of a server as it is.

    Args:
        text: The address.
        path: What such addresses mostly end with, for what was perhaps meant.

    Raises:
        ValueError: It is none; what is allowed, and what was perhaps meant.
    """
    if _is_url(text):
        return text
    rest = re.sub(r"^(\w*:)?/+", "", text.strip())
    meant = f"http://{rest}" if "/" in rest else f"http://{rest}{path}"
    hint = f"; did you mean {meant!r}?" if _is_url(meant) else ""
    # A password is not for the screen.
    found = re.sub(r"//[^/]*@", "//...@", text)
    raise ValueError(
        f"found {shown(found)}; allowed is an address like http://HOST:PORT{path},"
        f" without a user or a question{hint}"
    )
