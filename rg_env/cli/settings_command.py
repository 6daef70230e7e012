"""The framework's three commands, and what a user has set: options over YAML."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, cast

import click
from pydantic import Field

from rg_env import yaml_text
from rg_env.cli.command import loaded
from rg_env.cli.setting_options import (
    ENV,
    FLAGS,
    IGNORED,
    OPENAI,
    SECTIONS,
    SettingsCommand,
    Start,
    given_values,
)
from rg_env.errors import SettingError, nearest, shown, unknown_name
from rg_env.settings import setting_types
from rg_env.settings.environment_settings import choosing_tasks
from rg_env.settings.setting_types import CheckedModel, ChoosesTasks
from rg_env.tasks.library_import import is_release_of_list
from rg_env.tasks.selection import refuse_unlisted
from rg_env.yaml_text import YamlError

logger = logging.getLogger(__name__)


class GivenSettings(CheckedModel):
    """What the user set, and nothing else."""

    env: dict[str, Any] = Field({})
    """Fields of the environment"""
    openai: dict[str, Any] | Annotated[list[dict[str, Any]], Field(min_length=1)] = (
        Field({})
    )
    """Fields of the inference server, or of each of several"""
    launch: dict[str, Any] = Field({})
    """Fields of `launch`"""
    slurm: bool = False
    """Whether the servers are found through Slurm"""
    testing: bool = False
    """Whether the framework's mock server is used"""

    def build_env(self, start: Start) -> Any:
        """Build the settings of the environment, over what a command starts from."""
        return setting_types.build(ENV, start.env, {**start.env_values, **self.env})

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
            first = start.servers[number if is_one else 0] if start.servers else {}
            quiet = {"health_check": False} if part.get("server_type") == OPENAI else {}
            values = {**first, **quiet, **part}
            servers.append(setting_types.build(section, start.server, values))
        return servers


def _read_file(path: str | None, start: Start) -> dict[str, Any]:
    """Return the sections of a file, in which a trainer may have its own."""
    if path is None:
        return {}
    try:
        content = yaml_text.read(path)
    except YamlError as fault:
        raise SettingError(f"--config: {shown(path)}: {fault}") from fault
    known = (*SECTIONS, *FLAGS, *IGNORED)
    if not isinstance(content, dict) or not {*content} & {*known}:
        raise SettingError(
            f"--config: {shown(path)} has none of the sections `env` and `openai`"
        )
    fields = {*start.env.model_fields, *start.server.model_fields}
    for name in [name for name in content if name not in known]:
        # What was perhaps meant for us is no section of another program.
        is_map, near = isinstance(content[name], dict), nearest(str(name), known)
        if not is_map or near or name in fields:
            raise unknown_name("--config", str(name), known, "section")
        logger.info("--config: section %s is ignored", shown(name))
    return content


def read(command: SettingsCommand, values: Mapping[str, Any]) -> GivenSettings:
    """Return what the options of a command line and the file that they name say.

    Raises:
        SettingError: An option, key or file is wrong.
    """
    content = _read_file(values["config"], command.start)
    for name in IGNORED:
        if values[name] is not None or name in content:
            logger.warning("--%s has no effect: Atropos does not use it", name)
    found = {n: content[n] for n in (*SECTIONS, *FLAGS) if content.get(n) is not None}
    found |= {name: values[name] for name in FLAGS if values[name] is not None}
    servers = found.get(OPENAI)
    if isinstance(servers, list) and len(servers) == 1:
        (found[OPENAI],) = servers
    given: GivenSettings = setting_types.build("--config", GivenSettings, found)
    typed: dict[str, dict[str, Any]] = {
        name: given_values([o for o in command.settings if o.section == name], values)
        for name in SECTIONS
    }
    if typed[OPENAI] and not isinstance(given.openai, dict):
        raise SettingError(
            f"command line: --openai.{min(typed[OPENAI])} cannot be combined with a"
            " list of servers in --config"
        )
    both = {name: getattr(given, name) | typed[name] for name in typed if typed[name]}
    return given.model_copy(update=both)


# -- the commands ----------------------------------------------------------------------


def serve(env_cls: Any) -> SettingsCommand:
    """Return `serve` for a class of environments, or what imports it later."""
    return _command("serve", "Feed a trainer through the Atropos API.", env_cls, {})


def process(env_cls: Any) -> SettingsCommand:
    """Return `process`."""
    name = getattr(env_cls, "name", None) or "reasoning_gym"
    starts = {
        "ensure_scores_are_not_same": False,
        "include_messages": True,
        "data_path_to_save_groups": f"data/{name}.jsonl",
    }
    summary = "Write total_steps groups as JSONL rows and a report, without a trainer."
    return _command("process", summary, env_cls, starts)


def evaluate(env_cls: Any) -> SettingsCommand:
    """Return `evaluate`."""
    folder = f"data/evaluate_{datetime.now().astimezone():%Y%m%d_%H%M%S}"
    starts = {"data_dir_to_save_evals": folder}
    summary = "Measure a model on the fixed evaluation items."
    texts = {
        "--json": "Print the results as one JSON document instead of a table",
        "--tasks": "Show a row for each task in the table",
    }
    own = [
        click.Option([flag], is_flag=True, help=text) for flag, text in texts.items()
    ]
    return _command("evaluate", summary, env_cls, starts, own)


