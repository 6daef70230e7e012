"""The framework's three commands: serve, process and evaluate."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, cast

import click

from rg_env.cli import setting_values
from rg_env.cli.command import loaded
from rg_env.cli.setting_options import SettingsCommand, Start
from rg_env.cli.setting_values import Given
from rg_env.errors import SettingError
from rg_env.tasks.library_import import is_release_of_list
from rg_env.tasks.selection import refuse_unlisted

logger = logging.getLogger(__name__)


def serve(env_cls: Any) -> SettingsCommand:
    """Return `serve` for a class of environments, or what imports it later."""
    return _command("serve", "Feed a trainer through the Atropos API.", env_cls, {})


def process(env_cls: Any) -> SettingsCommand:
    """Return `process`."""
    starts = {
        "ensure_scores_are_not_same": False,
        "include_messages": True,
        "data_path_to_save_groups": "data/reasoning_gym.jsonl",
    }
    summary = "Write total_steps groups as JSONL rows and a page, without a trainer."
    return _command("process", summary, env_cls, starts)


def evaluate(env_cls: Any) -> SettingsCommand:
    """Return `evaluate`."""
    folder = f"data/evaluate_{datetime.now().astimezone():%Y%m%d_%H%M%S}"
    starts = {"data_dir_to_save_evals": folder}
    summary = "Measure a model on the fixed evaluation items."
    command = _command("evaluate", summary, env_cls, starts)
    text = "Print the results as one JSON document instead of a table"
    command.params.append(click.Option(["--json"], is_flag=True, help=text))
    text = "Show the tasks in the table as well"
    command.params.append(click.Option(["--tasks"], is_flag=True, help=text))
    return command


def _start(env_cls: Any, starts: Mapping[str, Any]) -> Start:
    if not isinstance(env_cls, type):
        start = Start()
        return Start(env_values={**start.env_values, **starts})
    from rg_env.atropos.server_settings import checked_kind

    env, servers = cast(Any, env_cls).config_init()
    given = list(servers) if isinstance(servers, Sequence) else [servers]
    return Start(
        type(env),
        {**env.model_dump(), **starts},
        checked_kind(type(given[0])),
        [server.model_dump() for server in given],
    )


def _command(
    name: str, summary: str, env_cls: Any, starts: Mapping[str, Any]
) -> SettingsCommand:
    start = _start(env_cls, starts)

    def run(**values: Any) -> int:
        given = setting_values.read(command, values)
        if not isinstance(env_cls, type) and is_release_of_list():
            refuse_unlisted(given.build_env(start).model_dump())
        given.build_servers(start)
        env = _build(name, env_cls, given, starts)
        env.shows_json = values.get("json", False)
        env.shows_tasks = values.get("tasks", False)
        return _run(name, env)

    command = SettingsCommand(name, summary, start, run)
    return command


def _build(name: str, env_cls: Any, given: Given, starts: Mapping[str, Any]) -> Any:
    """Build the environment of a command; from here on the framework is imported."""
    env_cls = loaded(env_cls)
    from rg_env.atropos import start_checks

    start = _start(env_cls, starts)
    config, servers = given.build_env(start), given.build_servers(start)
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


def _run(name: str, env: Any) -> int:
    if name == "serve":
        asyncio.run(env.env_manager())
    elif name == "evaluate":
        asyncio.run(env._run_evaluate())
    else:
        _process(env)
    return 0


def _process(env: Any) -> None:
    """Run `process`; the page is made of whatever was written."""
    from rg_env.demo.chat_tokenizer import TOKENIZER_FOLDER
    from rg_env.reports import group_page

    env.n_groups_to_process = env.config.total_steps
    env.group_size_to_process = env.config.group_size
    path = Path(env.config.data_path_to_save_groups)
    try:
        asyncio.run(env.process_manager())
    finally:
        # A tokenizer that fits no model but the simulated one.
        is_simulated = Path(env.config.tokenizer_name).resolve() == TOKENIZER_FOLDER
        page = group_page.write_page_of(path, is_simulated=is_simulated)
        if page is not None:
            print(f"rows: {path}\npage: {page}")
