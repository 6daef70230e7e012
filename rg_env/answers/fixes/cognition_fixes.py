"""Fixes of the category cognition.

Not corrected, because nothing was found: color_cube_rotation and needle_haystack, which
pay for the right answer alone, and rectangle_count.
"""

from __future__ import annotations

import re

from rg_env.answers.fixes.scorer_fix import Entry, LibraryScore, ScorerFix

UNSOLVED = 0.05
"""The least the library pays for moves that can be made."""

_TURN = re.compile(r"(?:[LRDUBF]w?|[XYZMES])'?[0-9]{0,2}")
_TURN_OF_LAYERS = re.compile(r"[0-9](?:[LRDUBF]w?)'?")


def _every_turn(answer: str, entry: Entry, library: LibraryScore) -> float:
    """Score rubiks_cube by all of its turns, those of inner layers (`2R`) included."""
    turns = answer.split()
    inner = [turn for turn in turns if _TURN_OF_LAYERS.fullmatch(turn)]
    if not all(_TURN.fullmatch(turn) for turn in turns if turn not in inner):
        return 0.0
    if not inner:
        return library(answer)
    metadata = entry["metadata"]
    if any(int(turn[0]) not in range(1, metadata["cube_size"]) for turn in inner):
        return 0.0
    # It comes with the library, and only these few answers need it.
    from magiccube import Cube

    cube = Cube(metadata["cube_size"])
    cube.rotate(metadata["scramble_moves"])
    cube.rotate(answer)
    return 1.0 if cube.is_done() else UNSOLVED


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
        fault="Passes over numbers that stand alone and turns of inner layers, `2R`.",
        proof=lambda entry: f"{entry['metadata']['example_correct_answer']} 42",
        proof_pays=1.0,
        score=_every_turn,
    ),
)
