"""What the training loop needs of a model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np

Rows = Sequence[Sequence[int]]
"""Token ids, prompt and completion together; rows of different lengths."""

Derivative = Callable[[Sequence[int], np.ndarray], np.ndarray]
"""From the indices of some rows and the log-probabilities of their trained tokens, row
after row, to the derivative of the loss by each of these; float64, shapes (N,)."""


class TrainingError(RuntimeError):
    """What ended the training; its text is one sentence that says what to do."""


class Policy(Protocol):
    """A model that is trained."""

    def backward(
        self,
        rows: Rows,
        trained: Sequence[np.ndarray],
        derivative: Derivative,
        temperatures: Sequence[float] | None = None,
    ) -> float:
        """Compute the gradient of a loss, in one forward and one backward pass.

        Args:
            rows: Token ids.
            trained: As long as the rows, bool; False for each first token.
            derivative: Called once for each micro-batch; each row is in one of them.
            temperatures: Above 0, one a row, by which its logits are divided.

        Returns:
            The mean entropy of the policy where it chose the trained tokens, in nats.
        """
        ...

    def step(self, learning_rate: float) -> float:
        """Take an optimiser step down that gradient; return its norm, unclipped."""
        ...

    def save_weights(self, folder: Path) -> None:
        """Write the weights as the inference server reads them."""
        ...

    def save(self, folder: Path) -> None:
        """Write all that the next step depends on."""
        ...

    def load(self, folder: Path) -> None:
        """Take what was saved; weights alone begin with a new optimiser."""
        ...
