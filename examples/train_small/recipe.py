"""What is trained: tasks that a model of a million parameters can begin with."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import yaml

TASK_PARAMS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "spell_backward": {"min_word_len": 3, "max_word_len": 5},
        "number_filtering": {
            "min_numbers": 2,
            "max_numbers": 4,
            "max_decimals": 0,
            "min_value": -50,
            "max_value": 50,
        },
        "word_sequence_reversal": {"min_words": 2, "max_words": 2},
        "chain_sum": {"min_terms": 2, "max_terms": 3, "max_digits": 1},
    }
)
"""Task to the parameters of its items."""

NEVER_SEEN = ("count_bits", "gcd", "lcm", "products")
"""Tasks that the warm start has not shown: their groups carry no signal at first."""

SYSTEM_PROMPT = "Answer."
"""A model of this size learns what to do from the warm start, and each token costs."""

MODEL_NAME = "policy"
"""What it is called in requests."""

WITHOUT_END = 1_000_000
"""Steps of `serve`, which the trainer ends."""

CURRICULUM_TARGET = 0.5
"""Of the rewards: about what a warm start comes to."""

RESULT = "result.json"
"""File of a run: what came of it."""

RunKind = Literal["grpo", "shuffled", "curriculum", "weighted", "adaptive"]


@dataclass(frozen=True)
class Run:
    """A training run from the end of a warm start.

    Attributes:
        kind: What it is to show.
        tasks: Their names; the first is the one that the warm start has shown.
        changes: Settings of the environment that differ from those of the others.
        is_shuffled: Whether rewards are dealt out anew within each batch.
    """

    kind: RunKind
    tasks: tuple[str, ...]
    changes: Mapping[str, Any] = field(default_factory=dict)
    is_shuffled: bool = False

    @property
    def name(self) -> str:
        """A folder's name."""
        return f"{self.kind}-{self.tasks[0]}"


def tasks_of(tasks: tuple[str, ...]) -> tuple[str, ...]:
    """Return all tasks that a folder of runs may ask: one tokenizer is made for them.

    Args:
        tasks: Those that are to be trained.
    """
    return tuple(dict.fromkeys((*TASK_PARAMS, *NEVER_SEEN, *tasks)))


def runs_of(kind: RunKind, tasks: tuple[str, ...]) -> list[Run]:
    """Return the runs of a kind, one for each task that has a warm start."""
    if kind in ("weighted", "adaptive"):
        changes = {"task_choice": kind}
        drawn = [tuple(dict.fromkeys((task, *NEVER_SEEN))) for task in tasks]
        return [Run(kind, among, changes) for among in drawn]
    if kind == "curriculum":
        changes = {
            "complexity_mode": "curriculum",
            "task_params": {},
            "curriculum_target_accuracy": CURRICULUM_TARGET,
        }
        return [Run(kind, (task,), changes) for task in tasks]
    return [Run(kind, (task,), is_shuffled=kind == "shuffled") for task in tasks]


def settings_of(
    tasks: tuple[str, ...],
    seed: int,
    options: argparse.Namespace,
    changes: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the settings of the environment that are the same for all its commands.

    Args:
        tasks: Their names.
        seed: Of the items that are asked in training.
        options: The command line.
        changes: Settings that differ.
    """
    return {
        "tasks": list(tasks),
        "task_params": {t: dict(TASK_PARAMS[t]) for t in tasks if t in TASK_PARAMS},
        "complexity_mode": None,
        "seed": seed,
        "num_eval_samples_per_task": options.held_out,
        "system_prompt": SYSTEM_PROMPT,
        "max_token_length": options.max_tokens,
        "use_wandb": False,
        "num_workers": 1,
        "steps_per_eval": 0,
        **changes,
    }


def serving_settings(
    options: argparse.Namespace, api: str, folder: Path
) -> dict[str, Any]:
    """Return the further settings of `serve`.

    Args:
        options: The command line.
        api: URL of the Atropos API.
        folder: Of the run.
    """
    return {
        "rollout_server_url": api,
        "group_size": options.group_size,
        "batch_size": options.group_size * options.groups,
        "total_steps": WITHOUT_END,
        "max_num_workers": options.groups,
        "max_batches_offpolicy": 1,
        "min_batch_allocation": None,
        "data_dumps_dir": str(folder / "dumps"),
        "dump_rollouts": True,
        "dump_failed_rollouts": True,
        "rollout_save_score_threshold": 0.0,
    }


def write_settings(
    beside: Path, env: Mapping[str, Any], server_url: str | None = None
) -> Path:
    """Write a file for `--config`.

    Args:
        beside: The file is called as this, with `.yaml` at its end.
        env: Settings of the environment.
        server_url: Of an inference server; None where nothing is asked of one.

    Returns:
        The file.
    """
    given: dict[str, Any] = {"env": dict(env)}
    if server_url is not None:
        given["openai"] = {
            "base_url": f"{server_url}/v1",
            "model_name": MODEL_NAME,
            "server_type": "vllm",
        }
    path = beside.with_name(f"{beside.name}.yaml")
    path.write_text(yaml.safe_dump(given, sort_keys=False), encoding="utf-8")
    return path
