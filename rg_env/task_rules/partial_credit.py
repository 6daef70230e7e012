"""What an answer that is not right scores: a half at most.

The library's scorers give a board with one wrong cell 0.99 and a word that stands where
it stood in the question its share. So a model that copies, or that is nearly right
each time, is rewarded almost like one that solves the items. In a corrected scorer a
wrong answer scores 0.5 at most, and nothing for what a copy of the question or a
constant has right as well.
"""

from __future__ import annotations

MOST_FOR_A_WRONG_ANSWER = 0.5


def partial_credit(share: float, without_solving: float = 0.0) -> float:
    """Return the score of a wrong answer.

    Args:
        share: How much of it is right, in [0, 1].
        without_solving: How much of a copy of the question or of a constant is right,
            in [0, 1].

    Returns:
        In [0, MOST_FOR_A_WRONG_ANSWER], linear in the share.
    """
    if share <= without_solving:
        return 0.0
    beyond = (share - without_solving) / (1.0 - without_solving)
    return MOST_FOR_A_WRONG_ANSWER * min(1.0, beyond)
