"""What a command with settings starts from, and what a user has set."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, cast

from pydantic import BaseModel, Field

from rg_env.cli.setting_options import ENV, OPENAI
from rg_env.settings import environment_settings, server_settings, setting_types
from rg_env.settings.environment_settings import CheckedSettings
from rg_env.settings.server_settings import CheckedServer
from rg_env.settings.setting_types import CheckedModel


@dataclasses.dataclass(frozen=True)
class Start:
    """What a command starts from: the settings of the environment and of servers."""

    env: BaseModel
    servers: Sequence[BaseModel]


def start_of(env_cls: Any, starts: Mapping[str, Any]) -> Start:
    """Return what a command starts from, given what differs from `serve`."""
    if not isinstance(env_cls, type):
        values = {**environment_settings.START, **starts}
        servers = [CheckedServer(**server_settings.START)]
        return Start(CheckedSettings(**values), servers)
    from rg_env.atropos.config import checked_kind

    env, servers = cast(Any, env_cls).config_init()
    given = list(servers) if isinstance(servers, Sequence) else [servers]
    kind = checked_kind(type(given[0]))
    copies = [kind.model_construct(**server.model_dump()) for server in given]
    return Start(env.model_copy(update=dict(starts)), copies)


class GivenSettings(CheckedModel):
    """What the user set, and nothing else; a section is that of the file."""

    env: dict[str, Any] = Field({})
    openai: dict[str, Any] | Annotated[list[dict[str, Any]], Field(min_length=1)] = (
        Field({})
    )
    launch: dict[str, Any] = Field({})
    slurm: bool = False
    testing: bool = False

    def build_env(self, start: Start) -> Any:
        """Build the settings of the environment, over what a command starts from."""
        values = start.env.model_dump() | self.env
        return setting_types.build(ENV, type(start.env), values)

    def parts(self, servers: Sequence[Any]) -> list[Mapping[str, Any]]:
        """Return what was set of each server; those of a list are others."""
        if isinstance(self.openai, Mapping):
            return [self.openai] * len(servers)
        return [*self.openai]

    def build_servers(self, start: Start) -> list[Any]:
        """Build the inference servers: those of the file, or those started from.

        An endpoint of type openai is not queried for a token every second to see if it
        is well, unless `health_check` says so: that would cost money.
        """
        is_one, servers = isinstance(self.openai, Mapping), []
        for number, part in enumerate(self.parts(start.servers)):
            section = OPENAI if is_one else f"{OPENAI}.{number}"
            first = start.servers[number if is_one else 0]
            quiet = {"health_check": False} if part.get("server_type") == OPENAI else {}
            values = {**first.model_dump(), **quiet, **part}
            servers.append(setting_types.build(section, type(first), values))
        return servers
