"""The reward function of verl for the items of `export items --format verl`.

    reward.custom_reward_function.path=FOLDER/compute_score.py

In verl, each completion needs a score. If scoring fails, it is retried, and then raises
an error. verl then ends the step, or goes on without the completion.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from rg_env.errors import RunError
from rg_env.stream.completion_scores import UNMATCHED, score
from rg_env.stream.item import Item

MAX_TRIES = 4
RETRY_PAUSE_S = 0.5


def compute_score(
    data_source: str,
    solution_str: str,
    ground_truth: str | None,
    extra_info: Mapping[str, Any],
    *,
    thinking_open: bool = False,
    task_modules: str | Sequence[str] = (),
    **others: Any,
) -> dict[str, float | str]:
    """Return the score of a completion; verl may call it from any thread.

    Args:
        data_source: `reasoning_gym/` and the task; not used.
        solution_str: The completion.
        ground_truth: The reference answer; not used.
        extra_info: `item` is the JSON of the item.
        thinking_open: Whether the chat template ends the prompt with `<think>`.
        task_modules: Names or paths of modules of a user's own tasks.
        others: Further arguments of verl; not used.

    Returns:
        `score` in [0, 1], `right` (1.0 if `score` is 1.0, otherwise 0.0), `outcome` and
        `Result.parts`.
        There is no `acc`, because with it verl counts a lost completion as 0.

    Raises:
        RunError: There is no score.
    """
    item = Item.from_json(extra_info["item"], task_modules)
    for tries in range(1, MAX_TRIES + 1):
        (result,) = score(item, [solution_str], thinking_open=thinking_open)
        if result.value is not None:
            return {
                "score": result.value,
                "right": float(result.value == 1.0),
                "outcome": result.outcome,
                **result.parts,
            }
        if result.outcome == UNMATCHED or tries == MAX_TRIES:
            break
        time.sleep(RETRY_PAUSE_S * tries)
    raise RunError(f"{item.task}: {result.outcome}: {result.reason}")
