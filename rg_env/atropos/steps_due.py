"""What is due when the trainer's step has changed. Pure.

Mends B5 of docs/host_defects.md: a comparison of remainders misses steps.
"""

from __future__ import annotations

import dataclasses


def passed(interval: int, before: int, now: int) -> bool:
    """Say whether a multiple of the interval lies in (before, now]; 0 has none.

    An API that was restarted begins anew: its steps pass nothing on their way back.
    """
    return interval > 0 and now // interval > before // interval


@dataclasses.dataclass(frozen=True)
class StepsDue:
    """What is due.

    Attributes:
        evaluation: Whether an evaluation is.
        checkpoint: The step whose checkpoint is, None for none.
    """

    evaluation: bool
    checkpoint: int | None


def steps_due(
    before: int, now: int, *, evaluate_every: int, save_every: int
) -> StepsDue:
    """Return what is due between two steps; an interval of 0 or less is never."""
    is_saved = passed(save_every, before, now)
    return StepsDue(
        evaluation=passed(evaluate_every, before, now),
        checkpoint=now // save_every * save_every if is_saved else None,
    )
