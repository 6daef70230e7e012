"""Words around an answer that can be no second answer.

Several scorers search the text for what they can read and pass over the rest, so that
a right answer with a different one behind it is paid in full. A fix that keeps such a
reader says what the rest may be: the words in which a model presents its answer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from rg_env.answers.fixes.fix import LibraryScore
from rg_env.answers.fixes.substring import TALK, is_wrapper

_PLAIN = re.compile(r"[A-Za-z\s.,:;'\"`$*_={}()\[\]\\]*")
_WORD = re.compile(r"[A-Za-z]+")


def is_talk(text: str) -> bool:
    """Say whether a text holds nothing but talk; time is linear in its length."""
    return bool(_PLAIN.fullmatch(text)) and all(
        word.lower() in TALK for word in _WORD.findall(text)
    )


def score_gold_and_talk(
    answer: str, entry: Mapping[str, Any], library: LibraryScore
) -> float:
    """Score where the library uses its base scorer: only talk around the gold answer.

    Stricter than `score_substring`: no unit stands behind a list or a grid.
    """
    gold = entry["answer"]
    talk = is_wrapper(answer, gold) and is_talk(answer.replace(gold, " "))
    return library(answer) if talk else 0.0


def is_talk_beside(read: re.Pattern[str], answer: str) -> bool:
    """Say whether an answer is talk once what a scorer reads is taken out of it."""
    return is_talk(read.sub(" ", answer))
