"""What a user has set, options over YAML, and nothing else."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from atroposlib.utils.cli import merge_dicts
from pydantic import TypeAdapter, ValidationError

from rg_env import yaml_text
from rg_env.atropos import setting_types
from rg_env.cli.setting_options import ENV, IGNORED, OPENAI, SettingsCommand, Start
from rg_env.errors import SettingError, nearest, not_allowed, shown, unknown_name
from rg_env.yaml_text import YamlFault

logger = logging.getLogger(__name__)

FLAGS = ("slurm", "testing")


@dataclasses.dataclass(frozen=True)
class Given:
    """What the user set, and nothing else.

    Attributes:
        env: Fields of the environment.
        openai: Fields of the inference server, or of each of several.
        slurm: Whether the servers are found through Slurm.
        testing: Whether the framework's mock server is used.
    """

    env: Mapping[str, Any]
    openai: Mapping[str, Any] | Sequence[Mapping[str, Any]]
    slurm: bool = False
    testing: bool = False

    def build_env(self, start: Start) -> Any:
        """Build the settings of the environment, over what a command starts from."""
        values = merge_dicts(dict(start.env_values), dict(self.env))
        return setting_types.build(ENV, start.env, values)

    def build_servers(self, start: Start) -> list[Any]:
        """Build the inference servers: those of the file, or those started from.

        An endpoint of type openai is not queried for a token every second to see if it
        is well, unless `health_check` says so: that would cost money.
        """
        if isinstance(self.openai, Mapping):
            parts = [(each, self.openai) for each in start.servers]
        else:
            first = start.servers[0] if start.servers else {}
            parts = [(first, part) for part in self.openai]
        if not parts:
            raise SettingError("openai: found no server; at least one is needed")
        servers = []
        for number, (each, part) in enumerate(parts):
            is_listed = not isinstance(self.openai, Mapping)
            section = f"{OPENAI}.{number}" if is_listed else OPENAI
            quiet = {"health_check": False} if part.get("server_type") == OPENAI else {}
            values = merge_dicts(dict(each), quiet, dict(part))
            servers.append(setting_types.build(section, start.server, values))
        return servers

    def sections(self, start: Start) -> dict[str, Any]:
        """Return the same as a file for `--config` has it, without keys of servers."""
        env = self.build_env(start).model_dump(mode="json", include={*self.env})
        is_one = isinstance(self.openai, Mapping)
        servers = self.build_servers(start)
        parts = [self.openai] * len(servers) if is_one else self.openai
        openai = [
            server.model_dump(mode="json", include={*part} - {*setting_types.SECRET})
            for server, part in zip(servers, parts, strict=True)
        ]
        flags = {name: True for name in FLAGS if getattr(self, name)}
        return {ENV: env, OPENAI: openai[0] if is_one else openai, **flags}


def _read_file(path: str | None, start: Start) -> dict[str, Any]:
    """Return the sections of a file, in which a trainer may have its own."""
    if path is None:
        return {}
    try:
        content = yaml_text.read(path)
    except YamlFault as fault:
        raise SettingError(
            f"--config: {shown(path)} cannot be used: {fault}"
        ) from fault
    known = (ENV, OPENAI, *FLAGS, *IGNORED)
    if not isinstance(content, dict) or not set(content) & set(known):
        raise SettingError(
            f"--config: {shown(path)} has none of the sections `env` and `openai`"
        )
    for name, part in content.items():
        if name not in known:
            _check_foreign(str(name), part, known, start)
    return content


def _check_foreign(name: str, part: Any, known: Sequence[str], start: Start) -> None:
    """Refuse what was perhaps meant for us in a file."""
    field = name.rpartition(".")[2]
    for section, model in ((ENV, start.env), (OPENAI, start.server)):
        if field in model.model_fields:
            raise SettingError(
                f"--config: {shown(name)} stands at the top; write {field!r} under"
                f" `{section}`"
            )
    if not isinstance(part, dict) or nearest(name, known) is not None:
        raise unknown_name("--config", name, known, "section")
    logger.info("--config: section %s is not ours and is left alone", shown(name))


def _section(content: Mapping[str, Any], name: str, known: Mapping[str, Any]) -> Any:
    """Return a section whose keys are options."""
    section = {} if content.get(name) is None else content[name]
    parts = section if isinstance(section, list) and name == OPENAI else [section]
    for part in parts:
        if not isinstance(part, dict):
            raise SettingError(f"--config: section {name!r} must map names to values")
        for key in part:
            if key not in known:
                raise unknown_name(name, str(key), known, "option")
    return parts[0] if len(parts) == 1 else parts


def _as_bool(field: str, value: Any) -> bool:
    try:
        return TypeAdapter(bool).validate_python(value)
    except ValidationError as error:
        raise not_allowed(field, value, "true or false") from error


def read(command: SettingsCommand, values: Mapping[str, Any]) -> Given:
    """Return what the options of a command line and the file that they name say.

    Raises:
        SettingError: An option, key or file is wrong.
    """
    start = command.start
    content = _read_file(values["config"], start)
    for name in IGNORED:
        if values[name] is not None or name in content:
            logger.warning("--%s does nothing: Atropos hands it to nobody", name)
    sections: dict[str, Any] = {}
    for name, model in ((ENV, start.env), (OPENAI, start.server)):
        typed = {
            option.field: option.read(values[str(option.name)])
            for option in command.settings
            if option.section == name and values[str(option.name)] is not None
        }
        section = _section(content, name, model.model_fields)
        if isinstance(section, list) and typed:
            raise SettingError(
                "command line: --openai options cannot be combined with several servers"
                f" in --config, found --openai.{min(typed)}"
            )
        is_list = isinstance(section, list)
        sections[name] = section if is_list else merge_dicts(section, typed)
    for flag in FLAGS:
        value = content.get(flag) if values[flag] is None else values[flag]
        sections[flag] = value is not None and _as_bool(f"--{flag}", value)
    return Given(**sections)
