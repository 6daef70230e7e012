"""The training loop: batches of groups in, steps of the policy out.

    a batch         from the Atropos API, whose groups serve has made meanwhile
    its update      what grpo.py makes of it
    a step          of the policy
    the new weights to the inference server
    a checkpoint    now and then

The environment generates the next batch while this one is trained on, so some or all of
its groups were sampled with the weights of the step before: that is what the ratio is
for.
"""

from __future__ import annotations

import dataclasses
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np

from examples.train_small.batches import BatchSource, Group
from examples.train_small.grpo import Objective, Ratios, update_of
from examples.train_small.policy import Policy, rising
from examples.train_small.whole_files import as_line, read_rows, write_whole

HISTORY = "history.jsonl"


class WeightTaker(Protocol):
    """An inference server."""

    def hand_over(self, policy: Policy) -> float:
        """Have it go on with these weights; return how many seconds it took."""


@dataclass(frozen=True)
class Plan:
    """How a run goes.

    Attributes:
        steps: Batches to take, those of an earlier start included.
        learning_rate: The highest, above 0.
        objective: What is gone up.
        is_shuffled: Whether rewards are dealt out anew within each batch, which leaves
            nothing to learn: the control.
        seed: Decides how they are dealt out.
        checkpoint_every: In steps, at least 1.
    """

    steps: int
    learning_rate: float = 1e-4
    objective: Objective = field(default_factory=Objective)
    is_shuffled: bool = False
    seed: int = 0
    checkpoint_every: int = 20

    def learning_rate_of(self, number: int) -> float:
        """Return that of a step, counted from 1.

        It rises in `RISING_STEPS`, and falls towards 0 from half of the run on, so that
        what is left at its end is not the noise of the last batches.
        """
        falling = 2 * (self.steps - number + 1) / self.steps
        return self.learning_rate * min(rising(number), falling)


@dataclass(frozen=True)
class Step:
    """What a step was.

    Attributes:
        number: From 1.
        reward: Mean score of the batch, as the environment gave it.
        loss: The objective with its sign turned.
        norm: Of the gradient, before it was clipped.
        ratios: Of the trained tokens.
        kl: Mean distance to the reference, 0 without one.
        tokens: Generated ones of the batch.
        waited_s: For the batch.
        trained_s: Forward, backward and step.
        handed_over_s: The server's taking of the weights.
    """

    number: int
    reward: float
    loss: float
    norm: float
    ratios: Ratios
    kl: float
    tokens: int
    waited_s: float
    trained_s: float
    handed_over_s: float


class Checkpoints:
    """The newest state of a run, in a folder.

    Args:
        folder: For `step-N` and the history of the steps up to it.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def step(self) -> int:
        """Steps done at the newest one; 0 without any."""
        return max((int(p.name.removeprefix("step-")) for p in self._all()), default=0)

    def load(self, policy: Policy) -> int:
        """Give a policy the newest state, if there is one; return its step."""
        step = self.step
        if step:
            policy.load(self._at(step))
        history = self._folder / HISTORY
        self._folder.mkdir(parents=True, exist_ok=True)
        # Steps after the checkpoint are done again.
        kept = [row for row in read_rows(history) if row["number"] <= step]
        write_whole(history, "".join(map(as_line, kept)))
        return step

    def note(self, step: Step) -> None:
        """Add a step to the history."""
        with (self._folder / HISTORY).open("a", encoding="utf-8") as history:
            history.write(as_line(dataclasses.asdict(step)))

    def save(self, policy: Policy, step: int) -> None:
        """Keep a state; the one before goes when it is whole."""
        unfinished = self._folder / "unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        policy.save(unfinished, with_optimiser=True)
        old = self._all()
        unfinished.replace(self._at(step))
        for folder in old:
            shutil.rmtree(folder)

    def _at(self, step: int) -> Path:
        return self._folder / f"step-{step:06d}"

    def _all(self) -> list[Path]:
        return list(self._folder.glob("step-*"))


def train(
    policy: Policy,
    source: BatchSource,
    server: WeightTaker,
    plan: Plan,
    checkpoints: Checkpoints,
    *,
    reference: Policy | None = None,
    tell: Callable[[Step], None] = lambda step: None,
) -> None:
    """Train from the newest checkpoint to the end of the plan.

    Args:
        policy: Has the state of that checkpoint, and so has the server.
        source: Is registered.
        server: Generates for the environment.
        plan: How it goes.
        checkpoints: Of this run.
        reference: The policy that training began with, for the KL term.
        tell: Told of every step.
    """
    for number in range(checkpoints.step + 1, plan.steps + 1):
        policy.learning_rate = plan.learning_rate_of(number)
        began = time.monotonic()
        groups = source.next_batch()
        came = time.monotonic()
        reward = float(np.mean([group.scores.mean() for group in groups]))
        if plan.is_shuffled:
            groups = dealt_anew(groups, np.random.default_rng([plan.seed, number]))
        rows = [row for group in groups for row in group.tokens]
        trained = [mask for group in groups for mask in group.trained]
        update = update_of(
            groups,
            policy.log_probabilities(rows, trained),
            plan.objective,
            None if reference is None else reference.log_probabilities(rows, trained),
        )
        norm = policy.step(rows, update.weights)
        stepped = time.monotonic()
        handed_over_s = server.hand_over(policy)
        step = Step(
            number=number,
            reward=reward,
            loss=-update.objective,
            norm=norm,
            ratios=update.ratios,
            kl=update.kl,
            tokens=update.tokens,
            waited_s=came - began,
            trained_s=stepped - came,
            handed_over_s=handed_over_s,
        )
        tell(step)
        checkpoints.note(step)
        if number % plan.checkpoint_every == 0 or number == plan.steps:
            checkpoints.save(policy, number)


def dealt_anew(groups: Sequence[Group], rng: np.random.Generator) -> list[Group]:
    """Return the groups with all scores of the batch dealt out anew."""
    scores = rng.permutation(np.concatenate([group.scores for group in groups]))
    ends = np.cumsum([len(group.scores) for group in groups])[:-1]
    return [
        dataclasses.replace(group, scores=part)
        for group, part in zip(groups, np.split(scores, ends), strict=True)
    ]
