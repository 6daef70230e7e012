"""Answers of one word, or of a few that the question names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rg_env.answers.spellings.spelling import Spelling


def in_any_case(answer: str, entry: Mapping[str, Any]) -> str:
    """Return the right answer for one that differs from it by upper case alone."""
    gold = entry.get("answer")
    if isinstance(gold, str) and answer.casefold() == gold.casefold():
        return gold
    return answer


SPELLINGS: Mapping[str, Spelling] = {
    "course_schedule": in_any_case,
    "game_of_life_halting": in_any_case,
    "isomorphic_strings": in_any_case,
    "mahjong_puzzle": in_any_case,
    "ransom_note": in_any_case,
    "syllogism": in_any_case,
}
"""Task to its spelling."""
