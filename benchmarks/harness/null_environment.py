"""An environment that makes, chooses and scores no item: what ours is bounded by.

    python benchmarks/harness/null_environment.py serve --env.x ...

Everything between Atropos' API and the inference server is the code of our
environment, and so is the command line. But there is one item, always the same, and
the scores are 1, 0, 1, 0, ... whatever the answers are. What our environment is
slower than this is what making, choosing and scoring items costs.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[2]))

from atroposlib.envs.base import ScoredDataGroup

from reasoning_gym_environment import Item, ReasoningGymEnv
from rg_env.scoring.prompt import SYSTEM_PROMPT, build_messages

QUESTION = f"What is {' + '.join(['2'] * 132)}?"
"""With the system prompt some 610 tokens, as our prompts have over all tasks at random
levels: what the API and the trainer take is as much."""

ENTRY = {
    "question": QUESTION,
    "answer": "264",
    "metadata": {"source_dataset": "null"},
}


MESSAGES = build_messages(QUESTION, SYSTEM_PROMPT)


class Unscored:
    """A dataset object whose scores nobody needs."""

    def score_answer(self, answer: str | None, entry: Mapping[str, Any]) -> float:
        """Raise, because nobody should call it."""
        raise AssertionError("the null environment scores no answer")


class NullEnv(ReasoningGymEnv):
    """One constant item, constant alternating scores."""

    name = "null"

    async def setup(self) -> None:
        """Start nothing."""

    async def get_next_item(self) -> Item:
        return MESSAGES, ENTRY, Unscored()

    async def score(
        self, rollout_group_data: Sequence[Mapping[str, Any]]
    ) -> ScoredDataGroup | None:
        rollouts = rollout_group_data
        return {
            "tokens": [rollout["tokens"] for rollout in rollouts],
            "masks": [rollout["masks"] for rollout in rollouts],
            "scores": [float(i % 2 == 0) for i in range(len(rollouts))],
            "overrides": [{} for _ in rollouts],
            "inference_logprobs": [rollout["logprobs"] for rollout in rollouts],
        }


if __name__ == "__main__":
    NullEnv.cli()
