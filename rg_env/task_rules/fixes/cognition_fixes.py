"""Fixes of the category cognition.

Not corrected, because nothing was found: color_cube_rotation and needle_haystack, which
pay for the right answer alone.
"""

from __future__ import annotations

import re

from rg_env.task_rules.scorer_fix import Entry, LibraryScore, ScorerFix

_TURN = re.compile(r"(?:[LRDUBF]w?|[XYZMES])'?[0-9]{0,2}")


def _every_turn(answer: str, entry: Entry, library: LibraryScore) -> float:
    """Score rubiks_cube if the library makes every turn: nothing is passed over."""
    return library(answer) if all(map(_TURN.fullmatch, answer.split())) else 0.0


def _right_count(answer: str, entry: Entry, library: LibraryScore) -> float:
    """Score rectangle_count: a count that is nearly right is wrong.

    The library pays 0.64 for one too many or too few, 0.16 for four, so that a number
    from the middle earns 0.45 at the defaults and 0.67 where there are 5 at most.
    """
    value = library(answer)
    return value if value == 1.0 else 0.0


def _one_too_many(entry: Entry) -> str:
    return str(int(entry["answer"]) + 1)


def _one_word(answer: str, entry: Entry, library: LibraryScore) -> float:
    """Score figlet_font: one word, spaced out or not, and no longer than the right one.

    Letters behind the right word cost what they would be of the whole.
    """
    words = answer.split()
    if len(words) > 1 and any(len(word) > 1 for word in words):
        return 0.0
    too_long = sum(map(len, words)) / max(1, len(entry["answer"].strip()))
    return library(answer) / max(1.0, too_long)


FIXES: tuple[ScorerFix, ...] = (
    ScorerFix(
        task="figlet_font",
        scorer_sha256="753e689ec4b86e0104e809b4a4fbd24d446b2a500fbd2c15309fe55541f3bdbb",
        fault="Pays for every right letter, whatever follows the word.",
        proof=lambda entry: f"{entry['answer']} or another",
        proof_pays=0.3,
        score=_one_word,
    ),
    ScorerFix(
        task="rectangle_count",
        scorer_sha256="419a82adc99f105123f8472bbd6a261aa1704e3d51ae9b3e292da37260a71601",
        fault="Pays for a count that is off by up to four, so that a number from the"
        " middle earns 0.45.",
        proof=_one_too_many,
        proof_pays=0.6,
        score=_right_count,
    ),
    ScorerFix(
        task="rubiks_cube",
        scorer_sha256="595c908d5970e222d5531cf03d315c8558168b7e2e0cf321c16bf71fd2246580",
        fault="Passes over numbers that stand alone and turns like `2R` and `U2'`.",
        proof=lambda entry: f"{entry['metadata']['example_correct_answer']} 42",
        proof_pays=1.0,
        score=_every_turn,
    ),
)
