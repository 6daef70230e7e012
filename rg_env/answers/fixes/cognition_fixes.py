"""Fixes of the category cognition.

Not corrected, because nothing was found: color_cube_rotation and needle_haystack, which
pay for the right answer alone, and rectangle_count.
"""

from __future__ import annotations

from rg_env.answers.fixes.scorer_fix import Entry, LibraryScore, ScorerFix


def _moves_without_numbers(answer: str, entry: Entry, library: LibraryScore) -> float:
    """Score rubiks_cube; a number belongs to a move."""
    return 0.0 if any(map(str.isdecimal, answer.split())) else library(answer)


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
        task="rubiks_cube",
        scorer_sha256="595c908d5970e222d5531cf03d315c8558168b7e2e0cf321c16bf71fd2246580",
        fault="Takes a number that stands alone for no move at all.",
        proof=lambda entry: f"{entry['metadata']['example_correct_answer']} 42",
        proof_pays=1.0,
        score=_moves_without_numbers,
    ),
)
