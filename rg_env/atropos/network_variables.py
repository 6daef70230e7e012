"""Environment variables that the clients of servers read, and fail at far from here."""

from __future__ import annotations

import importlib.util
import os
import ssl
from collections.abc import Mapping
from typing import Annotated

from pydantic import AnyUrl, TypeAdapter, UrlConstraints, ValidationError

from rg_env.atropos.http_urls import check_url
from rg_env.errors import SettingError, shown

PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
PROXY_SCHEMES = ["http", "https", "socks5", "socks5h"]
CERTIFICATES = "SSL_CERT_FILE"
FRAMEWORK_PROXY = "ATROPOS_PROXY_URL"
"""Of the framework's own proxy, which keeps the tokens of other people's clients."""

_PROXY = TypeAdapter(
    Annotated[AnyUrl, UrlConstraints(allowed_schemes=PROXY_SCHEMES, host_required=True)]
)


def _refused(name: str, value: str, reason: str) -> SettingError:
    return SettingError(
        f"{name}: found {shown(value)}, and {reason}; correct or unset it"
    )


def _check_proxy(name: str, value: str) -> None:
    try:
        url = _PROXY.validate_python(value if "://" in value else f"http://{value}")
    except ValidationError as error:
        said = error.errors(include_url=False)[0]["msg"]
        # Not the value, which may hold a password.
        raise SettingError(
            f"{name}: the address of a proxy is wrong ({said}); correct or unset it"
        ) from error
    if url.scheme.startswith("socks") and not importlib.util.find_spec("socksio"):
        raise SettingError(
            f"{name}: a SOCKS proxy needs a package; install httpx[socks], or unset it"
        )


def check_network_variables(environ: Mapping[str, str] = os.environ) -> None:
    """Refuse variables that no client of a server can be built with.

    Raises:
        SettingError: The variable, what was found and the reason.
    """
    for upper in PROXIES:
        for name in (upper, upper.lower()):
            if environ.get(name):
                _check_proxy(name, environ[name])
    file = environ.get(CERTIFICATES)
    if file:
        try:
            ssl.create_default_context(cafile=file)
        except OSError as error:
            reason = error.strerror or str(error)
            said = f"it holds no certificates ({reason})"
            raise _refused(CERTIFICATES, file, said) from error
    address = environ.get(FRAMEWORK_PROXY)
    if address:
        try:
            check_url(address)
        except ValueError as error:
            raise SettingError(f"{FRAMEWORK_PROXY}: {error}") from error
