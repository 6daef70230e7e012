"""What can be set on a command line: names, kinds and defaults of the fields.

They are those of two models, of which one is the framework's. Its import takes
seconds, for which nobody wants to wait who mistyped a name or asks for `--help`. So the
table of this environment is written down, in options.json, and a test holds it to the
models. Made by `python -m rg_env.cli.make_option_table`.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import types
import typing
from collections.abc import Mapping
from enum import Enum
from importlib import metadata
from pathlib import Path
from typing import Any

from rg_env.cli.option_groups import SERVER_TEXTS, TEXTS

if typing.TYPE_CHECKING:
    from atroposlib.envs.server_handling.server_manager import APIServerConfig
    from pydantic import BaseModel

ENV, OPENAI = "env", "openai"
TABLE_FILE = Path(__file__).with_name("options.json")
PROJECT = Path(__file__).resolve().parents[2]


@dataclasses.dataclass(frozen=True)
class Option:
    """One field that can be set.

    Attributes:
        name: The field's name.
        kinds: Names of the types it may have, without None.
        words: The only values it may have, if they are words.
        text: What it means.
        default: What the commands start from, as text.
    """

    name: str
    kinds: tuple[str, ...]
    words: tuple[str, ...]
    text: str
    default: str


@dataclasses.dataclass(frozen=True)
class OptionTable:
    """The options of a command line.

    Attributes:
        env: Of the environment, in the model's order.
        openai: Of an inference server.
    """

    env: tuple[Option, ...]
    openai: tuple[Option, ...]

    def section(self, name: str) -> Mapping[str, Option]:
        """Return the options of a section by name."""
        return {option.name: option for option in getattr(self, name)}


def _parts(annotation: Any) -> tuple[Any, ...]:
    """Return the types that a union is made of, without None."""
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        inner = typing.get_args(annotation)
        return tuple(part for one in inner for part in _parts(one))
    return () if annotation is type(None) else (annotation,)


def _words(parts: tuple[Any, ...]) -> tuple[str, ...]:
    found: list[str] = []
    for part in parts:
        if typing.get_origin(part) is typing.Literal:
            found += map(str, typing.get_args(part))
        elif isinstance(part, type) and issubclass(part, Enum):
            found += [str(member.value) for member in part]
    return tuple(found)


def _kind(part: Any) -> str:
    origin = typing.get_origin(part) or part
    known = (bool, int, float, list, dict)
    return origin.__name__ if origin in known else "str"


def _shown(default: object) -> str:
    """Return a default as text that is the same on every machine."""
    value = default.value if isinstance(default, Enum) else default
    return str(value).replace(f"{PROJECT}/", "")


def _describe_model(
    defaults: BaseModel, texts: Mapping[str, str]
) -> tuple[Option, ...]:
    options = []
    for name, info in type(defaults).model_fields.items():
        parts = _parts(info.annotation)
        option = Option(
            name=name,
            kinds=tuple(dict.fromkeys(map(_kind, parts))),
            words=_words(parts),
            text=texts.get(name) or (info.description or "").rstrip("."),
            default=_shown(getattr(defaults, name)),
        )
        options.append(option)
    return tuple(options)


def describe(env: BaseModel, server: APIServerConfig) -> OptionTable:
    """Return the table of two models, with what a command starts from."""
    from rg_env.atropos.server_settings import with_checks

    texts = {**TEXTS, **SERVER_TEXTS}
    return OptionTable(
        _describe_model(env, TEXTS), _describe_model(with_checks(server), texts)
    )


def as_json(table: OptionTable) -> str:
    """Return a table as it is written down, an option a line."""
    lines = [f'"atroposlib": {json.dumps(metadata.version("atroposlib"))}']
    for section in (ENV, OPENAI):
        rows = [json.dumps(dataclasses.asdict(row)) for row in getattr(table, section)]
        lines.append(f'"{section}": [\n' + ",\n".join(rows) + "\n]")
    return "{\n" + ",\n".join(lines) + "\n}\n"


@functools.lru_cache(maxsize=1)
def read_table() -> OptionTable | None:
    """Return the table that is written down.

    Returns:
        None if it is not of the framework that is installed, whose fields may be
        others.
    """
    content = json.loads(TABLE_FILE.read_text(encoding="utf-8"))
    try:
        if content["atroposlib"] != metadata.version("atroposlib"):
            return None
    except metadata.PackageNotFoundError:
        return None

    def options(section: str) -> tuple[Option, ...]:
        return tuple(
            Option(
                name=row["name"],
                kinds=tuple(row["kinds"]),
                words=tuple(row["words"]),
                text=row["text"],
                default=row["default"],
            )
            for row in content[section]
        )

    return OptionTable(options(ENV), options(OPENAI))
