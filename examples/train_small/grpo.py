"""From the groups of a batch to one weight for every token: GRPO, in numpy.

A policy's step then goes up the sum of weight x log-probability. A weight is the
derivative of the objective by that token's log-probability, so that is the exact
gradient, whatever the policy is made of. The objective is the mean over the trained
tokens of a batch of

    min(ratio x advantage, clip(ratio) x advantage) - kl_weight x distance

with ratio = exp(log-probability now - log-probability when it was sampled), and the
distance to a reference, if there is one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from examples.train_small.batches import Group

SAME = 1e-6
"""Scores of a group whose standard deviation is below this are equal."""


@dataclass(frozen=True)
class Objective:
    """What is maximised.

    Attributes:
        clip: A token whose ratio is further from 1 than this, on the side that its
            advantage asks for, has no weight; above 0.
        kl_weight: Of the distance to the reference, at least 0; 0 needs none.
    """

    clip: float = 0.2
    kl_weight: float = 0.0


@dataclass(frozen=True)
class Ratios:
    """The importance ratios of a batch's trained tokens.

    While the weights are those that sampled, they are 1 to the precision of the two
    programs. So they are the check that token ids, masks and log-probabilities are
    right: a shift by one token shows at once.

    Attributes:
        mean: About 1 whatever the weights are, if they sampled from all tokens.
        apart: Mean size of a ratio's logarithm, in nats: how far the weights are from
            those that sampled. 0 if they are the same.
        furthest: The largest distance of a ratio from 1.
        clipped: Share of the tokens that the clip leaves without a weight, in 0 to 1.
    """

    mean: float
    apart: float
    furthest: float
    clipped: float


@dataclass(frozen=True)
class Update:
    """What a batch asks of the policy.

    Attributes:
        weights: One array for each rollout, as long as its row.
        objective: Its value before the step.
        ratios: Their statistics.
        kl: Mean distance to the reference, at least 0; 0 without one.
        tokens: Trained ones of the batch.
    """

    weights: list[np.ndarray]
    objective: float
    ratios: Ratios
    kl: float
    tokens: int


def advantages(group: Group) -> np.ndarray:
    """Return each rollout's distance from its group's mean score.

    Returns:
        Shape (G,), in standard deviations of the group; 0 where all scores are equal,
        and for rollouts whose `overrides` say so. Those still count for the mean.
    """
    spread = group.scores.std()
    if spread < SAME:
        return np.zeros_like(group.scores)
    normalised = (group.scores - group.scores.mean()) / spread
    return np.where(group.has_zero_advantage, 0.0, normalised)


def update_of(
    groups: Sequence[Group],
    now: Sequence[np.ndarray],
    objective: Objective,
    reference: Sequence[np.ndarray] | None = None,
) -> Update:
    """Weigh every token of a batch.

    Args:
        groups: Of the batch.
        now: The policy's log-probabilities for each rollout's row, group after group.
        objective: What is maximised.
        reference: Those of the policy that is to stay near; needed where `kl_weight`
            is above 0.

    Returns:
        The weights, and what they were made of.

    Raises:
        ValueError: The rows do not fit, no token is trained, or `reference` is missing.
    """
    if objective.kl_weight and reference is None:
        raise ValueError("a KL term needs the log-probabilities of a reference")
    trained = [mask for group in groups for mask in group.trained]
    sampled = [values for group in groups for values in group.logprobs]
    advantage = np.concatenate([advantages(group) for group in groups])
    count = sum(int(mask.sum()) for mask in trained)
    if not count:
        raise ValueError("no token of this batch is trained on")

    # Every trained token of the batch in one array.
    of_row = np.repeat(advantage, [int(mask.sum()) for mask in trained])
    logprob = _chosen(now, trained)
    log_ratio = logprob - _chosen(sampled, trained)
    ratio = np.exp(log_ratio)
    clipped = np.clip(ratio, 1 - objective.clip, 1 + objective.clip)
    gain = np.minimum(ratio * of_row, clipped * of_row)
    is_cut = gain < ratio * of_row
    weight = np.where(is_cut, 0.0, ratio * of_row)
    distance = np.zeros_like(weight)
    if objective.kl_weight and reference is not None:
        # exp(d) - d - 1 with d = reference - now: never negative, and its mean over
        # what the policy samples is the KL divergence.
        away = _chosen(reference, trained) - logprob
        distance = np.expm1(away) - away
        weight = weight + objective.kl_weight * np.expm1(away)
    return Update(
        weights=_rows_of(weight / count, trained),
        objective=float((gain - objective.kl_weight * distance).mean()),
        ratios=Ratios(
            mean=float(ratio.mean()),
            apart=float(np.abs(log_ratio).mean()),
            furthest=float(np.abs(ratio - 1).max()),
            clipped=float(is_cut.mean()),
        ),
        kl=float(distance.mean()),
        tokens=count,
    )


def _chosen(rows: Sequence[np.ndarray], trained: Sequence[np.ndarray]) -> np.ndarray:
    """Return the values of the trained tokens, row after row, in double precision."""
    pairs = zip(rows, trained, strict=True)
    return np.concatenate([row[mask] for row, mask in pairs]).astype(np.float64)


def _rows_of(values: np.ndarray, trained: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Return rows with these values where a token is trained, and 0 elsewhere."""
    rows = [np.zeros(len(mask), np.float32) for mask in trained]
    ends = np.cumsum([int(mask.sum()) for mask in trained])
    parts = np.split(values, ends[:-1])
    for row, mask, part in zip(rows, trained, parts, strict=True):
        row[mask] = part
    return rows
