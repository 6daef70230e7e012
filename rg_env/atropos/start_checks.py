"""The checks that come before any work: paths, server type, W&B."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Mapping

import wandb
from pydantic import ValidationError

from rg_env.atropos.config import ReasoningGymEnvConfig
from rg_env.atropos.output_paths import check_file, check_folder
from rg_env.errors import SettingError, shown
from rg_env.inference.inference import TOKEN_TYPES
from rg_env.items import mixture_file
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
        mixture_file.read(config.mixture, config.task_params.get(MIXTURE))
    if config.dump_rollouts or config.dump_failed_rollouts:
        check_folder("env.data_dumps_dir", config.data_dumps_dir)
    rows = config.data_path_to_save_groups
    if rows is not None:
        if rows.lower().endswith((".html", ".htm")):
            raise SettingError(
                f"env.data_path_to_save_groups: found {shown(rows)}, which the page"
                " would be written over; name a file of rows, as groups.jsonl"
            )
        check_file("env.data_path_to_save_groups", rows, is_kept=True)
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
    for server_type in server_types:
        if not has_our_clients and server_type not in TOKEN_TYPES:
            raise SettingError(CANNOT_TRAIN.format(server_type))
    if group_size < 2:
        raise SettingError(NO_SIGNAL)


def check_texts_do(server_types: Iterable[str], *, trains: bool) -> None:
    """Refuse to do without a tokenizer where tokens are asked for.

    Args:
        server_types: Of the inference servers.
        trains: Whether a trainer gets the tokens.

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
    named = [name for name in REASONING if getattr(config, name)]
    deaf = [kind for kind in server_types if kind != "openai"]
    for name in named:
        found = f"env.{name}: found {getattr(config, name)!r}, of which"
        if deaf:
            raise SettingError(
                f"{found} a server of type {deaf[0]!r} is not told; it is for"
                " openai.server_type 'openai'"
            )
        if trains:
            raise SettingError(
                f"{found} no server is told in `serve`, where prompts are sent as token"
                " ids; chat_template_kwargs in openai.extra_body reach the template"
            )


def check_wandb_variables(environ: Mapping[str, str] = os.environ) -> None:
    """Refuse variables that W&B itself would refuse, when it starts.

    Raises:
        SettingError: The variable, what was found and what W&B says of it.
    """
    for name in sorted(environ):
        if name.startswith("WANDB_"):
            try:
                wandb.Settings().update_from_env_vars({name: environ[name]})
            except ValidationError as error:
                reason = error.errors(include_url=False)[0]["msg"]
            except (ValueError, TypeError, wandb.errors.Error) as error:
                reason = str(error).strip().split("\n", 1)[0]
            else:
                continue
            raise SettingError(
                f"{name}: found {shown(environ[name])}, which W&B does not take"
                f" ({reason}); correct or unset it, or pass --env.use_wandb false"
            )


def has_wandb_login() -> bool:
    """Say whether W&B can be used without asking a person.

    Raises:
        SettingError: A variable of W&B is wrong.
    """
    check_wandb_variables()
    if os.environ.get("WANDB_MODE") in ("offline", "disabled", "dryrun"):
        return True
    try:
        return bool(wandb.login(prompt=False, verify=False))
    except wandb.errors.Error as error:
        if os.environ.get("WANDB_API_KEY"):
            reason = str(error).strip().split("\n", 1)[0].rstrip(".")
            raise SettingError(
                f"WANDB_API_KEY: W&B does not take this key ({reason}); correct or"
                " unset it, or pass --env.use_wandb false"
            ) from error
        return False


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
