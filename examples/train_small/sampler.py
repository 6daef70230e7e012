"""What the small server and the warm start need of a model, whatever it is made of."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from examples.trainer.policy import Rows

Sample = tuple[list[int], list[float]]
"""The token ids of a completion, and the log-probability each was sampled with."""


class Sampler(Protocol):
    """A model that completes prompts."""

    def sample(
        self,
        prompts: Rows,
        max_tokens: int,
        temperature: float,
        stop_ids: frozenset[int],
        seed: int,
    ) -> list[Sample]:
        """Complete every prompt once.

        Args:
            prompts: Token ids, at least one in each.
            max_tokens: Tokens of a completion at most, at least 1.
            temperature: 0 takes the likeliest token.
            stop_ids: A completion ends with the first of these, which belongs to it.
            seed: Equal calls with equal seeds have equal results.

        Returns:
            A completion for each prompt; its log-probabilities are those at
            temperature 1.
        """
        ...

    def load(self, folder: Path) -> None:
        """Take the weights of a folder."""
        ...
