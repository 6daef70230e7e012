"""Commands with settings: their options come from the models of settings.

    --env.FIELD VALUE      a field of the environment
    --openai.FIELD VALUE   a field of the inference server
    --FIELD VALUE          a field of the environment, in commands with few settings
    --config FILE          YAML with the sections `env` and `openai`

Options have the names, types and help texts of the models. `--help` shows some of them,
`--help_all` all.
"""

from __future__ import annotations

import functools
import inspect
import logging
import re
import typing
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from types import NoneType
from typing import Annotated, Any

import click
import yaml
from pydantic import BaseModel, Field, ValidationInfo, field_validator

from rg_env.cli.main import Command, eager_flag
from rg_env.errors import SettingError, nearest, shown
from rg_env.installation import RUNS_WRITE_IN
from rg_env.settings import environment_settings, setting_checks
from rg_env.settings import server_and_launch_settings as server_settings
from rg_env.settings.environment_settings import CheckedSettings
from rg_env.settings.server_and_launch_settings import CheckedServer, LaunchSettings
from rg_env.settings.setting_checks import CheckedModel, types_in
from rg_env.stream.tasks import Tasks

logger = logging.getLogger(__name__)

_SERVER = "openai.base_url openai.server_type openai.model_name env.tokenizer_name"
_ITEMS = "env.tasks env.categories"
_GROUPS = "env.complexity_mode env.group_size env.max_token_length env.total_steps"
_TRAINING = "env.batch_size env.dump_rollouts env.steps_per_eval env.use_wandb"
SHOWN_IN_HELP = {
    "launch": f"{_ITEMS} {_GROUPS} {_TRAINING} launch.model launch.folder launch.python"
    " launch.vllm_args launch.vllm_variables launch.trainer_args",
    "serve": f"{_SERVER} {_ITEMS} {_GROUPS} {_TRAINING} env.rollout_server_url",
    "process": f"{_SERVER} {_ITEMS} {_GROUPS} env.temperature env.give_up_after_s"
    " env.data_path_to_save_groups",
    "evaluate": f"{_SERVER} {_ITEMS} env.num_eval_samples_per_task env.eval_completions"
    " env.eval_level env.eval_preset env.eval_temperature env.eval_max_token_length"
    " env.max_token_length env.data_dir_to_save_evals env.give_up_after_s",
    "screen": f"{_SERVER} {_ITEMS} {_GROUPS} env.batch_size env.give_up_after_s",
}
"""Command with all settings to the settings that its `--help` shows."""

METAVARS = {bool: "BOOL", int: "INT", float: "FLOAT", list: "LIST", dict: "MAP"}
OPTIONAL_VALUE: Any = {"is_flag": False, "flag_value": "true"}
"""Arguments of a click option whose value may be left out."""

TOP_LEVEL_SETTINGS = ("slurm", "testing", "max_n_completions", "proxy_url")
"""Settings without a section, as in the framework."""

STREAM_SETTINGS = {
    "tasks",
    "categories",
    "exclude_tasks",
    "task_weights",
    "task_params",
    "task_choice",
    "task_levels",
    "complexity_mode",
    "seed",
    "system_prompt",
    "answer_format",
    "partial_credit",
    "task_modules",
}
"""Settings of a stream of items outside a run."""


def stream_of(settings: Any) -> Tasks:
    """Return the stream of items for settings; it uses those in `STREAM_SETTINGS`."""
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
        answer_format=settings.answer_format,
        partial_credit=settings.partial_credit,
        task_modules=settings.task_modules,
    )


class SettingOption(click.Option):
    """The option of one setting; its value is the text on the command line.

    Attributes:
        path: Section and field, as in `env.seed`.
        takes_none: Whether None is a valid value.
        types: The other types of a value on the command line.
        words: The words that are valid values.
    """

    def __init__(
        self, section: str, field: str, defaults: BaseModel, prefix: str
    ) -> None:
        self.section = section
        self.field = field
        self.path = f"{section}.{field}"
        info = type(defaults).model_fields[field]
        types = [*types_in(info.annotation)]
        self.takes_none = NoneType in types
        # Any text is a valid str, so that only a file can have a list instead.
        hidden = (NoneType, list) if str in types else (NoneType,)
        self.types = [kind for kind in types if kind not in hidden]
        self.words = [w for kind in types for w in typing.get_args(kind) if w]
        named = [METAVARS.get(k, "TEXT") for k in self.types if not typing.get_args(k)]
        value = getattr(defaults, field)
        default = str(getattr(value, "value", value)).replace(f"{RUNS_WRITE_IN}/", "")
        super().__init__(
            [f"--{prefix}{field}", f"{section}__{field}"],
            help=f"{(info.description or '').rstrip('.')} [{default}]",
            metavar="|".join([*self.words, *named]),
            **(OPTIONAL_VALUE if self.types == [bool] else {}),
        )

    def read(self, text: str) -> Any:
        """Return the value of a YAML text; the model checks it.

        Text needs no quotes, and a list of names may be separated by commas.
        """
        if text in ("None", "none", "null") and text not in self.words:
            # Settings such as `tokenizer_name` have the word "none".
            return None if self.takes_none else "none"
        if self.types == [list] and not text.startswith("["):
            return [name.strip() for name in text.split(",")]
        if list in self.types or dict in self.types:
            return load_yaml(text, self.path)
        return text


