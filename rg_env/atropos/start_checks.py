"""The checks that come before any work: paths, server type, W&B."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import wandb
from atroposlib.envs.base import BaseEnv

from rg_env.atropos.config import ReasoningGymEnvConfig
from rg_env.atropos.output_paths import check_file, check_folder
from rg_env.atropos.setting_checks import fault_of
from rg_env.errors import SettingError, shown
from rg_env.inference.inference import TOKEN_TYPES
from rg_env.items.chosen_tasks import read_mixture
from rg_env.tasks.library import MIXTURE

logger = logging.getLogger(__name__)

CANNOT_TRAIN = (
    "openai.server_type: a client of its own (`server_cls`) is asked for no token ids"
    " with log-probabilities as {0!r}, so it cannot train; `serve` needs 'vllm' or"
    " 'sglang' there ({0!r} works with `process` and `evaluate`)"
)


NO_SIGNAL = (
    "env.group_size: found 1; allowed is at least 2 in `serve`: rewards are compared"
    " within a group, so a group of one carries no signal (`process` may have such)"
)

NO_TOKENIZER = "none"
"""What `env.tokenizer_name` is where only texts are wanted."""

REASONING = ("thinking_mode", "reasoning_effort", "max_reasoning_tokens")


def check_paths(config: ReasoningGymEnvConfig) -> None:
    """Refuse files that cannot be read or written, before anything is generated.

    A folder that is missing is made when something is written to it.

    Raises:
        SettingError: The field, the path and the reason.
    """
    if config.mixture is not None:
        read_mixture(config.mixture, config.task_params.get(MIXTURE))
    if config.dump_rollouts or config.dump_failed_rollouts:
        check_folder("env.data_dumps_dir", config.data_dumps_dir)
    rows = config.data_path_to_save_groups
    if rows is not None:
        if rows.lower().endswith((".html", ".htm")):
            raise SettingError(
                f"env.data_path_to_save_groups: found {shown(rows)}, which the page"
                " would be written over; name a file of rows, as groups.jsonl"
            )
        check_file("env.data_path_to_save_groups", rows)
    if config.data_dir_to_save_evals is not None:
        check_folder("env.data_dir_to_save_evals", config.data_dir_to_save_evals)


def check_can_train(
    group_size: int, server_types: Iterable[str], *, has_our_clients: bool
) -> None:
    """Refuse to feed a trainer what it could not learn from.

    Args:
        group_size: Rollouts of a group.
        server_types: Of the inference servers.
        has_our_clients: Whether their clients are ours, which find out what a server
            can do.

    Raises:
        SettingError: The setting and the reason.
    """
    for kind in server_types:
        if not has_our_clients and kind not in TOKEN_TYPES:
            raise SettingError(CANNOT_TRAIN.format(kind))
    if group_size < 2:
        raise SettingError(NO_SIGNAL)


def check_command(name: str, config: Any, servers: Sequence[Any], env_cls: Any) -> None:
    """Refuse settings that a command cannot work with, before anything is loaded.

    Raises:
        SettingError: The setting and the reason.
    """
    if name == "serve":
        types = [server.server_type for server in servers]
        ours = env_cls.server_cls is BaseEnv.server_cls
        check_can_train(config.group_size, types, has_our_clients=ours)
        check_reasoning(config, types, trains=True)
        if config.tokenizer_name == NO_TOKENIZER:
            check_texts_do(types, trains=True)
    if name == "process":
        if config.data_path_to_save_groups is None:
            raise SettingError("env.data_path_to_save_groups: `process` needs a file")
        if config.total_steps < 1:
            raise SettingError(
                "env.total_steps: `process` writes that many groups, at least 1, found"
                f" {config.total_steps}"
            )


def check_texts_do(server_types: Iterable[str], *, trains: bool) -> None:
    """Refuse to do without a tokenizer where tokens are asked for.

    Raises:
        SettingError: They are.
    """
    needy = [kind for kind in server_types if kind != "openai"]
    if trains or needy:
        who = "`serve`" if trains else f"a server of type {needy[0]!r}"
        raise SettingError(
            f"env.tokenizer_name: found 'none'; {who} needs the tokenizer of the model"
            " ('none' is for `process` and `evaluate` at servers of type 'openai')"
        )


def check_reasoning(
    config: ReasoningGymEnvConfig, server_types: Iterable[str], *, trains: bool
) -> None:
    """Refuse to ask for reasoning where the server would not be told.

    Args:
        config: The settings.
        server_types: Of the inference servers.
        trains: Whether prompts are sent as token ids, whatever the server.

    Raises:
        SettingError: The setting and the reason.
    """
    is_told = not trains and all(kind == "openai" for kind in server_types)
    for name in REASONING:
        found = getattr(config, name)
        if found and not is_told:
            raise SettingError(
                f"env.{name}: found {found!r}, of which a server is not told but by"
                " `process` and `evaluate` with openai.server_type 'openai'; in"
                " `serve`, chat_template_kwargs in openai.extra_body reach the template"
            )


def has_wandb_login(environ: Mapping[str, str] = os.environ) -> bool:
    """Say whether W&B can be used without asking a person.

    Raises:
        SettingError: W&B does not take one of its variables.
    """
    names = sorted(name for name in environ if name.startswith("WANDB_"))
    for name in names:
        with _refusing(name):
            wandb.Settings().update_from_env_vars({name: environ[name]})
    if environ.get("WANDB_MODE") in ("offline", "disabled", "dryrun"):
        return True
    with _refusing("WANDB_API_KEY" if "WANDB_API_KEY" in names else ""):
        return bool(wandb.login(prompt=False, verify=False))
    return False


@contextlib.contextmanager
def _refusing(name: str) -> Iterator[None]:
    """Name a variable, whose value may be a key, that W&B does not take."""
    try:
        yield
    except (ValueError, TypeError, wandb.errors.Error) as error:
        if name:
            raise SettingError(
                f"{name}: W&B does not take it ({fault_of(error)}); correct or unset"
                " it, or pass --env.use_wandb false"
            ) from error


def say_shard(env_id: int | None, shard_index: int, num_shards: int) -> None:
    """Say which part of the items this instance asks; warn of one that shares them.

    Args:
        env_id: The API's number for this environment.
        shard_index: This instance, in [0, num_shards).
        num_shards: Instances that share the items.
    """
    logger.info(
        "shard %d of %d: this instance asks %s of the seed's items",
        shard_index,
        num_shards,
        "all" if num_shards == 1 else f"one in {num_shards}",
    )
    if env_id and num_shards == 1:
        logger.warning(
            "this is environment %d at this API: one that still runs with the same"
            " seed asks the same items, unless env.num_shards and env.shard_index say"
            " who asks which",
            env_id,
        )


def check_batch(batch_size: int, group_size: int) -> None:
    """Refuse a trainer's batch that no group fits; warn of one that never fills.

    Args:
        batch_size: Rollouts of the trainer's batch, -1 where nobody sets it.
        group_size: Rollouts of a group.

    Raises:
        SettingError: There is no batch size, or it cannot hold a group.
    """
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
            " makes no batch of such groups alone, and says nothing",
            batch_size,
            group_size,
        )
