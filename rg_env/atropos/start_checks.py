"""The checks that come before any work: mixture, server type, W&B.

Each raises SettingError: the setting, what was found and what is allowed.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Sequence
from typing import Any

import wandb

from rg_env.errors import SettingError, in_section, nearest, not_allowed
from rg_env.items.chosen_tasks import read_mixture
from rg_env.settings.environment_settings import PUBLISHED, CheckedSettings
from rg_env.task_rules.rules import MIXTURE

logger = logging.getLogger(__name__)

NO_TOKENIZER = "none"
"""What `env.tokenizer_name` is where only texts are wanted."""

REASONING = ("thinking_mode", "reasoning_effort", "max_reasoning_tokens")


def check_mixture(config: CheckedSettings) -> None:
    """Refuse a mixture that cannot be read, before anything is generated."""
    if config.mixture is not None:
        with in_section("env."):
            read_mixture(config.mixture, config.task_params.get(MIXTURE))


# -- what a command needs --------------------------------------------------------------


def check_can_train(
    config: Any, server_types: Sequence[str], *, has_our_clients: bool
) -> None:
    """Raise an error if a trainer could not learn from the server's completions.

    Our clients detect what a server can do; for other clients, the server type decides.
    """
    from rg_env.inference.servers import TOKEN_TYPES  # as in check_command

    for kind in server_types:
        if not has_our_clients and kind not in TOKEN_TYPES:
            raise SettingError(
                f"openai.server_type: {kind!r} is not allowed; a client of your own"
                " (`server_cls`) can train only with 'vllm' or 'sglang'"
            )
    if config.group_size < 2:
        raise SettingError(
            "env.group_size: 1 is not allowed; expected at least 2 in `serve`, because"
            " a group of one has zero variance"
        )
    check_texts_do(config, server_types, trains=True)


def check_texts_do(config: Any, server_types: Iterable[str], *, trains: bool) -> None:
    """Raise an error for settings that need servers that are sent texts, not token ids.

    Running without a tokenizer and requesting reasoning need texts. Training always
    uses token ids.
    """
    if not trains and all(kind == "openai" for kind in server_types):
        return
    where = "`process` and `evaluate` with openai.server_type 'openai'"
    for name in REASONING:
        found = getattr(config, name)
        if found:
            raise SettingError(
                f"env.{name}: {found!r} is sent only by {where}; otherwise, set"
                " chat_template_kwargs in openai.extra_body"
            )
    if config.tokenizer_name == NO_TOKENIZER:
        raise SettingError(f"env.tokenizer_name: 'none' is allowed only in {where}")


def check_command(name: str, config: Any, servers: Sequence[Any], env_cls: Any) -> None:
    """Refuse settings that a command cannot work with, before anything is loaded."""
    if name == "serve":
        from atroposlib.envs.base import BaseEnv  # seconds, which `launch` does without

        types = [server.server_type for server in servers]
        ours = env_cls.server_cls is BaseEnv.server_cls
        check_can_train(config, types, has_our_clients=ours)
    if name == "process":
        if config.data_path_to_save_groups is None:
            raise SettingError("env.data_path_to_save_groups: `process` needs a file")
        check_total(config.total_steps)
    number, temperature = config.eval_completions, config.eval_temperature
    if name == "evaluate" and number > 1 and temperature == 0:
        logger.warning(
            "env.eval_completions: the %d completions of an item will be identical at"
            " env.eval_temperature 0.0",
            number,
        )
    prompt = config.eval_system_prompt or ""
    if prompt not in ("", PUBLISHED) and nearest(prompt, [PUBLISHED]):
        logger.warning(
            "env.eval_system_prompt: %r is used as the prompt itself; did you mean %r?",
            *(prompt, PUBLISHED),
        )


def check_total(total: int) -> None:
    """Refuse to write no group."""
    if total < 1:
        raise not_allowed("env.total_steps", total, "at least 1, groups of `process`")


def check_batch(batch_size: int, group_size: int) -> None:
    """Refuse a trainer's batch that no group fits; warn of one that never fills."""
    if batch_size == -1:
        raise SettingError("env.batch_size: neither the trainer nor env sets one")
    if group_size > batch_size:
        raise SettingError(
            f"env.group_size: {group_size} does not fit the trainer's batch of"
            f" {batch_size}"
        )
    if batch_size % group_size:
        logger.warning(
            "the trainer's batch of %d is no multiple of env.group_size %d: the API"
            " cannot make a batch of these groups alone, and does not report this",
            batch_size,
            group_size,
        )


def say_shard(env_id: int | None, shard_index: int, num_shards: int) -> None:
    """Say which items this instance samples; warn of one that shares them."""
    which = "all items" if num_shards == 1 else f"one in {num_shards} items"
    logger.info(
        "shard %d of %d: this instance samples %s of the stream",
        *(shard_index, num_shards, which),
    )
    if env_id and num_shards == 1:
        logger.warning(
            "this is environment %d at this API; if another one is running with the"
            " same seed, both sample the same items, unless env.num_shards and"
            " env.shard_index are set",
            env_id,
        )


# -- W&B -------------------------------------------------------------------------------


def check_wandb(config: Any) -> None:
    """Refuse a run that would be logged to W&B, and has no login there."""
    if config.use_wandb and not has_wandb_login():
        raise SettingError(
            "env.use_wandb: W&B has no login; run `wandb login`, set"
            " WANDB_MODE=offline, or pass --env.use_wandb false"
        )


def has_wandb_login() -> bool:
    """Return whether W&B can be used without an interactive login."""
    if os.environ.get("WANDB_MODE") in ("offline", "disabled", "dryrun"):
        return True
    try:
        return bool(wandb.login(prompt=False, verify=False))
    except (ValueError, TypeError, wandb.errors.Error) as error:  # of its variables
        raise SettingError(f"W&B: {' '.join(str(error).split())}") from error
