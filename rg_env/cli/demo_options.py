"""The options of `demo`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from rg_env.cli import option_types
from rg_env.cli.sentence_parser import SentenceParser
from rg_env.errors import SettingError

PROJECT = Path(__file__).resolve().parents[2]
MOST_STEPS = 1_000_000
MOST_ROLLOUTS = 4096
"""Of a group and of a batch, which are held in memory at once."""

COMPARED = ": rewards are compared within a group, so one alone carries no signal"


def build_parser() -> SentenceParser:
    """Return the parser of the command."""
    parser = SentenceParser(
        prog="reasoning_gym_environment.py demo",
        description="Run the real Atropos API and the real environment over all tasks,"
        " with a simulated policy as the model and a stand-in trainer that trains"
        " nothing. No GPU, no account, no network.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add(
        "--steps",
        type=option_types.whole_number(1, MOST_STEPS),
        default=12,
        help="batches the trainer takes",
    )
    add(
        "--batch_size",
        type=option_types.whole_number(2, MOST_ROLLOUTS),
        default=64,
        help="rollouts in a batch, a multiple of --group_size",
    )
    add(
        "--group_size",
        type=option_types.whole_number(2, MOST_ROLLOUTS, COMPARED),
        default=8,
        help="rollouts of an item",
    )
    add("--seed", type=option_types.seed, default=1918, help="decides the items")
    add(
        "--latency_ms",
        type=option_types.number(0.0, option_types.LONGEST_LATENCY_MS),
        default=100.0,
        help="of the simulated server",
    )
    add(
        "--complexity_mode",
        type=option_types.level_setting,
        default="random",
        help="difficulty: None, random, curriculum, a level in 0 to 1 or a range"
        " [low, high]",
    )
    add(
        "--dumps",
        type=option_types.writable_folder,
        default=str(PROJECT / "data_dumps"),
        help="folder of the dump files",
    )
    return parser


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Parse the command line.

    Raises:
        SettingError: What is wrong with it.
        SystemExit: It asked for help, which is printed.
    """
    options = build_parser().parse(argv)
    if options.batch_size % options.group_size:
        raise SettingError(
            f"command line: --batch_size {options.batch_size} is no multiple of"
            f" --group_size {options.group_size}, so the API would make no batch"
        )
    return options
