"""The command line of train_small.py."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from examples.train_small import recipe
from rg_env.installation import PROJECT

HEAD_WIDTH = 32
"""Of a model that is made: its width is some heads."""

LEAST = {
    "conversations": 1000,
    "group_size": 2,
    "groups": 1,
    "held_out": 2,
    "layers": 1,
    "max_tokens": 64,
    "steps": 1,
    "warm_steps": 1,
    "width": HEAD_WIDTH,
}
"""Below these there is nothing to learn from, or nothing that learns."""


def _names(text: str) -> tuple[str, ...]:
    return tuple(filter(None, text.split(",")))


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def read_options(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line, or end the process with a sentence.

    Args:
        argv: None for that of this process.
    """
    parser = argparse.ArgumentParser(
        prog="train_small.py",
        description="Train a small model from scratch on this environment.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    add = parser.add_argument
    work, kinds = PROJECT / "data" / "train_small", get_args(recipe.RunKind)
    add("--work", type=Path, default=work, help="folder for all that is made")
    add("--tasks", type=_names, default="spell_backward", help="with commas between")
    add("--seeds", type=_numbers, default="0", help="one model each")
    add("--runs", type=_names, default="grpo", help=f"of {', '.join(kinds)}")
    add("--server", choices=("small", "vllm"), default="small", help="of inference")
    add("--width", type=int, default=128, help="of the model")
    add("--layers", type=int, default=4, help="of the model")
    add("--conversations", type=int, default=8_000, help="of a warm start")
    add("--warm-steps", type=int, default=3_000, help="of a warm start at most")
    add("--warm-target", type=float, default=0.4, help="share of right answers")
    add("--steps", type=int, default=160, help="of a run")
    add("--groups", type=int, default=16, help="of a batch")
    add("--group-size", type=int, default=8, help="rollouts of an item")
    add("--learning-rate", type=float, default=3e-4, help="the highest of a run")
    add("--max-tokens", type=int, default=256, help="of a prompt and its completion")
    add("--held-out", type=int, default=1000, help="evaluation items of a task")
    add(
        "--plugin-python",
        type=Path,
        default=PROJECT / ".venv" / "bin" / "python",
        help="of the environment that this project is installed in",
    )
    options = parser.parse_args(argv)
    if unknown := set(options.runs) - set(kinds):
        parser.error(f"--runs knows {', '.join(kinds)}, not {', '.join(unknown)}")
    for name, least in LEAST.items():
        if (found := getattr(options, name)) < least:
            parser.error(f"--{name.replace('_', '-')} is at least {least}, not {found}")
    if options.width % HEAD_WIDTH:
        parser.error(f"--width is a multiple of {HEAD_WIDTH}, not {options.width}")
    return options
