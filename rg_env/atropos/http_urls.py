"""Addresses of servers: what is one, and what was perhaps meant by what is none."""

from __future__ import annotations

import re

from pydantic import AnyHttpUrl, TypeAdapter, ValidationError

from rg_env.errors import nearest, shown

SCHEMES = ("http", "https")

_URL = TypeAdapter(AnyHttpUrl)
_HOST = re.compile(r"\[[0-9a-f:.]+\]|\w([\w-]*\w)?(\.\w([\w-]*\w)?)*\.?")


def _fault(text: str) -> str | None:
    """Return what is wrong with an address, None if nothing is."""
    if any(sign.isspace() or not sign.isprintable() for sign in text):
        return "holds white space"
    scheme, separator, rest = text.partition("://")
    if not separator:
        return "does not begin with http://"
    if scheme.lower() not in SCHEMES:
        return f"begins with {scheme}://"
    for sign in "\\,?#":
        if sign in rest:
            return f"holds {sign!r}"
    place = rest.partition("/")[0]
    if "@" in place:
        return "holds a user or password"
    try:
        url = _URL.validate_python(text)
    except ValidationError as error:
        reason = error.errors()[0]["msg"].rpartition(", ")[2]
        return f"has an {reason}"
    if place.endswith(":") or url.port == 0:
        return "has an invalid port number"
    if not place or place.isdecimal() or not _HOST.fullmatch(url.host or ""):
        return "has no valid name of a host"
    return None


def _meant(text: str, path: str) -> str | None:
    """Return the address that was perhaps meant, if it is one."""
    scheme, separator, rest = text.strip().partition("://")
    if not separator:
        rest = re.sub(r"^(https?)?:?/+", "", scheme)
        scheme = "http"
        if not re.search(r"\w[.:/]\w|^localhost$", rest):
            return None
    elif scheme not in SCHEMES:
        scheme = nearest(scheme, SCHEMES) or ""
    if path and "/" not in rest:
        rest += path
    address = f"{scheme}://{rest}"
    return address if _fault(address) is None else None


def check_url(text: str, path: str = "") -> None:
    """Refuse what is no address of a server.

    Args:
        text: The address.
        path: What such addresses mostly end with, for what was perhaps meant.

    Raises:
        ValueError: What is wrong, what is allowed, and what was perhaps meant.
    """
    fault = _fault(text)
    if fault is None:
        return
    # A password is not for the screen.
    found = re.sub(r"//[^/]*@", "//...@", text)
    meant = _meant(text, path)
    hint = f"; did you mean {meant!r}?" if meant else ""
    raise ValueError(
        f"found {shown(found)}, which {fault}; allowed is an address like"
        f" http://HOST:PORT{path}{hint}"
    )
