"""The checks at the start of a command: server type, files, W&B, tokenizer.

Each raises a SettingError that begins with the name of the setting.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from rg_env.errors import MAX_SHOWN_CHARS, SettingError, not_allowed, shown
from rg_env.library import worker_jobs
from rg_env.places import check_writable
from rg_env.reward.prompt import list_prompts
from rg_env.stream.prefetch import check_items
from rg_env.workers.worker_pool import WorkerPool

logger = logging.getLogger(__name__)

_HUB_NAME = re.compile(r"\w[\w.-]*(/[\w.-]+)?")
NO_TOKENIZER = "none"  # `env.tokenizer_name` if servers are sent and return texts


# -- the settings of a command ---------------------------------------------------------


def check_can_train(config: Any, server_types: Sequence[str]) -> None:
    """Raise an error if a trainer could not learn from the server's completions."""
    if config.group_size < 2:
        allowed = "at least 2 in `serve`, because a group of one has zero variance"
        raise not_allowed("env.group_size", config.group_size, allowed)
    check_text_settings(config, server_types, trains=True)


def warn_of_temperature(config: Any, server_types: Sequence[str]) -> None:
    """Warn if vLLM, by default, returns log-probabilities of another temperature."""
    if config.temperature != 1 and "vllm" in server_types:
        logger.warning(
            "env.temperature is %g: unless vLLM was started with --logprobs-mode"
            " processed_logprobs, its log-probabilities are those of temperature 1",
            config.temperature,
        )


def check_text_settings(
    config: Any, server_types: Iterable[str], *, trains: bool
) -> None:
    """Refuse settings that work only if servers are sent texts, not token ids."""
    if not trains and all(kind == "openai" for kind in server_types):
        return
    for name in ("thinking_mode", "reasoning_effort", "max_reasoning_tokens"):
        if value := getattr(config, name):
            raise SettingError(
                f"env.{name}: {value!r} is sent only by `process` and `evaluate` with"
                " openai.server_type 'openai'; otherwise, set chat_template_kwargs in"
                " openai.extra_body"
            )
    if config.tokenizer_name == NO_TOKENIZER:
        raise SettingError(
            "env.tokenizer_name: 'none' is allowed only in `process` and `evaluate`"
            " with openai.server_type 'openai'"
        )


def check_command(name: str, config: Any, servers: Sequence[Any]) -> None:
    """Refuse settings that a command cannot use, before it loads anything."""
    if name == "serve":
        check_can_train(config, [server.server_type for server in servers])
    if name == "serve" or config.dump_rollouts or config.dump_failed_rollouts:
        folder = Path(config.data_dumps_dir)
        check_writable("env.data_dumps_dir", folder, is_folder=True)
    evals = config.data_dir_to_save_evals
    if name in ("serve", "evaluate") and evals is not None:
        check_writable("env.data_dir_to_save_evals", Path(evals), is_folder=True)
    rows = config.data_path_to_save_groups
    if rows is not None:
        check_writable("env.data_path_to_save_groups", Path(rows))
    if name == "process":
        if rows is None:
            raise SettingError("env.data_path_to_save_groups: `process` needs a file")
        if config.total_steps < 1:
            allowed = "at least 1, groups of `process`"
            raise not_allowed("env.total_steps", config.total_steps, allowed)
    _check_length_and_tokenizer(config)


def _check_length_and_tokenizer(config: Any) -> None:
    """Refuse a limit below the system prompt, and a tokenizer that is not here.

    A loaded tokenizer checks both exactly, but `launch` begins before it is loaded.
    """
    prompts = list_prompts(config.system_prompt, config.answer_format)
    words = max(len(prompt.split()) for prompt in prompts)
    limit = config.max_token_length
    if limit <= words:  # a word has at least one token
        expected = f"more than the {words} words of the system prompt"
        raise not_allowed("env.max_token_length", limit, expected)
    tokenizer = config.tokenizer_name
    if not _HUB_NAME.fullmatch(tokenizer) and not Path(tokenizer).is_dir():
        raise SettingError(f"env.tokenizer_name: no folder {shown(tokenizer)}")


