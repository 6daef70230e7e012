"""Options of `serve`, `process` and `evaluate`: command line over YAML over defaults.

    --env.FIELD VALUE      a field of ReasoningGymEnvConfig
    --openai.FIELD VALUE   a field of the inference server
    --config FILE          YAML with the sections `env` and `openai`
    --slurm, --testing     as the framework's

`None` is a value everywhere, a field may be named in YAML and on the command line, and
a name or value that is wrong ends in one sentence. Sections of other programs (a
trainer's, say) may stand in the same YAML file.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from atroposlib.utils.cli import merge_dicts
from pydantic import BaseModel

from rg_env import yaml_text
from rg_env.atropos import setting_sentences
from rg_env.cli.option_groups import GROUPS, OTHERS, SERVER_GROUP, OptionGroup
from rg_env.cli.option_table import ENV, OPENAI, Option, OptionTable
from rg_env.cli.sentence_parser import SentenceParser
from rg_env.errors import SettingError, nearest, not_allowed, shown, unknown_name
from rg_env.yaml_text import YamlFault

if TYPE_CHECKING:
    from atroposlib.envs.server_handling.server_manager import APIServerConfig

logger = logging.getLogger(__name__)

FLAGS = ("slurm", "testing")
IGNORED = ("max_n_completions", "proxy_url")
"""Options that the framework accepts and hands to nobody; accepted here as well."""


@dataclasses.dataclass(frozen=True)
class Options:
    """What the user set, and nothing else.

    Attributes:
        env: Fields of the environment.
        openai: Fields of the inference server, or of each of several.
        slurm: Whether the servers are found through Slurm.
        testing: Whether the framework's mock server is used.
        ignored: Options that were given and do nothing.
    """

    env: Mapping[str, Any]
    openai: Mapping[str, Any] | Sequence[Mapping[str, Any]]
    slurm: bool
    testing: bool
    ignored: tuple[str, ...] = ()


def _shown(field: str, text: str) -> str:
    """Return a text as a sentence repeats it; what may hold a key is not."""
    return "the text" if field == f"{OPENAI}.headers" else shown(text)


def _parse(field: str, option: Option, text: str) -> Any:
    """Return the value of a field from the command line, for pydantic to check."""
    if text in ("None", "none", "null"):
        # There the word is a value of its own.
        return "none" if option.name == "tokenizer_name" else None
    if not text.strip():
        raise SettingError(f"{field}: a value is needed, found {text!r}")
    kinds = option.kinds
    is_sequence = text.lstrip().startswith("[")
    if set(kinds) == {"list"} and not is_sequence:
        return [part.strip() for part in text.split(",")]
    if "dict" in kinds or ("list" in kinds and is_sequence):
        try:
            return yaml_text.load(text)
        except YamlFault as fault:
            raise SettingError(
                f"{field}: {_shown(field, text)} is no YAML value: {fault}"
            ) from fault
    return text


def _metavar(option: Option) -> str:
    names = {"bool": "BOOL", "int": "INT", "float": "FLOAT", "list": "LIST"}
    names |= {"dict": "MAP"}
    if option.words and len(option.kinds) == 1:
        return "|".join(option.words)
    return "|".join(dict.fromkeys(names.get(kind, "TEXT") for kind in option.kinds))


def _add_group(
    parser: argparse.ArgumentParser,
    group: OptionGroup,
    section: str,
    options: Iterable[Option],
    starts: Mapping[str, Any],
) -> None:
    shown = parser.add_argument_group(group.title, group.line)
    for option in options:
        default = starts.get(option.name, option.default)
        text = f"{option.text} (default: {default})"
        is_switch = option.kinds == ("bool",)
        shown.add_argument(
            f"--{section}.{option.name}",
            dest=f"{section}.{option.name}",
            metavar=_metavar(option),
            default=argparse.SUPPRESS,
            help=text.replace("%", "%%"),
            nargs="?" if is_switch else None,
            const="true" if is_switch else None,
        )


def _grouped(known: Mapping[str, Option]) -> Iterator[tuple[OptionGroup, list[Option]]]:
    """Yield the options of the environment as they are shown."""
    for group in GROUPS:
        yield group, [known[name] for name in group.names if name in known]
    shown = {name for group in GROUPS for name in group.names}
    others = [option for name, option in known.items() if name not in shown]
    if others:
        yield OTHERS, others


def build_parser(
    command: str, summary: str, table: OptionTable, starts: Mapping[str, Any]
) -> SentenceParser:
    """Return the parser of a command.

    Args:
        command: Its name.
        summary: What it does.
        table: The options.
        starts: Fields of the environment that this command starts from otherwise.
    """
    parser = SentenceParser(
        prog=f"reasoning_gym_environment.py {command}",
        usage=f"%(prog)s [--config FILE] [--{ENV}.FIELD VALUE]"
        f" [--{OPENAI}.FIELD VALUE]",
        description=summary,
        allow_abbrev=False,
        formatter_class=functools.partial(argparse.HelpFormatter, max_help_position=36),
        epilog="Order of precedence: command line, YAML, defaults. `None` is a value."
        " docs/settings.md says more.",
    )
    parser.add_argument("--config", metavar="FILE", help="YAML with `env` and `openai`")
    for flag, text in (
        ("slurm", "Find the inference servers through Slurm's variables"),
        ("testing", "Of the tests of Atropos; false"),
    ):
        parser.add_argument(
            f"--{flag}", nargs="?", const="true", metavar="BOOL", help=text
        )
    for name in IGNORED:
        parser.add_argument(f"--{name}", help=argparse.SUPPRESS)
    for group, options in _grouped(table.section(ENV)):
        _add_group(parser, group, ENV, options, starts)
    servers = table.section(OPENAI)
    first = [servers[name] for name in SERVER_GROUP.names if name in servers]
    rest = [option for option in servers.values() if option not in first]
    _add_group(parser, SERVER_GROUP, OPENAI, [*first, *rest], {})
    return parser


def _as_bool(field: str, value: Any) -> bool:
    text = str(value).lower()
    if text not in ("true", "false", "1", "0", "yes", "no"):
        raise not_allowed(field, value, "true or false")
    return text in ("true", "1", "yes")


def _read_yaml(path: str | None) -> dict[str, Any]:
    if path is None:
        return {}
    try:
        content = yaml_text.read(path)
    except YamlFault as fault:
        raise SettingError(
            f"--config: {shown(path)} cannot be used: {fault}"
        ) from fault
    if content is None:
        raise SettingError(
            f"--config: {shown(path)} is empty; write `env` or `openai` into it"
        )
    if not isinstance(content, dict):
        raise SettingError(
            f"--config: {shown(path)} must hold sections, `env` and `openai`"
        )
    known = [ENV, OPENAI, *FLAGS, *IGNORED]
    for name in content:
        if name in known:
            continue
        if nearest(str(name), known) is not None:
            raise unknown_name("--config", str(name), known, "section")
        logger.info("--config: section %r is not ours and is left alone", name)
    return content


def _section(content: Mapping[str, Any], name: str, known: Mapping[str, Option]) -> Any:
    """Return a section whose keys are options."""
    section = {} if content.get(name) is None else content[name]
    parts = section if isinstance(section, list) and name == OPENAI else [section]
    for part in parts:
        if not isinstance(part, dict):
            raise SettingError(f"--config: section {name!r} must map names to values")
        for key in part:
            if key not in known:
                raise unknown_name(name, str(key), known, "option")
    return section


def parse(parser: SentenceParser, argv: Sequence[str], table: OptionTable) -> Options:
    """Parse a command line and the YAML file it names.

    Args:
        parser: What `build_parser` has returned.
        argv: The command line, without the command.
        table: The options.

    Raises:
        SettingError: An option, key or file is wrong.
    """
    arguments, unknown = parser.parse_known_args(argv)
    parser.refuse_unknown(unknown)
    given = vars(arguments)
    content = _read_yaml(given["config"])
    sections: dict[str, Any] = {}
    for name in (ENV, OPENAI):
        known = table.section(name)
        from_cli = {
            field: _parse(key, known[field], text)
            for key, text in given.items()
            if key.startswith(f"{name}.")
            for field in [key.removeprefix(f"{name}.")]
        }
        section = _section(content, name, known)
        if isinstance(section, list) and len(section) == 1:
            section = section[0]
        if isinstance(section, list) and from_cli:
            raise SettingError(
                "command line: --openai options cannot be combined with several servers"
                f" in --config, found --openai.{min(from_cli)}"
            )
        is_list = isinstance(section, list)
        sections[name] = section if is_list else merge_dicts(section, from_cli)
    flags = {
        flag: _as_bool(f"--{flag}", value)
        for flag in FLAGS
        if (value := given[flag] if given[flag] is not None else content.get(flag))
        is not None
    }
    return Options(
        env=sections[ENV],
        openai=sections[OPENAI],
        slurm=flags.get("slurm", False),
        testing=flags.get("testing", False),
        ignored=tuple(n for n in IGNORED if given[n] is not None or n in content),
    )


def build_model(prefix: str, model: type[BaseModel], *layers: Mapping[str, Any]) -> Any:
    """Build a model from layers of values, later ones on top.

    Raises:
        SettingError: A name is unknown or a value out of range.
    """
    merged = merge_dicts(*(dict(layer) for layer in layers))
    return setting_sentences.build(prefix, model, merged)


def build_servers(
    default: APIServerConfig, given: Mapping[str, Any] | Sequence[Mapping[str, Any]]
) -> list[APIServerConfig]:
    """Build the inference servers, each on top of the default one.

    An endpoint of type openai is not asked for a token every second to see whether it
    is well, unless `health_check` says so: that would cost money.

    Raises:
        SettingError: A value is wrong.
    """
    from rg_env.atropos.server_settings import checked_kind

    model = checked_kind(type(default))
    if isinstance(given, Mapping):
        parts = {OPENAI: given}
    else:
        parts = {f"{OPENAI}.{number}": part for number, part in enumerate(given)}
    if not parts:
        raise SettingError("openai: found no server; at least one is needed")
    servers = []
    for section, part in parts.items():
        quiet = {"health_check": False} if part.get("server_type") == "openai" else {}
        servers.append(build_model(section, model, default.model_dump(), quiet, part))
    return servers
