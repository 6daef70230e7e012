"""Environment variables that the clients of servers read, and fail at far from here."""

from __future__ import annotations

import importlib.util
import os
import ssl
from collections.abc import Callable, Mapping
from typing import Annotated

from pydantic import AnyUrl, TypeAdapter, UrlConstraints

from rg_env.atropos.http_urls import check_url
from rg_env.atropos.setting_checks import fault_of
from rg_env.errors import SettingError

PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
PROXY_SCHEMES = ["http", "https", "socks5", "socks5h"]

_PROXY = TypeAdapter(
    Annotated[AnyUrl, UrlConstraints(allowed_schemes=PROXY_SCHEMES, host_required=True)]
)


def _check_proxy(address: str) -> None:
    url = _PROXY.validate_python(address if "://" in address else f"http://{address}")
    if url.scheme.startswith("socks") and not importlib.util.find_spec("socksio"):
        raise ValueError("a SOCKS proxy needs the package httpx[socks]")


def check_network_variables(environ: Mapping[str, str] = os.environ) -> None:
    """Refuse variables that no client of a server can be built with.

    Raises:
        SettingError: The variable and the reason, without what may be a password.
    """
    checks: dict[str, Callable[[str], object]]
    checks = {each: _check_proxy for name in PROXIES for each in (name, name.lower())}
    checks["SSL_CERT_FILE"] = lambda file: ssl.create_default_context(cafile=file)
    # Of the framework's own proxy, which keeps the tokens of other people's clients.
    checks["ATROPOS_PROXY_URL"] = check_url
    for name, check in checks.items():
        try:
            if environ.get(name):
                check(environ[name])
        except (OSError, ValueError) as error:
            said = f"{name}: {fault_of(error)}; correct or unset it"
            raise SettingError(said) from error