# -- YAML ------------------------------------------------------------------------------


class _Loader(yaml.SafeLoader):
    """A loader that refuses duplicate keys; YAML would silently use the last one."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> Any:
        seen = set()
        for key, _ in node.value:
            if key.tag != "tag:yaml.org,2002:merge" and str(key.value) in seen:
                raise ValueError(
                    f"line {key.start_mark.line + 1}: a second {key.value}"
                )
            seen.add(str(key.value))
        return super().construct_mapping(node, deep)


# `None` is null, as on the command line.
_Loader.add_implicit_resolver("tag:yaml.org,2002:null", re.compile("None$"), ["N"])


def load_yaml(text: str, field: str) -> Any:
    """Return the value of a text, None if it is empty; an error names `field`."""
    try:
        return yaml.load(text, _Loader)  # noqa: S506 - a safe loader
    except yaml.MarkedYAMLError as error:  # its lines might contain a secret
        mark = error.problem_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}" if mark else "it"
        raise SettingError(f"{where}: {error.problem}", field) from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise SettingError(" ".join(str(error).split()), field) from error


# -- explicit settings -----------------------------------------------------------------

ServerSections = Annotated[list[dict[str, Any]], Field(min_length=1)]
RunSettings = tuple[Any, list[Any]]
"""The settings of the environment and of its servers."""


class ExplicitSettings(CheckedModel):
    """The settings that a user has set explicitly, by the sections of a file."""

    env: dict[str, Any] = Field({})
    openai: dict[str, Any] | ServerSections = Field({})
    launch: dict[str, Any] = Field({})
    slurm: bool = False
    """Find the inference servers from Slurm's environment variables"""
    testing: bool = False
    """Must be false: --openai.base_url names the server of a test"""
    max_n_completions: int = 8
    """Has no effect: a group is one request"""
    proxy_url: str | None = None
    """Must be None: servers are queried directly"""

    @field_validator("testing", "max_n_completions", "proxy_url")
    @classmethod
    def _refuse_unused(cls, value: object, info: ValidationInfo) -> object:
        description = cls.model_fields[str(info.field_name)].description
        if info.field_name == "max_n_completions":
            logger.warning("max_n_completions: %s", description)
        elif value:
            raise ValueError(description)
        return value

    def server_sections(self, servers: Sequence[Any]) -> list[Mapping[str, Any]]:
        """Return the explicit settings of each server; one section may be for all."""
        if isinstance(self.openai, list):
            return [*self.openai]
        return [self.openai] * len(servers)

    def merged_with(self, defaults: RunSettings) -> RunSettings:
        """Build the settings of a run from the explicit ones and the defaults."""
        env_defaults, server_defaults = defaults
        values = env_defaults.model_dump() | self.env
        env = setting_checks.build("env", type(env_defaults), values)
        is_list = isinstance(self.openai, list)
        servers = []
        for number, explicit in enumerate(self.server_sections(server_defaults)):
            section = f"openai.{number}" if is_list else "openai"
            default = server_defaults[0 if is_list else number]
            values = default.model_dump()
            if explicit.get("server_type") == "openai":
                values["health_check"] = False  # a hosted API is not polled
            values |= explicit
            servers.append(setting_checks.build(section, type(default), values))
        return env, servers


def _read_file(path: str) -> dict[str, Any]:
    """Return the sections of a file, without those of other programs."""
    where = f"--config: {shown(path)}"
    try:
        text = Path(path).expanduser().read_text(encoding="utf-8-sig")
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise SettingError(reason, where) from error
    content = load_yaml(text, where)
    known = ExplicitSettings.model_fields
    if not isinstance(content, dict) or not content.keys() & known.keys():
        raise SettingError(f"{where} has none of the sections `env` and `openai`")
    sections = {}
    for name, value in content.items():
        section = _openai_section(value) if name == "openai" else value
        # A misspelled section stays, and is refused later.
        is_foreign = name not in known and not nearest(str(name), known)
        if is_foreign and isinstance(value, dict):
            logger.warning("--config: no setting is read in section %s", shown(name))
        elif section is not None:
            sections[name] = section
    return sections


def _openai_section(content: Any) -> Any:
    """Return the section `openai` without weights, and without a list of one server."""
    servers = content if isinstance(content, list) else [content]
    for server in servers:
        if isinstance(server, dict) and server.pop("weight", None) is not None:
            logger.warning("--config: openai.weight has no effect, as in Atropos")
    return servers[0] if len(servers) == 1 else content


