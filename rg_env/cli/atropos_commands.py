"""The framework's three commands: serve, process and evaluate."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from atroposlib.envs.base import BaseEnv

from rg_env.atropos import start_checks
from rg_env.cli import options
from rg_env.cli.atropos_options import COMMANDS, Command, parse
from rg_env.cli.option_table import ENV, describe
from rg_env.errors import SettingError
from rg_env.reports import group_page
from rg_env.simulation.chat_tokenizer import TOKENIZER_FOLDER

logger = logging.getLogger(__name__)


def _wandb_choice(command: Command, chosen: Mapping[str, Any], wanted: bool) -> bool:
    """Return whether W&B is used, which needs a login when the user asked for it.

    Raises:
        SettingError: It is wanted and there is no login.
    """
    if not wanted or start_checks.has_wandb_login():
        return wanted
    if command.wandb_needs_login or chosen.get("use_wandb") is not None:
        raise SettingError(
            "env.use_wandb: W&B has no login; run `wandb login`, set"
            " WANDB_MODE=offline, or pass --env.use_wandb false"
        )
    logger.warning("W&B has no login: it is off (--env.use_wandb true to insist)")
    return False


def _check(name: str, config: Any, servers: Sequence[Any], env_cls: Any) -> None:
    """Refuse settings that a command cannot work with, before anything is loaded.

    Raises:
        SettingError: The setting and the reason.
    """
    if name == "serve":
        types = [server.server_type for server in servers]
        ours = env_cls.server_cls is BaseEnv.server_cls
        start_checks.check_can_train(config.group_size, types, has_our_clients=ours)
        start_checks.check_reasoning(config, types, trains=True)
        if config.tokenizer_name == start_checks.NO_TOKENIZER:
            start_checks.check_texts_do(types, trains=True)
    if name == "process":
        if config.data_path_to_save_groups is None:
            raise SettingError("env.data_path_to_save_groups: `process` needs a file")
        if config.total_steps < 1:
            raise SettingError(
                "env.total_steps: `process` writes that many groups, at least 1, found"
                f" {config.total_steps}"
            )


def _build(env_cls: Any, name: str, argv: Sequence[str]) -> Any:
    """Build the environment of a command from its command line."""
    command = COMMANDS[name]
    default_env, default_servers = env_cls.config_init()
    chosen = parse(name, argv, describe(default_env, default_servers[0]))
    started_from = default_env.model_copy(update=dict(command.starts))
    for option in chosen.ignored:
        logger.warning("--%s does nothing: Atropos hands it to nobody", option)
    if chosen.testing:
        raise SettingError(
            "--testing: found true; the mock server of Atropos answers only what a test"
            " has put into it, so allowed is false; `simulated-server` needs no model"
        )
    config = options.build_model(
        ENV, type(default_env), started_from.model_dump(), chosen.env
    )
    servers = options.build_servers(default_servers[0], chosen.openai)
    _check(name, config, servers, env_cls)
    use_wandb = _wandb_choice(command, chosen.env, config.use_wandb)
    config = config.model_copy(update={"use_wandb": use_wandb})
    env = env_cls(config, servers, slurm=chosen.slurm, testing=chosen.testing)
    model, urls = servers[0].model_name, (str(server.base_url) for server in servers)
    kind = servers[0].server_type
    logger.info("%s: model %s (%s) at %s", name, model, kind, ", ".join(urls))
    if config.tokenizer_name != model:
        logger.info("%s: tokenizer %s", name, config.tokenizer_name)
    return env


def serve(env_cls: Any, argv: Sequence[str]) -> int:
    """Run `serve`."""
    asyncio.run(_build(env_cls, "serve", argv).env_manager())
    return 0


def process(env_cls: Any, argv: Sequence[str]) -> int:
    """Run `process`; the page is made of whatever was written."""
    env = _build(env_cls, "process", argv)
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
    return 0


def evaluate(env_cls: Any, argv: Sequence[str]) -> int:
    """Run `evaluate`."""
    asyncio.run(_build(env_cls, "evaluate", argv)._run_evaluate())
    return 0
