"""What the training loop needs of a model, whatever it is made of."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np

Rows = Sequence[Sequence[int]]
"""Token ids, prompt and completion together; rows of different lengths."""

MODEL_NAME = "policy"
"""What it is called in requests to a server of ours."""

Sample = tuple[list[int], list[float]]
"""The token ids of a completion, and the log-probability each was drawn with."""


class Policy(Protocol):
    """A model that samples, says how likely tokens are, and takes steps.

    Attributes:
        learning_rate: Of the next step; has to be set before it.
    """

    learning_rate: float

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
            temperature 1, of the uncut distribution.
        """
        ...

    def log_probabilities(
        self, rows: Rows, chosen: Sequence[np.ndarray] | None = None
    ) -> list[np.ndarray]:
        """Say how likely tokens are, given those before them.

        Args:
            rows: Token ids.
            chosen: As long as the rows, bool: which tokens; None for all.

        Returns:
            float32 arrays as long as the rows; 0 for the first token of each, and for
            those that were not chosen.
        """
        ...

    def step(self, rows: Rows, weights: Sequence[np.ndarray]) -> float:
        """Take one optimiser step up the sum of weight x log-probability.

        Args:
            rows: Token ids.
            weights: As long as the rows; a weight of 0 leaves a token out.

        Returns:
            The norm of the gradient before it was clipped.
        """
        ...

    def save(self, folder: Path, *, with_optimiser: bool = False) -> None:
        """Write the weights as an inference server reads them.

        Args:
            folder: Made where it is not there; files in it are written over.
            with_optimiser: Whether what is needed to continue training is written too.
        """
        ...

    def load(self, folder: Path) -> None:
        """Take weights that were saved, and the state of the optimiser if it is there.

        Without it the optimiser starts anew.
        """
        ...


RISING_STEPS = 20
"""The learning rate rises in so many: an optimiser's moments say nothing at first."""


def rising(number: int) -> float:
    """Return the share of the learning rate that a step takes, counted from 1."""
    return min(1.0, number / RISING_STEPS)


def save_whole(policy: Policy, folder: Path, *, with_optimiser: bool = False) -> None:
    """Save a policy so that each file is the old one or the new one at any moment.

    Args:
        policy: Is saved.
        folder: Made where it is not there; what else is in it stays.
        with_optimiser: Whether what the next step depends on is saved too.
    """
    new = folder.with_name(f"{folder.name}.new")
    policy.save(new, with_optimiser=with_optimiser)
    folder.mkdir(exist_ok=True)
    for file in sorted(new.iterdir()):
        file.replace(folder / file.name)
    new.rmdir()
