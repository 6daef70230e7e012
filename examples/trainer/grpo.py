"""GRPO: from the groups of a batch to the derivative of the loss, in numpy.

The loss is that of PPO with its clip, averaged over the T trained tokens of a batch,
whichever rollout they are of ("token mean"):

    loss = -1/T  sum over tokens  min(ratio * A, clip(ratio, 1 - c, 1 + c) * A)

    ratio = exp(log-probability now - log-probability when it was sampled)
    A     = (score - mean) / standard deviation of the group's scores (ddof 1)

Truncated rollouts, whose `overrides` set the advantage to zero, count for the mean and
the standard deviation of their group, and not among the T tokens. There is no KL term
and no entropy bonus.

A step needs the derivative of the loss by each log-probability,

    -ratio * A / T    or 0 where the clip holds,

and the chain rule from there to the weights, which is autograd's part
(`logprobs.backward(derivative)`). That gradient of the surrogate is exact, one forward
pass is enough for it, and this module needs no torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

SAME = 1e-6
"""Scores of a group whose standard deviation is below this are equal."""

MAX_LOG_RATIO = 20.0
"""Its size; the ratio of a token that is further away would leave no other one seen."""


@dataclass(frozen=True)
class Group:
    """Rollouts of one item.

    Attributes:
        tokens: G lists of token ids, prompt and completion together.
        trained: G arrays of bool, as long as the rows: which tokens were generated.
        logprobs: G arrays of float32, as long as the rows: the log-probability that
            each generated token was sampled with. Elsewhere they mean nothing.
        scores: Shape (G,), finite.
        has_zero_advantage: Shape (G,), bool: the environment wants this rollout not
            trained on; it was truncated.
        temperature: That it was sampled with, above 0.
    """

    tokens: list[list[int]]
    trained: list[np.ndarray]
    logprobs: list[np.ndarray]
    scores: np.ndarray
    has_zero_advantage: np.ndarray
    temperature: float = 1.0


@dataclass(frozen=True)
class Terms:
    """What the objective makes of N tokens; arrays of shape (N,).

    Attributes:
        loss: Of each token.
        derivative: Of that loss, by the log-probability now.
        log_ratio: Of the probability now to that when it was sampled.
        is_clipped: Whether the clip leaves it without a derivative.
    """

    loss: np.ndarray
    derivative: np.ndarray
    log_ratio: np.ndarray
    is_clipped: np.ndarray


def ppo_clip(
    now: np.ndarray, sampled: np.ndarray, advantage: np.ndarray, clip: float
) -> Terms:
    """Return PPO's clipped surrogate of N tokens, to be minimised."""
    log_ratio = np.clip(now - sampled, -MAX_LOG_RATIO, MAX_LOG_RATIO)
    ratio = np.exp(log_ratio)
    free = ratio * advantage
    held = np.clip(ratio, 1 - clip, 1 + clip) * advantage
    is_clipped = held < free
    return Terms(
        loss=-np.minimum(free, held),
        derivative=np.where(is_clipped, 0.0, -free),
        log_ratio=log_ratio,
        is_clipped=is_clipped,
    )


def advantages(scores: np.ndarray) -> np.ndarray:
    """Return how far each score of a group, NaN without one, lies from their mean.

    Returns:
        Shape (G,), in standard deviations of the group; 0 where all scores are equal,
        and for NaN.
    """
    known = scores[np.isfinite(scores)]
    spread = known.std(ddof=1) if len(known) > 1 else 0.0
    if spread < SAME:
        return np.zeros_like(scores)
    return np.nan_to_num((scores - known.mean()) / spread)


@dataclass(frozen=True)
class Measures:
    """What a batch was, and the loss before the step.

    Attributes:
        reward: Mean score of its rollouts, as the environment gave it.
        truncated: Share of the rollouts that were truncated, in 0 to 1.
        length: Mean tokens of a completion.
        tokens: Trained ones, T.
        loss: As above.
        kl: Approximate KL divergence from the policy that sampled to the one now, in
            nats a token, at least 0: the mean of ratio - 1 - log(ratio).
        clipped: Share of the tokens that the clip leaves without a derivative.
    """

    reward: float
    truncated: float
    length: float
    tokens: int
    loss: float
    kl: float
    clipped: float


class Batch:
    """The rows of some groups that are trained on.

    While the weights are those that sampled, all ratios are 1 to the precision of the
    two programs. So `Measures` shows at once where token ids, masks and
    log-probabilities do not belong together.

    Args:
        groups: Of the batch.
        clip: How far a ratio may go from 1, above 0.

    Attributes:
        rows: R lists of token ids.
        trained: R arrays of bool, as long as the rows.
        temperatures: Shape (R,).
        tokens: Trained ones, T.
    """

    def __init__(self, groups: Sequence[Group], clip: float = 0.2) -> None:
        self._groups = groups
        self._clip = clip
        picked = [
            (group, i, advantage)
            for group in groups
            for i, advantage in enumerate(advantages(group.scores))
            if not group.has_zero_advantage[i] and group.trained[i].any()
        ]
        self.rows = [group.tokens[i] for group, i, _ in picked]
        self.trained = [group.trained[i] for group, i, _ in picked]
        self.temperatures = [group.temperature for group, *_ in picked]
        self.tokens = sum(int(mask.sum()) for mask in self.trained)
        self._advantages = [advantage for *_, advantage in picked]
        self._sampled = [
            group.logprobs[i][group.trained[i]].astype(np.float64)
            for group, i, _ in picked
        ]
        self._terms: list[Terms] = []

    def derivative(self, places: Sequence[int], logprobs: np.ndarray) -> np.ndarray:
        """Return the derivative of the loss for some rows; see `policy.Derivative`."""
        sampled = [self._sampled[i] for i in places]
        lengths = [len(row) for row in sampled]
        advantage = np.repeat([self._advantages[i] for i in places], lengths)
        terms = ppo_clip(logprobs, np.concatenate(sampled), advantage, self._clip)
        self._terms.append(terms)
        return terms.derivative / self.tokens

    def measures(self) -> Measures:
        """Return what was measured, once each row had its derivative."""

        def joined(name: str) -> np.ndarray:
            return np.concatenate([getattr(terms, name) for terms in self._terms])

        log_ratio = joined("log_ratio")
        generated = [mask.sum() for group in self._groups for mask in group.trained]
        return Measures(
            reward=float(np.mean([group.scores.mean() for group in self._groups])),
            truncated=float(
                np.mean([group.has_zero_advantage.mean() for group in self._groups])
            ),
            length=float(np.mean(generated)),
            tokens=self.tokens,
            loss=float(joined("loss").mean()),
            kl=float((np.expm1(log_ratio) - log_ratio).mean()),
            clipped=float(joined("is_clipped").mean()),
        )
