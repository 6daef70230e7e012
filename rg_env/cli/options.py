"""Commands with settings: their options come from the models of settings.

    --env.FIELD VALUE      a field of the environment
    --openai.FIELD VALUE   a field of the inference server
    --FIELD VALUE          a field of the environment, in commands with few settings
    --config FILE          YAML with the sections `env` and `openai`

Options have the names, types and texts of the models, which need no framework. `--help`
shows some of the settings, `--help_all` all.
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

from rg_env.cli.main import Command, at_once
from rg_env.errors import SettingError, nearest, shown
from rg_env.installation import RUNS_WRITE_IN
from rg_env.settings import environment_settings, program_settings, setting_checks
from rg_env.settings.environment_settings import CheckedSettings
from rg_env.settings.program_settings import CheckedServer, LaunchSettings
from rg_env.settings.setting_checks import CheckedModel, kinds
from rg_env.stream.tasks import Tasks

logger = logging.getLogger(__name__)

_SERVER = "openai.base_url openai.server_type openai.model_name env.tokenizer_name"
_ITEMS = " env.tasks env.categories"
_GROUPS = " env.complexity_mode env.group_size env.max_token_length env.total_steps"
_TRAINING = " env.batch_size env.dump_rollouts env.steps_per_eval env.use_wandb"
FIRST = {
    "launch": "launch.model launch.folder launch.python launch.vllm_args"
    " launch.vllm_variables launch.trainer_args" + _ITEMS + _GROUPS + _TRAINING,
    "serve": _SERVER + _ITEMS + _GROUPS + _TRAINING + " env.rollout_server_url",
    "process": _SERVER + _ITEMS + _GROUPS + " env.temperature"
    " env.data_path_to_save_groups env.give_up_after_s",
    "evaluate": _SERVER + _ITEMS + " env.num_eval_samples_per_task env.eval_completions"
    " env.eval_level env.eval_preset env.eval_temperature env.eval_max_token_length"
    " env.max_token_length env.data_dir_to_save_evals env.give_up_after_s",
    "screen": _SERVER + _ITEMS + _GROUPS + " env.batch_size env.give_up_after_s",
}
"""Command with all settings to the settings that its `--help` shows."""

METAVARS = {bool: "BOOL", int: "INT", float: "FLOAT", list: "LIST", dict: "MAP"}
SWITCH: Any = {"is_flag": False, "flag_value": "true"}
"""Arguments of an option with an optional value."""

OF_MANAGER = ("slurm", "testing", "max_n_completions", "proxy_url")
"""Settings without a section, as in the framework."""

OF_STREAM = {
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
        answer_format=settings.answer_format,
        partial_credit=settings.partial_credit,
        task_modules=settings.task_modules,
    )


class SettingOption(click.Option):
    """The option of one field; its value is the typed text."""

    def __init__(self, section: str, name: str, model: BaseModel, prefix: str) -> None:
        self.section = section
        self.field = name
        self.path = f"{section}.{name}"
        info = type(model).model_fields[name]
        start = getattr(model, name)
        found = [*kinds(info.annotation)]
        self.takes_none = NoneType in found
        # Any text may be one, so only a file has a list beside it.
        left_out = (NoneType, list) if str in found else (NoneType,)
        self.kinds = [kind for kind in found if kind not in left_out]
        self.words = [w for kind in found for w in typing.get_args(kind) if w]
        typed = [METAVARS.get(k, "TEXT") for k in self.kinds if not typing.get_args(k)]
        default = str(getattr(start, "value", start))
        default = default.replace(f"{RUNS_WRITE_IN}/", "")
        super().__init__(
            [f"--{prefix}{name}", f"{section}__{name}"],
            help=f"{(info.description or '').rstrip('.')} [{default}]",
            metavar="|".join([*self.words, *typed]),
            **(SWITCH if self.kinds == [bool] else {}),
        )

    def read(self, text: str) -> Any:
        """Return the value of a YAML text; the model checks it.

        Text needs no quotes, and a list of names may be separated by commas.
        """
        if text in ("None", "none", "null") and text not in self.words:
            return None if self.takes_none else "none"
        if self.kinds == [list] and not text.startswith("["):
            return [part.strip() for part in text.split(",")]
        if not {list, dict} & {*self.kinds}:
            return text
        return load_yaml(text, self.path)


# -- YAML ------------------------------------------------------------------------------


class _Loader(yaml.SafeLoader):
    """A loader that refuses duplicate keys, because only one of two would count."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> Any:
        seen = set()
        for key, _ in node.value:
            if key.tag != "tag:yaml.org,2002:merge" and str(key.value) in seen:
                raise ValueError(
                    f"line {key.start_mark.line + 1}: a second {key.value}"
                )
            seen.add(str(key.value))
        return super().construct_mapping(node, deep)


