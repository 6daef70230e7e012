"""From the scores of a group to what the trainer gets. Pure, lists in, lists out.

A group keeps its size and its order in every step; `has_variance` says whether it is
worth sending.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

PENALTY_FROM_SCORE = 0.5
"""Long completions are penalised only if every score of the group is this high."""

PENALTY_FREE_SHARE = 0.75
"""Share of the length limit up to which a completion is never penalised."""


def above_baseline(scores: Sequence[float], baseline: float) -> list[float]:
    """Return rewards (s - b) / (1 - b), not below 0, for scores and a baseline.

    A score of 1 stays 1, and a score equal to the baseline becomes 0.

    Raises:
        ValueError: The baseline is outside of [0, 1).
    """
    if not 0.0 <= baseline < 1.0:
        raise ValueError(f"a baseline lies in [0, 1), found {baseline!r}")
    return [max(0.0, (score - baseline) / (1.0 - baseline)) for score in scores]


def penalise_length(
    scores: Sequence[float], lengths_tokens: Sequence[int], limit_tokens: int
) -> list[float]:
    """Scale down the scores of long completions in a group that is otherwise right.

    Args:
        scores: One value in [0, 1] per rollout, shape (G,).
        lengths_tokens: Length of each, shape (G,).
        limit_tokens: Longest allowed sequence; positive.

    Returns:
        New scores, shape (G,): unchanged up to 75 % of the limit, falling linearly to
        0 at the limit.

    Raises:
        ValueError: The two sequences differ in length.

    Source: atropos 296a0bc, score(), length penalty; differs: none.
    """
    if len(scores) != len(lengths_tokens):
        raise ValueError(f"{len(scores)} scores but {len(lengths_tokens)} lengths")
    if any(score < PENALTY_FROM_SCORE for score in scores):
        return list(scores)
    free_tokens = PENALTY_FREE_SHARE * limit_tokens
    return [
        score
        * min(1.0, max(0.0, (limit_tokens - length) / (limit_tokens - free_tokens)))
        for score, length in zip(scores, lengths_tokens, strict=True)
    ]


def truncation_overrides(
    finish_reasons: Sequence[str | None], *, mask_truncated: bool
) -> list[dict[str, Any]]:
    """Return one dict per rollout, shape (G,), for the trainer.

    A truncated one (`finish_reason` "length") says `set_advantage_to_zero`, so that
    the model is not taught by a completion it could not end; the others are empty.
    """
    return [
        {"set_advantage_to_zero": True} if mask_truncated and reason == "length" else {}
        for reason in finish_reasons
    ]


def has_variance(scores: Sequence[float]) -> bool:
    """Say whether the scores differ: equal ones give every rollout advantage zero."""
    return len(set(scores)) > 1