def start_of(env_cls: Any, starts: Mapping[str, Any]) -> Start:
    """Return what a command starts from, given what differs from `serve`."""
    if not isinstance(env_cls, type):
        start = Start()
        return Start(env_values={**start.env_values, **starts})
    from rg_env.atropos.server_list import checked_kind

    env, servers = cast(Any, env_cls).config_init()
    given = list(servers) if isinstance(servers, Sequence) else [servers]
    return Start(
        type(env),
        {**env.model_dump(), **starts},
        checked_kind(type(given[0])),
        [server.model_dump() for server in given],
    )


def _command(
    name: str,
    summary: str,
    env_cls: Any,
    starts: Mapping[str, Any],
    own: Sequence[click.Option] = (),
) -> SettingsCommand:
    start = start_of(env_cls, starts)

    def run(**values: Any) -> int:
        given = checked(command, values, env_cls)
        env = build(name, env_cls, given, starts)
        env.shows_json = values.get("json", False)
        env.shows_tasks = values.get("tasks", False)
        return _run(name, env)

    command = SettingsCommand(name, summary, start, run, own)
    return command


def checked(
    command: SettingsCommand, values: Mapping[str, Any], env_cls: Any
) -> GivenSettings:
    """Return what was set, checked as far as it can be without the framework."""
    given = read(command, values)
    settings = given.build_env(command.start)
    others = isinstance(env_cls, type) or settings.task_modules
    if not others and is_release_of_list():
        fields = choosing_tasks(ChoosesTasks.BY_NAME)
        refuse_unlisted({name: getattr(settings, name) or () for name in fields})
    given.build_servers(command.start)
    return given


def _with_model(
    name: str, given: GivenSettings, config: Any, servers: list[Any]
) -> tuple[Any, list[Any]]:
    """Return settings with a model and a tokenizer where nobody has named them."""
    from rg_env.atropos.unnamed_model import found_model

    if given.slurm:
        return config, servers
    return found_model(
        config,
        servers,
        named=["model_name" in part for part in given.parts(servers)],
        names_tokenizer="tokenizer_name" in given.env,
        trains=name == "serve",
    )


def build(
    name: str,
    env_cls: Any,
    given: GivenSettings,
    starts: Mapping[str, Any],
    change: Callable[[Any], Any] = lambda config: config,
) -> Any:
    """Build the environment of a command; from here on the framework is imported.

    `change` takes the settings of the environment and returns those that are used.
    """
    env_cls = loaded(env_cls)
    from rg_env.atropos import start_checks

    start = start_of(env_cls, starts)
    config, servers = change(given.build_env(start)), given.build_servers(start)
    if given.testing:
        raise SettingError(
            "--testing: true is not allowed; expected false, because the mock server of"
            " Atropos answers only what a test put into it. `simulated-server` needs no"
            " model"
        )
    start_checks.check_command(name, config, servers, env_cls)
    # Elsewhere the default is no wish of the user: without a login, W&B is off.
    is_chosen = name == "serve" or given.env.get("use_wandb") is not None
    if is_chosen:
        start_checks.check_wandb(config)
    elif config.use_wandb and not start_checks.has_wandb_login():
        logger.warning(
            "W&B has no login and is off (--env.use_wandb true insists on it)"
        )
        config = config.model_copy(update={"use_wandb": False})
    # Last, since a server may have to be waited for.
    config, servers = _with_model(name, given, config, servers)
    env = env_cls(config, servers, slurm=given.slurm, testing=False)
    model, kind = servers[0].model_name, servers[0].server_type
    urls = ", ".join(str(server.config.base_url) for server in env.server.servers)
    own = config.tokenizer_name
    tokenizer = f", tokenizer {own}" if own != model else ""
    logger.info("%s: model %s (%s) at %s%s", name, model, kind, urls, tokenizer)
    return env


def _run(name: str, env: Any) -> int:
    if name == "serve":
        asyncio.run(env.env_manager())
    elif name == "evaluate":
        _evaluate(env)
    else:
        write_rows(env)
    return 0


def _is_simulated(env: Any) -> bool:
    """Whether the tokenizer is one that fits no model but the simulated one."""
    from rg_env.demo.chat_tokenizer import TOKENIZER_FOLDER

    return Path(env.config.tokenizer_name).resolve() == TOKENIZER_FOLDER


def _evaluate(env: Any) -> None:
    """Run `evaluate`; the report is made of what is on disk."""
    from rg_env.pages.report import report_of

    asyncio.run(env._run_evaluate())
    folder = env.evaluation_folder
    if folder is not None:
        title, simulated = f"Evaluation {folder.name}", _is_simulated(env)
        path = folder / "samples.jsonl"
        page = report_of([path], folder / "report", title=title, is_simulated=simulated)
        if page is not None:
            logger.info("report: %s", page)


def write_rows(env: Any) -> None:
    """Run `process`; the report is made of whatever was written."""
    from rg_env.evaluation.sources import metrics_beside
    from rg_env.pages.report import report_of

    env.n_groups_to_process = env.config.total_steps
    env.group_size_to_process = env.config.group_size
    try:
        asyncio.run(env.process_manager())
    finally:
        path = Path(env.config.data_path_to_save_groups)
        name = path.name.removesuffix(".jsonl")
        folder, title = path.with_name(f"{name}_report"), f"Groups in {path.name}"
        both, simulated = [path, metrics_beside(path)], _is_simulated(env)
        page = report_of(both, folder, title=title, is_simulated=simulated)
        if page is not None:
            print(f"rows: {path}\nreport: {page}")
