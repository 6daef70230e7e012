"""Which answers are right, by solvers that read no reference answer and no scorer.

Each takes an entry of the library and returns a function that knows the right answers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

IsRight = Callable[[str], bool]


def spelled_backward(entry: Mapping[str, Any]) -> IsRight:
    """The word from its last letter to its first."""
    word = entry["question"].rpartition(" ")[2]
    return lambda answer: answer.lower() == word[::-1].lower()


def sorted_words(entry: Mapping[str, Any]) -> IsRight:
    """The words in the order of their characters' codes, or the other way round."""
    asked, _, words = entry["question"].rpartition("list: ")
    right = sorted(words.strip().split(", "), reverse="in descending order" in asked)
    return lambda answer: re.split(r"\s*,\s*", answer.strip()) == right


def total(entry: Mapping[str, Any]) -> IsRight:
    """The sum, which may be in bold."""
    terms = re.findall(r"([+-]?) ?(\d+)", entry["question"].rpartition(":")[2])
    number = sum(int(sign + digits) for sign, digits in terms)
    return lambda answer: answer.strip("*") == str(number)
