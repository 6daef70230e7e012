"""Options of `serve`, `process` and `evaluate`, made of the models of settings.

    --env.FIELD VALUE      a field of the environment
    --openai.FIELD VALUE   a field of the inference server
    --config FILE          YAML with the sections `env` and `openai`

There is no second table of them: names, kinds, texts and groups are those of the
models, which need no framework. `--help` shows ten of them, `--help_all` all.
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Collection, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any

import click
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from rg_env import yaml_text
from rg_env.cli.command import Command
from rg_env.errors import SettingError
from rg_env.installation import RUNS_WRITE_IN
from rg_env.settings import environment_settings, server_settings, setting_types
from rg_env.settings.environment_settings import GROUPS, CheckedSettings
from rg_env.settings.launch_settings import LaunchSettings
from rg_env.settings.server_settings import CheckedServer
from rg_env.settings.setting_types import kinds
from rg_env.standalone.tasks import Tasks
from rg_env.yaml_text import YamlError

SECTIONS = ENV, OPENAI, LAUNCH = "env", "openai", "launch"
GROUPS_OF: Mapping[str, Sequence[type[BaseModel]]]
GROUPS_OF = {ENV: GROUPS, OPENAI: (CheckedServer,), LAUNCH: (LaunchSettings,)}
FLAGS = {
    "slurm": "Find the inference servers from Slurm's environment variables",
    "testing": "Only for the tests of Atropos; must be false",
}
"""Options, and keys of a file, that are in no section."""

IGNORED = ("max_n_completions", "proxy_url")
"""Options that the framework accepts and hands to nobody; accepted here as well."""

_OF_ALL = (
    *("openai.base_url", "openai.server_type", "openai.model_name"),
    *("env.tokenizer_name", "env.tasks"),
)
_OF_RUNS = (*_OF_ALL, "env.complexity_mode", "env.group_size", "env.max_token_length")
FIRST: Mapping[str, Sequence[str]] = {
    "serve": (*_OF_RUNS, "env.total_steps", "env.use_wandb"),
    "process": (*_OF_RUNS, "env.total_steps", "env.data_path_to_save_groups"),
    "evaluate": (
        *("openai.base_url", "openai.model_name", "env.tokenizer_name", "env.tasks"),
        *("env.num_eval_samples_per_task", "env.eval_level", "env.eval_preset"),
        *("env.eval_completions", "env.eval_temperature"),
        "env.data_dir_to_save_evals",
    ),
    "screen": (*_OF_RUNS, "env.total_steps", "env.batch_size"),
    "launch": (
        *("launch.model", "launch.folder", "launch.python", "launch.vllm_args"),
        *("launch.trainer_args", "env.tasks", "env.complexity_mode", "env.group_size"),
        *("env.max_token_length", "env.total_steps"),
    ),
    "export items": (
        *("env.tasks", "env.exclude_tasks", "env.task_weights", "env.complexity_mode"),
        *("env.task_levels", "env.seed", "env.system_prompt", "env.eval_seed"),
        *("env.num_eval_samples_per_task", "env.eval_level"),
    ),
}
"""Command to the ten settings that `--help` shows; the README has those of `serve`."""

EXAMPLES = {
    "serve": "--config settings.yaml --env.tasks 'gcd,*_sorting'",
    "process": "--openai.server_type openai --env.total_steps 100",
    "evaluate": "--config settings.yaml --env.eval_completions 4",
    "screen": "--config settings.yaml --groups 20",
    "launch": "--config examples/launch.yaml --launch.model Qwen/Qwen3-0.6B",
    "export items": "--env.tasks 'gcd,*_sorting' --number 1000 --out data/items",
}

SWITCH: Any = {"is_flag": False, "flag_value": "true"}
"""An option whose value may be left out."""

METAVARS = {bool: "BOOL", int: "INT", float: "FLOAT", list: "LIST", dict: "MAP"}


@dataclasses.dataclass(frozen=True)
class Start:
    """What a command starts from.

    Attributes:
        env: The model of the environment's settings.
        env_values: What it starts from, where that is not the model's default.
        server: The model of a server's settings.
        servers: What each of the servers starts from.
    """

    env: type[BaseModel] = CheckedSettings
    env_values: Mapping[str, Any] = dataclasses.field(
        default_factory=lambda: environment_settings.START
    )
    server: type[BaseModel] = CheckedServer
    servers: Sequence[Mapping[str, Any]] = (server_settings.START,)


class SettingOption(click.Option):
    """The option of one field; its value is the text that was typed."""

    group = "Others, of the class that is run"

    def __init__(
        self,
        name: str,
        section: str,
        field: str,
        info: FieldInfo,
        starts: Mapping[str, Any],
    ) -> None:
        self.section, self.field = section, field
        self.kinds = dict.fromkeys(kinds(info.annotation))
        self.takes_none = self.kinds.pop(type(None), self) is None
        self.words = [word for kind in self.kinds for word in _words(kind)]
        names = (METAVARS.get(kind, "TEXT") for kind in self.kinds)
        how: dict[str, Any] = {"metavar": "|".join(dict.fromkeys(names))}
        if [*self.kinds] == [bool]:
            how |= SWITCH
        if self.words and len(self.kinds) == 1:
            words = self.words + ["None"] * self.takes_none
            how = {"type": click.Choice(words)}
        default = starts.get(field, info.get_default(call_default_factory=True))
        value = default.value if isinstance(default, Enum) else default
        shown = str(value).replace(f"{RUNS_WRITE_IN}/", "")
        text = f"{(info.description or '').rstrip('.')} [{shown}]"
        super().__init__([f"--{name}", f"{section}__{field}"], help=text, **how)

    def read(self, text: str) -> Any:
        """Return the value of a text, which is YAML, for the model to check.

        Text needs no quotes, and names may be separated by commas alone.
        """
        if text in ("None", "none", "null") and text not in self.words:
            return None if self.takes_none else "none"
        if [*self.kinds] == [list] and not text.startswith("["):
            return [part.strip() for part in text.split(",")]
        if not {list, dict} & self.kinds.keys():
            return text
        try:
            return yaml_text.load(text)
        except YamlError as fault:
            raise SettingError(f"{self.section}.{self.field}: {fault}") from fault


def _words(kind: Any) -> Sequence[str]:
    if isinstance(kind, type) and issubclass(kind, Enum):
        return [str(member.value) for member in kind]
    is_choice = typing.get_origin(kind) is typing.Literal
    return list(map(str, typing.get_args(kind))) if is_choice else ()


def _options(
    section: str, model: type[BaseModel], starts: Mapping[str, Any]
) -> Iterator[SettingOption]:
    """Yield an option for each field of a model, in the order of its groups."""
    groups = {
        name: (group.__doc__ or "").partition("\n")[0].rstrip(".")
        for group in GROUPS_OF[section]
        for name in group.model_fields
    }
    for name in dict.fromkeys([*groups, *model.model_fields]):
        if info := model.model_fields.get(name):
            option = SettingOption(f"{section}.{name}", section, name, info, starts)
            option.group = groups.get(name, option.group)
            yield option


def bare_options(names: Collection[str], **starts: Any) -> list[SettingOption]:
    """Return options of the environment for a command that takes few: `--seed`.

    Args:
        names: The fields.
        starts: What the command starts from, where `serve` has another value.
    """
    fields, starts = CheckedSettings.model_fields, environment_settings.START | starts
    return [
        SettingOption(name, ENV, name, info, starts)
        for name, info in fields.items()
        if name in names
    ]


def read_bare(
    options: Sequence[SettingOption], given: Mapping[str, Any], **starts: Any
) -> CheckedSettings:
    """Return the settings that bare options were given, over those to start from.

    Args:
        options: See `bare_options`.
        given: Name of an option to the text that was typed, None for nothing.
        starts: What the command starts from, where `serve` has another value.
    """
    values = environment_settings.START | starts | given_values(options, given)
    settings: CheckedSettings = setting_types.build(ENV, CheckedSettings, values)
    return settings


def given_values(
    options: Sequence[SettingOption], given: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the fields of options that were given a value, to these values."""
    texts = {option: given[str(option.name)] for option in options}
    return {o.field: o.read(text) for o, text in texts.items() if text is not None}


