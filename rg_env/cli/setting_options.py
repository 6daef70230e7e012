"""Options made of the models of settings.

    --env.FIELD VALUE      a field of the environment
    --openai.FIELD VALUE   a field of the inference server
    --FIELD VALUE          a field of the environment, of a command that takes few

There is no second table of them: names, kinds, texts and groups are those of the
models, which need no framework.
"""

from __future__ import annotations

import typing
from collections.abc import Collection, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any

import click
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from rg_env import yaml_text
from rg_env.errors import SettingError
from rg_env.installation import RUNS_WRITE_IN
from rg_env.items.tasks import Tasks
from rg_env.settings import environment_settings, setting_types
from rg_env.settings.environment_settings import GROUPS, CheckedSettings
from rg_env.settings.launch_settings import LaunchSettings
from rg_env.settings.server_settings import CheckedServer
from rg_env.settings.setting_types import kinds
from rg_env.yaml_text import YamlError

SECTIONS = ENV, OPENAI, LAUNCH = "env", "openai", "launch"
GROUPS_OF: Mapping[str, Sequence[type[BaseModel]]]
GROUPS_OF = {ENV: GROUPS, OPENAI: (CheckedServer,), LAUNCH: (LaunchSettings,)}

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

SWITCH: Any = {"is_flag": False, "flag_value": "true"}
"""An option whose value may be left out."""

METAVARS = {bool: "BOOL", int: "INT", float: "FLOAT", list: "LIST", dict: "MAP"}


class SettingOption(click.Option):
    """The option of one field; its value is the text that was typed."""

    group = "Others, of the class that is run"

    def __init__(
        self, name: str, section: str, field: str, info: FieldInfo, start: Any
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
            how = {"type": click.Choice(self.words + ["None"] * self.takes_none)}
        value = start.value if isinstance(start, Enum) else start
        default = str(value).replace(f"{RUNS_WRITE_IN}/", "")
        text = f"{(info.description or '').rstrip('.')} [{default}]"
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
        except YamlError as error:
            raise SettingError(f"{self.section}.{self.field}: {error}") from error


def _words(kind: Any) -> Sequence[str]:
    if isinstance(kind, type) and issubclass(kind, Enum):
        return [str(member.value) for member in kind]
    is_choice = typing.get_origin(kind) is typing.Literal
    return list(map(str, typing.get_args(kind))) if is_choice else ()


def section_options(section: str, start: BaseModel) -> Iterator[SettingOption]:
    """Yield an option for each field of a model, in the order of its groups."""
    fields = type(start).model_fields
    groups = {
        name: (group.__doc__ or "").partition("\n")[0].rstrip(".")
        for group in GROUPS_OF[section]
        for name in group.model_fields
    }
    for name in dict.fromkeys([*groups, *fields]):
        if name in fields:
            default = getattr(start, name)
            dotted = f"{section}.{name}"
            option = SettingOption(dotted, section, name, fields[name], default)
            option.group = groups.get(name, option.group)
            yield option


def given_values(
    options: Sequence[SettingOption], given: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the fields of options that were given a value, to these values."""
    texts = {option: given[str(option.name)] for option in options}
    return {o.field: o.read(text) for o, text in texts.items() if text is not None}


class BareOptions:
    """Options of the environment for a command that takes few: `--seed`.

    Args:
        names: The fields.
        starts: What the command starts from, where `serve` has another value.
    """

    def __init__(self, names: Collection[str], **starts: Any) -> None:
        self._start = CheckedSettings(**environment_settings.START | starts)
        self.options = [
            SettingOption(name, ENV, name, info, getattr(self._start, name))
            for name, info in CheckedSettings.model_fields.items()
            if name in names
        ]

    def read(self, given: Mapping[str, Any], **fixed: Any) -> CheckedSettings:
        """Return the settings of a command line, with those that it cannot change."""
        typed = given_values(self.options, given)
        values = self._start.model_dump() | fixed | typed
        settings: CheckedSettings = setting_types.build(ENV, CheckedSettings, values)
        return settings


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