# `None` is Python's null, and that of the command line.
_Loader.add_implicit_resolver("tag:yaml.org,2002:null", re.compile("None$"), ["N"])


def load_yaml(text: str, field: str) -> Any:
    """Return the value of a text, None if it is empty; an error names `field`."""
    try:
        return yaml.load(text, _Loader)  # noqa: S506 - a safe loader
    except yaml.MarkedYAMLError as error:  # its lines might contain a secret
        mark = error.problem_mark or error.context_mark
        place = f"line {mark.line + 1}, column {mark.column + 1}" if mark else "it"
        why = f"{place}: {error.problem or error.context}"
        raise SettingError(why, field) from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise SettingError(" ".join(str(error).split()), field) from error


# -- explicit settings -----------------------------------------------------------------

Servers = Annotated[list[dict[str, Any]], Field(min_length=1)]
Defaults = tuple[Any, list[Any]]
"""The default settings of a command: of the environment and of servers."""


class ExplicitSettings(CheckedModel):
    """The settings that a user has set explicitly, by the sections of a file."""

    env: dict[str, Any] = Field({})
    openai: dict[str, Any] | Servers = Field({})
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
    def _is_unused(cls, value: object, info: ValidationInfo) -> object:
        why = cls.model_fields[str(info.field_name)].description
        if info.field_name == "max_n_completions":
            logger.warning("max_n_completions: %s", why)
        elif value:
            raise ValueError(why)
        return value

    def parts(self, servers: Sequence[Any]) -> list[Mapping[str, Any]]:
        """Return the explicit settings of each server."""
        if isinstance(self.openai, list):
            return [*self.openai]
        return [self.openai] * len(servers)

    def over(self, defaults: Defaults) -> Defaults:
        """Build the settings of the environment and its servers, over the defaults."""
        env_defaults, server_defaults = defaults
        values = env_defaults.model_dump() | self.env
        env = setting_checks.build("env", type(env_defaults), values)
        is_one = isinstance(self.openai, Mapping)
        servers = []
        for number, part in enumerate(self.parts(server_defaults)):
            section = "openai" if is_one else f"openai.{number}"
            default = server_defaults[number if is_one else 0]
            values = default.model_dump()
            if part.get("server_type") == "openai":
                values["health_check"] = False  # a hosted API is not polled
            values |= part
            servers.append(setting_checks.build(section, type(default), values))
        return env, servers


def _read_file(path: str) -> dict[str, Any]:
    """Return the sections of a file, without those of other programs."""
    known = ExplicitSettings.model_fields
    where = f"--config: {shown(path)}"
    try:
        text = Path(path).expanduser().read_text(encoding="utf-8-sig")
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise SettingError(why, where) from error
    content = load_yaml(text, where)
    if not isinstance(content, dict) or not {*content} & {*known}:
        raise SettingError(f"{where} has none of the sections `env` and `openai`")
    for name in [name for name in content if name not in known]:
        # A misspelled section stays, and is refused later.
        if isinstance(content[name], dict) and not nearest(str(name), known):
            logger.warning("--config: no setting is read in section %s", shown(name))
            del content[name]
    servers = content.get("openai")
    for server in servers if isinstance(servers, list) else [servers]:
        if isinstance(server, dict) and server.pop("weight", None) is not None:
            logger.warning("--config: openai.weight has no effect, as in Atropos")
    if isinstance(servers, list) and len(servers) == 1:
        (content["openai"],) = servers
    return {name: value for name, value in content.items() if value is not None}


