"""The settings of an inference server, with ranges that the framework leaves out."""

from __future__ import annotations

from typing import Any

from atroposlib.envs.server_handling.server_manager import APIServerConfig

from rg_env.atropos import setting_checks
from rg_env.atropos.checked_server import CheckedServer


class ServerSettings(CheckedServer, APIServerConfig):
    """What `APIServerConfig` says of a server, checked.

    Source: atroposlib 0.4.0, APIServerConfig; differs: ranges are checked, unknown
    fields are refused.
    """


def checked_kind(kind: type[APIServerConfig]) -> type[APIServerConfig]:
    """Return the class that checks what a class of configs leaves unchecked.

    That of somebody else is left as it is: it may know more types of servers.
    """
    return ServerSettings if kind is APIServerConfig else kind


def with_checks(server: APIServerConfig) -> APIServerConfig:
    """Return a config with the fields that the framework's own class leaves out."""
    kind = checked_kind(type(server))
    return server if kind is type(server) else kind(**server.model_dump())


def check_server(server: APIServerConfig) -> None:
    """Refuse values that no server can be asked with, in a config of the framework's.

    Raises:
        SettingError: A value is not allowed.
    """
    if isinstance(server, ServerSettings):
        return
    # A subclass may know more types of servers, and more fields.
    known = set(ServerSettings.model_fields) - {"server_type"}
    given: dict[str, Any] = server.model_dump(include=known, exclude_unset=True)
    setting_checks.build("openai", ServerSettings, given)