# -- a command -------------------------------------------------------------------------

PRECEDENCE = (
    "Options take precedence over the YAML file, and the file over the defaults in"
    " brackets. `None` is a valid value."
)


class SettingsCommand(Command):
    """A command with settings.

    Args:
        run: The function of the command, with its name and its help text. It gets the
            command, the explicit settings, and the values of its other options.
        example: A command line.
        env_cls: A class of environments, or a function that imports it.
        defaults: Name of the class to the defaults that differ from those of `serve`.
        fields: The fields of `env`, without other sections; None for all settings.
        is_bare: Whether the names of these options have no `env.`.
    """

    def __init__(
        self,
        run: Callable[..., int],
        example: str,
        env_cls: Any,
        *,
        defaults: Callable[[str], Mapping[str, Any]] = lambda name: {},
        fields: Collection[str] | None = None,
        is_bare: bool = False,
    ) -> None:
        self.env_cls = env_cls
        class_name = getattr(env_cls, "name", None) or "reasoning_gym"
        self._command_defaults = dict(defaults(class_name))
        self.defaults = self.defaults_of(env_cls)
        env, (server, *_) = self.defaults
        models = {"openai": server, "env": env} if fields is None else {"env": env}
        if run.__name__ == "launch":
            models = {"launch": LaunchSettings.model_validate({}), **models}
        self.settings = [
            SettingOption(section, field, model, "" if is_bare else f"{section}.")
            for section, model in models.items()
            for field in type(model).model_fields
            if fields is None or field in fields
        ]
        text = "YAML file with settings"
        options = [click.Option(["--config"], metavar="FILE", help=text)]
        if fields is None:
            options += self._top_level_options()
            first = SHOWN_IN_HELP[run.__name__].split()
            for setting in self.settings:
                setting.hidden = setting.path not in first
        others = getattr(run, "__click_params__", [])[::-1]

        def call(**values: Any) -> int:
            other_values = {each.name: values[each.name] for each in others}
            return run(self, self.read(values), **other_values)

        super().__init__(
            run.__name__,
            params=[*others, *options, *self.settings],
            help=f"{inspect.getdoc(run)}\n\n{PRECEDENCE}",
            callback=call,
            example=example,
        )

    def _top_level_options(self) -> list[click.Option]:
        """Return the options of settings without a section, and `--help_all`."""
        options = [
            click.Option(
                [f"--{name}"],
                hidden=name != "slurm",
                help=ExplicitSettings.model_fields[name].description,
                **OPTIONAL_VALUE,
            )
            for name in TOP_LEVEL_SETTINGS
        ]
        text = f"Show all {len(self.settings)} settings, not only the ones below"
        return [*options, eager_flag("--help_all", text, self._print_all)]

    def defaults_of(self, env_cls: Any) -> RunSettings:
        """Return the defaults for a class, or for a function that imports it."""
        if not isinstance(env_cls, type):
            values = environment_settings.DEFAULTS | self._command_defaults
            server = CheckedServer(**server_settings.DEFAULTS)
            return CheckedSettings(**values), [server]
        from rg_env.atropos.config import checked_class, expand_servers

        env, configs = typing.cast(Any, env_cls).config_init()
        servers = expand_servers(configs)
        kind = checked_class(type(servers[0]))
        copies = [kind.model_construct(**server.model_dump()) for server in servers]
        return env.model_copy(update=self._command_defaults), copies

    def read(self, values: Mapping[str, Any]) -> ExplicitSettings:
        """Return the explicit settings of a command line and of its file."""
        content = {} if values["config"] is None else _read_file(values["config"])
        for name in TOP_LEVEL_SETTINGS:
            if values.get(name) not in (None, "None"):
                content[name] = values[name]
        explicit: ExplicitSettings = setting_checks.build(
            "--config", ExplicitSettings, content
        )
        for option in self.settings:
            text = values[str(option.name)]
            if text is None:
                continue
            section = getattr(explicit, option.section)
            if isinstance(section, list):
                raise SettingError(
                    f"command line: {option.opts[0]} cannot be combined with a list of"
                    " servers in --config"
                )
            section[option.field] = option.read(text)
        return explicit

    def _print_all(self, ctx: click.Context) -> None:
        for option in self.settings:
            option.hidden = False
        click.echo(self.get_help(ctx))
        ctx.exit()


def options(
    example: str, **arguments: Any
) -> Callable[[Callable[..., int]], Callable[[Any], SettingsCommand]]:
    """Return a decorator that turns the function of a command into a factory.

    The factory makes the `SettingsCommand` for a class of environments.
    """
    return lambda run: functools.partial(SettingsCommand, run, example, **arguments)
