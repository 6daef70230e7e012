"""Lists of numbers, words and tokens, however they are kept apart."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from rg_env.task_rules.reading.notation import Spelling
from rg_env.task_rules.reading.written_lists import BETWEEN, plain, read_sequence
from rg_env.task_rules.reading.written_values import read_list, read_value

_WHOLE = re.compile(r"-?[0-9]+(?![\w.])|-?[0-9]+(?=\.(?:\s|$))")
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?![\w])")
_WORD = re.compile(r"\w+")
_TOKENS = re.compile(r"(?:[AB]#|#[AB])+")
_COUNT = re.compile(r"[0-9]{1,6}\b")
_LETTER = re.compile(r"[A-E]")
_LETTERS = re.compile(r"[A-E]+")
_BULLETS = re.compile("^[ \t]*[-*\u2022][ \t]+", re.MULTILINE)
_MACHINES = tuple("ABCXYZ")
_BLOCKS = tuple(f"{a}{c}{b}" for a, b in ("[]", "{}", "()") for c in "ABC")


def _list(
    element: re.Pattern[str],
    joined: Callable[[list[str]], str],
    between: re.Pattern[str] = BETWEEN,
) -> Spelling:
    """Return the spelling of a list of what the pattern reads."""

    def spelling(answer: str, entry: Mapping[str, Any]) -> str:
        found = read_sequence(plain(answer), element, between)
        return answer if found is None else joined([each[0] for each in found])

    return spelling


def _brackets(elements: list[str]) -> str:
    return f"[{', '.join(elements)}]"


def _quoted(elements: list[str]) -> str:
    return _brackets([f"'{element}'" for element in elements])


def _or_empty(spelling: Spelling) -> Spelling:
    """Return a spelling that knows the empty list as well."""

    def with_empty(answer: str, entry: Mapping[str, Any]) -> str:
        if "".join(answer.split()) in ("[]", "()"):
            return "[]"
        return spelling(answer, entry)

    return with_empty


def strings_in_brackets(answer: str, entry: Mapping[str, Any]) -> str:
    """Write a list in brackets with single quotes around its elements.

    Without brackets it stays as it is: the question says not to write it so.
    """
    elements = read_list(answer)
    return answer if elements is None else _quoted(elements)


def tokens(answer: str, entry: Mapping[str, Any]) -> str:
    """Write the tokens of an A::B program with spaces."""
    text = plain(answer).replace(r"\#", "#")
    found = read_sequence(text, _TOKENS)
    if found is None:
        return answer
    program = "".join(each[0] for each in found)
    return " ".join(program[at : at + 2] for at in range(0, len(program), 2))


def letters(answer: str, entry: Mapping[str, Any]) -> str:
    """Write a list of letters as one string."""
    text = plain(answer)
    listed = read_list(text)
    if listed is not None and all(_LETTER.fullmatch(each) for each in listed):
        return "".join(listed)
    return text if _LETTERS.fullmatch(text) else answer


def sentence(answer: str, entry: Mapping[str, Any]) -> str:
    """Write a list of words as one sentence."""
    listed = read_list(answer)
    return answer if listed is None else " ".join(listed)


def _counts(names: tuple[str, ...]) -> Spelling:
    """Return the spelling of counts that may have their names beside them."""
    kind = r"(?:units?\s+of\s+|machines?\s+|parts?\s+|blocks?\s+)*"
    gap = r"(?:[\s,;|]|\band\b)+"
    behind = gap.join(rf"([0-9]{{1,6}})\s*{kind}{re.escape(name)}" for name in names)
    before = gap.join(
        rf"{kind}{re.escape(name)}\s*[:=\u2192]\s*([0-9]{{1,6}})" for name in names
    )
    forms = [re.compile(form, re.IGNORECASE) for form in (behind, before)]
    unnamed = _list(_COUNT, " ".join)

    def spelling(answer: str, entry: Mapping[str, Any]) -> str:
        text = _BULLETS.sub("", plain(answer))
        for form in forms:
            match = form.fullmatch(text)
            if match is not None:
                return " ".join(match.groups())
        try:
            named = read_value(answer)
        except ValueError:
            named = None
        if isinstance(named, dict) and sorted(named) == sorted(names):
            counts = [named[name] for name in names]
            return " ".join(map(str, counts))
        return unnamed(answer, entry)

    return spelling


SPELLINGS: Mapping[str, Spelling] = {
    "ab": tokens,
    "letter_jumble": _list(_WORD, " ".join),
    "list_functions": _or_empty(_list(_WHOLE, _brackets)),
    "number_filtering": _or_empty(_list(_NUMBER, _quoted)),
    "number_sorting": strings_in_brackets,
    "sentence_reordering": sentence,
    "spiral_matrix": _list(_WHOLE, " ".join),
    "string_insertion": letters,
    "string_splitting": _counts(_MACHINES),
    "string_synthesis": _counts(_BLOCKS),
    "word_sequence_reversal": _list(_WORD, ", ".join),
    "word_sorting": _list(_WORD, ", ".join),
}
"""Task to its spelling."""