OF_STREAM = {"tasks", "categories", "exclude_tasks", "task_weights", "task_params"}
OF_STREAM |= {"task_choice", "task_levels", "complexity_mode", "seed"}
OF_STREAM |= {"system_prompt", "task_modules"}
"""Settings that a stream of items outside a run follows."""


def stream_of(settings: Any) -> Tasks:
    """Return the stream of the settings in `OF_STREAM`."""
    return Tasks(
        *(settings.tasks or ()),
        levels={"*": settings.complexity_mode, **settings.task_levels},
        seed=settings.seed,
        weights=settings.task_weights,
        params=settings.task_params,
        categories=settings.categories,
        exclude=settings.exclude_tasks,
        choice=settings.task_choice,
        system_prompt=settings.system_prompt,
        task_modules=settings.task_modules,
    )


class SettingsCommand(Command):
    """A command with settings; its callback takes what each option was given.

    Args:
        name: A key of `FIRST`.
        own: The options that no other command has, which the help shows first.
    """

    def __init__(
        self,
        name: str,
        summary: str,
        start: Start,
        callback: Any,
        own: Sequence[click.Option] = (),
    ) -> None:
        self.start, self._own = start, own
        show_all = click.Option(
            ["--help_all"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=self._print_all,
            help="Show all options",
        )
        params: list[click.Parameter] = [
            *own,
            click.Option(["--config"], metavar="FILE", help="YAML file with settings"),
            *_options(OPENAI, start.server, start.servers[0] if start.servers else {}),
            *_options(ENV, start.env, start.env_values),
            *(_options(LAUNCH, LaunchSettings, {}) if name == LAUNCH else ()),
            *(
                click.Option([f"--{flag}"], type=bool, help=text, **SWITCH)
                for flag, text in FLAGS.items()
            ),
            *(click.Option([f"--{ignored}"], hidden=True) for ignored in IGNORED),
            show_all,
        ]
        super().__init__(
            name,
            params=params,
            help=f"{summary}\n\nOptions take precedence over the YAML file, and the"
            " file over the defaults in brackets. `None` is a valid value.",
            callback=callback,
            example=f"{name} {EXAMPLES[name]}",
        )

    @property
    def settings(self) -> list[SettingOption]:
        """The options of settings."""
        return [option for option in self.params if isinstance(option, SettingOption)]

    def _print_all(self, ctx: click.Context, option: Any, is_on: bool) -> None:
        if is_on:
            ctx.meta["all"] = True
            click.echo(self.get_help(ctx))
            ctx.exit()

    def format_options(
        self, ctx: click.Context, formatter: click.HelpFormatter
    ) -> None:
        shows_all = ctx.meta.get("all")
        others = [o for o in self.get_params(ctx) if not isinstance(o, SettingOption)]
        others.sort(key=lambda option: option not in self._own)
        # The flags are what the framework has for its own machines.
        others = [o for o in others if shows_all or o.name not in FLAGS]
        groups: dict[str, list[click.Parameter]] = {"Options": others}
        if shows_all:
            for option in self.settings:
                groups.setdefault(option.group, []).append(option)
        else:
            by_name = {f"{o.section}.{o.field}": o for o in self.settings}
            more = f"Settings (10 of {len(by_name)}; --help_all shows all)"
            first = FIRST[str(self.name)]
            groups[more] = [by_name[name] for name in first if name in by_name]
        for title, options in groups.items():
            with formatter.section(title):
                records = [option.get_help_record(ctx) for option in options]
                formatter.write_dl([r for r in records if r], col_max=34)
