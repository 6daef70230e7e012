"""What is measured, under which conditions, and with which command line."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from rg_env.demo.chat_tokenizer import TOKENIZER_FOLDER

PROMPT_ROOM_TOKENS = 4096


@dataclasses.dataclass(frozen=True)
class Contestant:
    """An environment's file, and what it is called.

    Attributes:
        shards: Whether it knows `--env.shard_index` and `--env.num_shards`.
        argv: Options of its own, after all others.
        is_api_quick: Whether it feeds this project's `run-api`, not the framework's.
    """

    name: str
    file: Path
    shards: bool
    argv: tuple[str, ...] = ()
    is_api_quick: bool = True


@dataclasses.dataclass(frozen=True)
class Setting:
    """What one run is measured under.

    Attributes:
        latency_ms: From a request's arrival to its answer.
        tokens: Length of every completion.
        workers: Groups in flight that each environment may have.
        group_size: Rollouts of a group.
        batch_size: Rollouts of the trainer's batch.
        instances: Environments on the one API.
        groups: The window ends after so many groups ...
        seconds: ... or so many seconds, whichever comes first.
        warmup: Groups before the window.
    """

    latency_ms: float
    tokens: int
    workers: int = 8
    group_size: int = 8
    batch_size: int = 64
    instances: int = 1
    groups: int = 400
    seconds: float = 10.0
    warmup: int = 16

    @property
    def max_token_length(self) -> int:
        """What the environment may use for prompt and completion, in tokens."""
        return self.tokens + PROMPT_ROOM_TOKENS

    @property
    def title(self) -> str:
        parts = [f"{self.latency_ms:g} ms", f"{self.tokens} tokens"]
        if self.instances > 1:
            parts.append(f"{self.instances} instances")
        return ", ".join(parts)


def command_line(
    setting: Setting, contestant: Contestant, api: str, server: str, index: int
) -> list[str]:
    """Return the environment's command line, of options that every host file knows."""
    options: dict[str, Any] = {
        "env.tokenizer_name": TOKENIZER_FOLDER,
        "env.rollout_server_url": api,
        "env.use_wandb": "false",
        "env.group_size": setting.group_size,
        "env.batch_size": setting.batch_size,
        "env.total_steps": 1_000_000,
        "env.steps_per_eval": 1_000_000,
        "env.max_token_length": setting.max_token_length,
        "env.max_num_workers": setting.workers,
        "env.ensure_scores_are_not_same": "false",
        "openai.base_url": f"{server}/v1",
        "openai.server_type": "vllm",
        "openai.model_name": "simulated",
        "openai.tokenizer_name": TOKENIZER_FOLDER,
        "openai.num_max_requests_at_once": 4096,
    }
    if contestant.shards and setting.instances > 1:
        options["env.shard_index"] = index
        options["env.num_shards"] = setting.instances
    argv = [text for k, v in options.items() for text in (f"--{k}", str(v))]
    return ["serve", *argv, *contestant.argv]
