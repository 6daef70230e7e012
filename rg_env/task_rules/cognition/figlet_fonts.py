"""figlet_font: one word."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rg_env.task_rules.algorithmic.group_anagrams import anagrams
from rg_env.task_rules.faster_functions import init_that
from rg_env.task_rules.partial_credit import partial_credit
from rg_env.task_rules.rules import (
    Entry,
    FasterFunction,
    ItemCheck,
    LibraryScore,
    ScorerFix,
    TaskRules,
)


def _one_word(answer: str, entry: Entry, library: LibraryScore) -> float:
    """Score one word of letters, spaced out or not, and no longer than the right one.

    Letters behind the right word cost what they would be of the whole.
    """
    words = answer.split()
    if len(words) > 1 and any(len(word) > 1 for word in words):
        return 0.0
    gold = entry["answer"].strip()
    if "".join(words).lower() == gold.lower():
        return library(answer)
    if not "".join(words).isalpha():
        return 0.0
    too_long = sum(map(len, words)) / max(1, len(gold))
    return partial_credit(library(answer) / max(1.0, too_long))


@functools.cache
def _all_words(path: Path) -> list[str]:
    return [word for group in anagrams(path) for word in group]


def _fill(library: Mapping[str, Any], dataset: Any, config: Any) -> None:
    lengths = range(config.min_word_len, config.max_word_len + 1)
    words = _all_words(library["get_data_file_path"]("anagrams.jsonl"))
    dataset.words = [word for word in words if len(word) in lengths]
    if not dataset.words:
        raise ValueError("no word of the file has a length in the range")
    dataset._prompt_templates = [
        "What word does this say?\n\n{figlet_render}",
        "Please read the following figlet font:\n\n{figlet_render}",
    ]


_ALIKE = re.compile(
    "b_m__200 .*[BCDEFGKLMNO]|runic .*[QUVXZ]|smisome1 .*[DO]|stencil2 .*[CI]", re.I
)
"""A font, and a word with a letter that looks like another one there."""

RULES = TaskRules(
    "figlet_font",
    fix=ScorerFix(
        scorer_sha256="753e689ec4b86e0104e809b4a4fbd24d446b2a500fbd2c15309fe55541f3bdbb",
        fault="Gives credit for every right letter, and ignores what follows the word.",
        score=_one_word,
    ),
    item_checks=(
        ItemCheck(
            "word has a letter that looks like another",
            lambda entry: (
                _ALIKE.match(f"{entry['metadata']['font']} {entry['answer']}")
                is not None
            ),
        ),
    ),
    faster=(
        FasterFunction(
            "reasoning_gym.cognition.figlet_fonts",
            "FigletFontDataset.__init__",
            "e632e55cd4484594",
            init_that(_fill),
        ),
    ),
)
