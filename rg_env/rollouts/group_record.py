"""One line of a dump: a group with all that explains and regenerates it.

    {"schema_version": 1,
     "item_id": "gcd",
     "rollouts": [{"conversation": [{"role": "system", "content": "..."},
                                    {"role": "user", "content": "..."},
                                    {"role": "assistant", "content": "..."}],
                   "score": 1.0, "reward": 1.0, "outcome": "right", "answer": "4",
                   "finish_reason": "stop", "prompt_tokens": 181,
                   "completion_tokens": 96, "normalized": false,
                   "formats": {"bare": 1.0, "tagged": null}}],
     "task": "gcd", "split": "train", "index": 17, "seed": 1804289383, "level": null,
     "params": {}, "gold_answer": "4",
     "versions": {"reasoning_gym": "0.1.25", "atroposlib": "0.4.0"},
     "time": "2026-01-31T12:00:00+00:00"}

`item_id` and `rollouts[].conversation` / `.score` are what the original wrote. `score`
is the task's score; `reward` is what the trainer got after shaping. Where guessing
scores something and the rewards leave it out, `baseline` says how much. The entry is
`create_dataset(task, seed=seed, size=1, **params)[0]`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

SCHEMA_VERSION = 1

CORRECT_FROM_SCORE = 0.5
"""A rollout counts as correct from this score on.

Source: atropos 296a0bc, score(), percent_correct_buffer; differs: none.
"""


@dataclasses.dataclass(frozen=True)
class RolloutRecord:
    """One rollout as it is dumped.

    Attributes:
        conversation: Messages with role and content, the completion last.
        score: The task's score, in [0, 1].
        reward: The score after shaping, in [0, 1].
        answer: The extracted answer, None where there was none.
        normalized: The answer counts normalized, which is another text.
        formats: Its scores "bare" and "tagged", None where none was called.
    """

    conversation: Sequence[Mapping[str, str]]
    score: float
    reward: float
    outcome: str
    answer: str | None
    finish_reason: str | None
    prompt_tokens: int
    completion_tokens: int
    normalized: bool = False
    formats: Mapping[str, float | None] | None = None


@dataclasses.dataclass(frozen=True)
class Provenance:
    """What makes an item of ours again; its fields stand in a line in this order.

    `index` is global in its split, "train" or "evaluation", and `level` is None for the
    library's default parameters, from which `params` differ.
    """

    split: str
    index: int
    seed: int
    level: float | None
    params: Mapping[str, Any]


@dataclasses.dataclass(frozen=True)
class GroupRecord:
    """The rollouts of one item, shape (G,), with the item's provenance.

    The gold answer is None where there are many, the provenance for an item from
    outside; the baseline is what guessing scores and the rewards leave out.
    """

    task: str
    rollouts: Sequence[RolloutRecord]
    gold_answer: Any
    provenance: Provenance | None
    baseline: float = 0.0

    @property
    def origin(self) -> dict[str, Any]:
        """The fields of the provenance by name; empty for an item from outside."""
        return {} if self.provenance is None else dict(vars(self.provenance))

    @property
    def level(self) -> float | None:
        """The level that made the item, in [0, 1]; None if no level did."""
        return None if self.provenance is None else self.provenance.level

    @property
    def scores(self) -> list[float]:
        """The task's scores, shape (G,)."""
        return [rollout.score for rollout in self.rollouts]

    @property
    def rewards(self) -> list[float]:
        """What the trainer got, shape (G,)."""
        return [rollout.reward for rollout in self.rollouts]

    @property
    def correct(self) -> list[float]:
        """1.0 for a rollout that counts as correct, 0.0 for another, shape (G,)."""
        return [float(score >= CORRECT_FROM_SCORE) for score in self.scores]

    @property
    def mean_score(self) -> float:
        """The mean of the scores, in [0, 1]."""
        return sum(self.scores) / len(self.rollouts)

    @property
    def is_failed(self) -> bool:
        """Whether every score is exactly 0.0."""
        return not any(self.scores)

    def line(self, versions: Mapping[str, str], time: str) -> dict[str, Any]:
        """Return the line of the dump, as plain values."""
        baseline = {"baseline": self.baseline} if self.baseline else {}
        return {
            "schema_version": SCHEMA_VERSION,
            "item_id": self.task,
            "rollouts": [dataclasses.asdict(rollout) for rollout in self.rollouts],
            "task": self.task,
            **self.origin,
            "gold_answer": self.gold_answer,
            **baseline,
            "versions": dict(versions),
            "time": time,
        }


def is_worth_keeping(scores: Sequence[float], threshold: float) -> bool:
    """Say whether a group is saved as successful.

    A rollout must score above the threshold; since no score exceeds 1.0, a threshold
    of 1.0 means "perfect".

    Source: atropos 296a0bc, collect_trajectories(); differs: a group in which all are
    right is saved too, and a threshold of 1.0 can be met.
    """
    return max(scores) > threshold or max(scores) >= 1.0