# -- a command -------------------------------------------------------------------------


class SettingsCommand(Command):
    """A command with settings.

    Args:
        run: The function of the command. Its arguments are the command, the explicit
            settings, and the values of its own options.
        example: A command line, which begins with the name of the command.
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
        name, _, _ = example.partition(" -")
        self.env_cls = env_cls
        class_name = getattr(env_cls, "name", None) or "reasoning_gym"
        self._own_defaults = dict(defaults(class_name))
        self.defaults = self.defaults_of(env_cls)
        env, (server, *_) = self.defaults
        models = {"openai": server, "env": env} if fields is None else {"env": env}
        if name == "launch":
            models = {"launch": LaunchSettings.model_validate({}), **models}
        self.settings = [
            SettingOption(section, field, model, "" if is_bare else f"{section}.")
            for section, model in models.items()
            for field in type(model).model_fields
            if fields is None or field in fields
        ]
        for option in self.settings:
            option.hidden = fields is None and option.path not in FIRST[name].split()
        own = getattr(run, "__click_params__", [])[::-1]
        text = "YAML file with settings"
        others = [click.Option(["--config"], metavar="FILE", help=text)]
        if fields is None:
            others += [
                click.Option(
                    [f"--{name}"],
                    hidden=name != "slurm",
                    help=ExplicitSettings.model_fields[name].description,
                    **SWITCH,
                )
                for name in OF_MANAGER
            ]
            text = f"Show all {len(self.settings)} settings, not only the ones below"
            others.append(at_once("--help_all", text, self._print_all))
        super().__init__(
            name,
            params=[*own, *others, *self.settings],
            help=f"{inspect.getdoc(run)}\n\nOptions take precedence over the YAML file,"
            " and the file over the defaults in brackets. `None` is a valid value.",
            callback=lambda **values: run(
                self, self.read(values), **{o.name: values[o.name] for o in own}
            ),
            example=example,
        )

    def defaults_of(self, env_cls: Any) -> Defaults:
        """Return the defaults for a class, or for a function that imports it."""
        if not isinstance(env_cls, type):
            values = environment_settings.DEFAULTS | self._own_defaults
            server = CheckedServer(**program_settings.DEFAULTS)
            return CheckedSettings(**values), [server]
        from rg_env.atropos.config import checked_class, expand_servers

        env, configs = typing.cast(Any, env_cls).config_init()
        servers = expand_servers(configs)
        kind = checked_class(type(servers[0]))
        copies = [kind.model_construct(**server.model_dump()) for server in servers]
        return env.model_copy(update=self._own_defaults), copies

    def read(self, values: Mapping[str, Any]) -> ExplicitSettings:
        """Return the settings of a command line and of its file."""
        content = {} if values["config"] is None else _read_file(values["config"])
        typed = {name: values.get(name) for name in OF_MANAGER}
        content |= {n: text for n, text in typed.items() if text not in (None, "None")}
        given: ExplicitSettings
        given = setting_checks.build("--config", ExplicitSettings, content)
        for option in self.settings:
            text = values[str(option.name)]
            section = getattr(given, option.section)
            if text is not None and isinstance(section, list):
                why = "cannot be combined with a list of servers in --config"
                raise SettingError(f"command line: {option.opts[0]} {why}")
            if text is not None:
                section[option.field] = option.read(text)
        return given

    def _print_all(self, ctx: click.Context) -> None:
        for option in self.settings:
            option.hidden = False
        click.echo(self.get_help(ctx))
        ctx.exit()


def options(
    example: str, **arguments: Any
) -> Callable[[Callable[..., int]], Callable[[Any], SettingsCommand]]:
    """Return a decorator that makes a `SettingsCommand`, with its other arguments."""
    return lambda run: functools.partial(SettingsCommand, run, example, **arguments)
