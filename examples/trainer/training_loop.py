"""The training loop: hand the weights over, take a batch, take a step.

    the weights     to the inference server, which samples with them from then on
    a checkpoint    after every step, unless the plan says otherwise
    a batch         from the Atropos API, whose groups `serve` has made meanwhile
    a step          down the gradient of its loss; see grpo.py

The environment samples the next batch while this one is trained on, so some or all of
its groups are of the weights of a step ago: that is what the ratio is for.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from examples.trainer.batches import BatchSource
from examples.trainer.checkpoints import Checkpoints
from examples.trainer.grpo import Batch, Measures
from examples.trainer.policy import Policy, TrainingError
from examples.trainer.vllm_weights import VllmWeights

logger = logging.getLogger(__name__)

WARMUP_STEPS = 20
"""The learning rate rises in so many: an optimiser's moments say nothing at first."""

MAX_FOREIGN_BATCHES = 8
"""So many may lie ready at the API from before a start that goes on."""


class EndedError(Exception):
    """The user has ended the training; raised between two steps only."""


@dataclass(frozen=True)
class Plan:
    """How a training goes.

    Attributes:
        steps: Batches to take, those of an earlier start included.
        learning_rate: The highest, above 0.
        clip: Of the ratio, above 0.
        most_kl: A batch whose approximate KL divergence is above this was sampled by
            another policy, and is not trained on. In nats a token.
        checkpoint_every: In steps, at least 1.
    """

    steps: int
    learning_rate: float
    clip: float = 0.2
    most_kl: float = 0.1
    checkpoint_every: int = 1

    def learning_rate_of(self, number: int) -> float:
        """Return that of a step, counted from 1.

        It rises in `WARMUP_STEPS`, and falls towards 0 from half of the way on, so that
        what is left at the end is not the noise of the last batches.
        """
        falling = 2 * (self.steps - number + 1) / self.steps
        return self.learning_rate * min(number / WARMUP_STEPS, falling, 1.0)


@dataclass(frozen=True)
class Step:
    """What a step was.

    Attributes:
        number: From 1.
        measures: Of its batch.
        entropy: Mean of the policy's where it chose the trained tokens, in nats.
        norm: Of the gradient, before it was scaled down.
        waited_s: For the hand-over and the batch.
        trained_s: Forward, backward and step.
    """

    number: int
    measures: Measures
    entropy: float
    norm: float
    waited_s: float
    trained_s: float

    def as_row(self) -> dict[str, float]:
        """Return it as a line of the history."""
        row = {"number": self.number, **vars(self.measures), **vars(self)}
        return {name: value for name, value in row.items() if name != "measures"}

    def __str__(self) -> str:
        """Say it in a line."""
        m = self.measures
        return (
            f"reward {m.reward:.3f}, loss {m.loss:+.4f}, entropy {self.entropy:.3f},"
            f" length {m.length:.1f}, clipped {m.clipped:.1%}, truncated"
            f" {m.truncated:.1%}, KL {m.kl:.1e}, gradient {self.norm:.2f},"
            f" {m.tokens} tokens, {self.waited_s + self.trained_s:.1f} s"
        )


def train(
    policy: Policy,
    source: BatchSource,
    server: VllmWeights,
    plan: Plan,
    checkpoints: Checkpoints,
    *,
    tell: Callable[[Step], None] = lambda step: None,
) -> None:
    """Train from the newest checkpoint to the end of the plan.

    Args:
        policy: Is trained; without a checkpoint it begins as it is.
        source: Of batches.
        server: Samples for the environment.
        plan: How it goes.
        checkpoints: Of this training.
        tell: Told of every step.

    Raises:
        EndedError: Of `source` or `server`.
        TrainingError: It cannot go on. The steps that were done are kept in both cases.
    """
    done = checkpoints.load(policy)
    try:
        while True:
            began = time.monotonic()
            server.hand_over(policy)
            if done % plan.checkpoint_every == 0 or done >= plan.steps:
                checkpoints.save(policy, done)
            if done >= plan.steps:
                return
            step = _step(policy, source, plan, done + 1, began)
            checkpoints.note(step.as_row())
            done = step.number
            tell(step)
    except (EndedError, TrainingError):
        if done:
            checkpoints.save(policy, done)
        raise


def _step(
    policy: Policy, source: BatchSource, plan: Plan, number: int, began: float
) -> Step:
    """Take the next batch that this policy sampled, and a step."""
    for _ in range(MAX_FOREIGN_BATCHES):
        batch = Batch(source.next_batch(number - 1), plan.clip)
        came = time.monotonic()
        if not batch.tokens:
            logger.warning("a batch has no token to train on: all were truncated")
            continue
        entropy = policy.backward(
            batch.rows, batch.trained, batch.derivative, batch.temperatures
        )
        measures = batch.measures()
        if measures.kl <= plan.most_kl:
            return Step(
                number,
                measures,
                entropy=entropy,
                norm=policy.step(plan.learning_rate_of(number)),
                waited_s=came - began,
                trained_s=time.monotonic() - came,
            )
        logger.warning(
            "a batch is left out: another policy has sampled it (KL %.3g)", measures.kl
        )
    raise TrainingError(
        f"{MAX_FOREIGN_BATCHES} batches were of no use: the inference server samples"
        " with other weights than the trainer has, its token ids and log-probabilities"
        " do not belong together, or all completions are truncated"
    )