def check_batch(batch_size: int, group_size: int) -> None:
    """Refuse a batch that is smaller than a group; warn of one that never fills."""
    if batch_size == -1:
        raise SettingError("env.batch_size: neither the trainer nor env sets one")
    if group_size > batch_size:
        raise SettingError(
            f"env.group_size: {group_size} does not fit the trainer's batch of"
            f" {batch_size}"
        )
    if batch_size % group_size:
        logger.warning(
            "the trainer's batch of %d is not a multiple of env.group_size %d: the API"
            " cannot make a batch of only these groups, and does not report this",
            batch_size,
            group_size,
        )


def log_shard(config: Any, env_id: int | None) -> None:
    """Log which items this instance samples; warn if another may sample the same."""
    shards = config.num_shards
    logger.info("this instance samples shard %d of %d", config.shard_index, shards)
    if env_id and shards == 1:
        logger.warning(
            "this is environment %d at this API; if another one is running with the"
            " same seed, both sample the same items, unless env.num_shards and"
            " env.shard_index are set",
            env_id,
        )


def workers_of(config: Any) -> WorkerPool:
    """Return the workers of a run, not started yet."""
    megabytes = config.worker_memory_mb
    return WorkerPool(
        config.worker_count,
        memory_limit_bytes=megabytes and megabytes * 1024**2,
        preload=worker_jobs.preload_calls(config.task_modules),
    )


def checked_workers(config: Any) -> WorkerPool:
    """Return the workers of a run; the library has checked its settings in them."""
    pool = workers_of(config)
    asyncio.run(check_items(pool, config))
    return pool


# -- W&B -------------------------------------------------------------------------------


def check_wandb(config: Any) -> None:
    """Refuse to log a run to W&B without a login."""
    if config.use_wandb and not has_wandb_login():
        raise SettingError(
            "env.use_wandb: W&B has no login; run `wandb login`, set"
            " WANDB_MODE=offline, or pass --env.use_wandb false"
        )


def has_wandb_login() -> bool:
    """Return whether W&B can be used without an interactive login."""
    if os.environ.get("WANDB_MODE") in ("offline", "disabled", "dryrun"):
        return True
    import wandb

    try:
        return bool(wandb.login(prompt=False, verify=False))
    # ValueError and TypeError are for a bad WANDB_ variable.
    except (ValueError, TypeError, wandb.errors.Error) as error:
        raise SettingError(f"W&B: {' '.join(str(error).split())}") from error


# -- the tokenizer ---------------------------------------------------------------------


@contextlib.contextmanager
def refusing_bad_tokenizer(config: Any, servers: Iterable[Any]) -> Iterator[None]:
    """Raise a SettingError if the block fails because a tokenizer cannot be loaded."""
    fields = {
        server.tokenizer_name: "openai.tokenizer_name"
        for server in servers
        if server.server_type != "openai"  # which needs no tokenizer
    }
    fields[config.tokenizer_name] = "env.tokenizer_name"
    try:
        yield
    except Exception as error:
        # Tokenizers raise any kind of exception. A good one has been downloaded by now.
        # The import takes seconds; `launch` does not need it.
        from atroposlib.envs.base import AutoTokenizer

        for name, field in fields.items():
            try:
                AutoTokenizer.from_pretrained(name, local_files_only=True)
            except Exception:  # noqa: BLE001 - as above
                raise SettingError(
                    f"{field}: {shown(name)} cannot be loaded ({_first_line(error)});"
                    " expected a model on the Hugging Face hub, or a folder with a"
                    " tokenizer.json"
                ) from error
        raise


def check_template(name: str, tokenizer: Any) -> None:
    """Refuse a tokenizer that cannot render a conversation."""
    messages = [
        {"role": "system", "content": "first-probe"},
        {"role": "user", "content": "second-probe"},
    ]
    try:
        rendered = tokenizer.apply_chat_template(
            messages, tokenize=False, add_generation_prompt=True
        )
    except Exception as error:  # noqa: BLE001 - a template is a program
        reason = f"cannot render a question: {_first_line(error)}"
    else:
        if all(message["content"] in rendered for message in messages):
            return
        reason = "leaves the system message or the question out"
    raise SettingError(
        f"env.tokenizer_name: the chat template of {name!r} {reason}; expected the"
        " tokenizer of a chat model"
    )


def _first_line(error: BaseException) -> str:
    line = f"{type(error).__name__}: {error}".strip().splitlines()[0]
    return line[:MAX_SHOWN_CHARS].rstrip(".: ")
