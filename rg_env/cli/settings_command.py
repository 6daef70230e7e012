"""The framework's three commands, and what commands with its settings share."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, cast

import click

from rg_env.cli.command import loaded
from rg_env.cli.given_settings import Given, read
from rg_env.cli.setting_options import SettingsCommand, Start
from rg_env.errors import SettingError
from rg_env.tasks.library_import import is_release_of_list
from rg_env.tasks.selection import refuse_unlisted

logger = logging.getLogger(__name__)


def serve(env_cls: Any) -> SettingsCommand:
    """Return `serve` for a class of environments, or what imports it later."""
    summary = "Feed a trainer through the Atropos API."
    return command_of("serve", summary, env_cls, {}, _serve)


def process(env_cls: Any) -> SettingsCommand:
    """Return `process`."""
    starts = {
        "ensure_scores_are_not_same": False,
        "include_messages": True,
        "data_path_to_save_groups": "data/reasoning_gym.jsonl",
    }
    summary = "Write total_steps groups as JSONL rows and a report, without a trainer."
    return command_of("process", summary, env_cls, starts, _process)


def evaluate(env_cls: Any) -> SettingsCommand:
    """Return `evaluate`."""
    folder = f"data/evaluate_{datetime.now().astimezone():%Y%m%d_%H%M%S}"
    starts = {"data_dir_to_save_evals": folder}
    summary = "Measure a model on the fixed evaluation items."
    command = command_of("evaluate", summary, env_cls, starts, _evaluate)
    text = "Print the results as one JSON document instead of a table"
    command.params.append(click.Option(["--json"], is_flag=True, help=text))
    text = "Show the tasks in the table as well"
    command.params.append(click.Option(["--tasks"], is_flag=True, help=text))
    return command


def _start(env_cls: Any, starts: Mapping[str, Any]) -> Start:
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


@dataclasses.dataclass(frozen=True)
class Begun:
    """A command that was read.

    Attributes:
        name: Its name.
        given: What the user set.
        values: Its options by name.
        env_cls: A class of environments, or what imports it.
        starts: What it starts from, where that is not what `serve` starts from.
    """

    name: str
    given: Given
    values: Mapping[str, Any]
    env_cls: Any
    starts: Mapping[str, Any]

    @property
    def start(self) -> Start:
        """All that it starts from."""
        return _start(self.env_cls, self.starts)


def command_of(
    name: str,
    summary: str,
    env_cls: Any,
    starts: Mapping[str, Any],
    run: Callable[[Begun], None],
) -> SettingsCommand:
    """Return a command with settings, which are checked before it is run."""
    start = _start(env_cls, starts)

    def read_and_run(**values: Any) -> int:
        given = read(command, values)
        if not isinstance(env_cls, type) and is_release_of_list():
            refuse_unlisted(given.build_env(start).model_dump())
        given.build_servers(start)
        run(Begun(name, given, values, env_cls, starts))
        return 0

    command = SettingsCommand(name, summary, start, read_and_run)
    return command


def build(begun: Begun, change: Callable[[Any], Any] = lambda config: config) -> Any:
    """Build the environment of a command; from here on the framework is imported.

    `change` returns the settings of the environment that take the place of the given.
    """
    name, given, env_cls = begun.name, begun.given, loaded(begun.env_cls)
    from rg_env.atropos import start_checks

    start = _start(env_cls, begun.starts)
    config, servers = change(given.build_env(start)), given.build_servers(start)
    if given.testing:
        raise SettingError(
            "--testing: found true; the mock server of Atropos answers only what a test"
            " has put into it, so allowed is false; `simulated-server` needs no model"
        )
    start_checks.check_command(name, config, servers, env_cls)
    is_chosen = name == "serve" or given.env.get("use_wandb") is not None
    if config.use_wandb and not start_checks.has_wandb_login():
        if is_chosen:
            raise SettingError(
                "env.use_wandb: W&B has no login; run `wandb login`, set"
                " WANDB_MODE=offline, or pass --env.use_wandb false"
            )
        logger.warning("W&B has no login: it is off (--env.use_wandb true to insist)")
        config = config.model_copy(update={"use_wandb": False})
    env = env_cls(config, servers, slurm=given.slurm, testing=False)
    model, kind = servers[0].model_name, servers[0].server_type
    urls = ", ".join(str(server.config.base_url) for server in env.server.servers)
    logger.info("%s: model %s (%s) at %s", name, model, kind, urls)
    if config.tokenizer_name != model:
        logger.info("%s: tokenizer %s", name, config.tokenizer_name)
    return env


def _serve(begun: Begun) -> None:
    asyncio.run(build(begun).env_manager())


def _is_simulated(env: Any) -> bool:
    """Whether the tokenizer is one that fits no model but the simulated one."""
    from rg_env.demo.chat_tokenizer import TOKENIZER_FOLDER

    return Path(env.config.tokenizer_name).resolve() == TOKENIZER_FOLDER


def _evaluate(begun: Begun) -> None:
    """Run `evaluate`; the report is made of what is on disk."""
    from rg_env.pages.report import report_of

    env = build(begun)
    env.shows_json, env.shows_tasks = begun.values["json"], begun.values["tasks"]
    asyncio.run(env._run_evaluate())
    folder = env.evaluation_folder
    if folder is not None:
        title, simulated = f"Evaluation {folder.name}", _is_simulated(env)
        path = folder / "samples.jsonl"
        page = report_of([path], folder / "report", title=title, is_simulated=simulated)
        if page is not None:
            logger.info("report: %s", page)


def _process(begun: Begun) -> None:
    write_rows(build(begun))


def write_rows(env: Any, *, quietly: bool = False) -> None:
    """Write rows, and a report of whatever was written; say where, or quietly."""
    from rg_env.pages.report import report_of

    env.n_groups_to_process = env.config.total_steps
    env.group_size_to_process = env.config.group_size
    path = Path(env.config.data_path_to_save_groups)
    try:
        asyncio.run(env.process_manager())
    finally:
        name = path.name.removesuffix(".jsonl")
        folder, title = path.with_name(f"{name}_report"), f"Groups in {path.name}"
        page = report_of(
            [path],
            folder,
            title=title,
            is_simulated=_is_simulated(env),
            alarms=env.metrics.alarms.shown(),
        )
        if page is not None and not quietly:
            print(f"rows: {path}\nreport: {page}")
