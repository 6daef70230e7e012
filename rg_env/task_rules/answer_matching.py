r"""Scores the tasks with one right answer: an answer must say it and nothing else.

    reference     right                         not right
    5             5.0, +5, 5 legs, «5».         5 or 6, not 5, 57, 5%
    -3 + 11i      11i - 3                       -3 + 11i or 5
    3 7           [[3, 7], [5, 1]]              3 7 5 1
    5 1

The answer and the reference are split into tokens: numbers, words, signs and ends of
lines. An answer with the tokens of the reference is right. If the tokens are in another
order, the library's scorer must give 1.0 too. Any other answer that this scorer gives
1.0 says something more or something else, and scores 0. If it gives less than 1.0, the
answer scores half of that; 0.01, for an answer that it can merely parse, stays 0.01.
"""

from __future__ import annotations

import functools
import re

from rg_env.task_rules.reading.filler_words import FILLER, words_of_numbers
from rg_env.task_rules.rules import READABLE_SCORE, Entry, LibraryScore, ScorerFix

_TOKEN = re.compile(
    r"(?<=[^\W\d_])[0-9]+"  # zeros count behind a letter: 1e05 and 1e5 differ in hex
    r"|(?P<number>(?:[-+][ \t]*)?(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+))"
    r"|[^\W0-9_]+|\n|[^\w\s]|_"
)
_LINE_END = "\n"
_IGNORED = "()[]{}'\"\u2018\u2019\u201c\u201d\u00ab\u00bb`*\\,;:.="
_AROUND = " \t\n$[]()\"'`*\u201c\u201d"
_ROW_END = re.compile(r"\][\s,;]*\[|;")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")

Tokens = list[str]


def _number(text: str) -> str:
    """Write a number of any length without redundant zeros or a plus sign."""
    integer, _, decimals = text.lstrip("+- \t").partition(".")
    digits = f"{integer.lstrip('0') or '0'}.{decimals.rstrip('0')}".rstrip(".")
    return f"-{digits}" if text[0] == "-" and digits != "0" else digits


# Every answer of a group is compared with the same reference, which may be long.
@functools.lru_cache(maxsize=4)
def _tokens(text: str, ignored: frozenset[str], ignore_case: bool) -> Tokens:
    """Split a text into tokens; several ends of lines are one."""
    # A period before a digit belongs to the number.
    text = text.replace("\u2212", "-").strip(_AROUND).rstrip(f"{_AROUND}.")
    text = _ROW_END.sub("\n", text)
    found: Tokens = []
    for match in _TOKEN.finditer(text.casefold() if ignore_case else text):
        token = _number(match[0]) if match["number"] else match[0]
        is_repeated = token == _LINE_END and found[-1:] == [_LINE_END]
        if token not in ignored and not is_repeated:
            found.append(token)
    return found


def _is_number(tokens: Tokens) -> bool:
    return len(tokens) == 1 and tokens[0][-1].isdecimal()


def _without_fillers(tokens: Tokens, reference: Tokens, entry: Entry) -> Tokens:
    """Drop filler words around the answer if the reference has at most one word."""
    if sum(map(str.isalpha, reference)) > 1:
        return tokens
    question = entry.get("question", "")
    fillers = words_of_numbers(question) if _is_number(reference) else FILLER
    kept = [
        index
        for index, token in enumerate(tokens)
        if len(token) == 1 or token.casefold() not in fillers
    ]
    if not kept:
        return []
    end = kept[-1] + 1
    has_words_behind = end < len(tokens) and not _is_number(reference)
    # `No solution` and `No is the solution` differ in meaning.
    if has_words_behind and tokens[end].casefold() not in ("is", _LINE_END):
        return tokens
    return tokens[kept[0] : end]


def is_balanced(text: str) -> bool:
    """Return whether every bracket is closed, by one of any kind."""
    depth = 0
    for sign in text:
        if sign in "([{":
            depth += 1
        elif sign in ")]}":
            depth -= 1
        if depth < 0:
            return False
    return depth == 0


def _sorted_tokens(tokens: Tokens, any_number: bool) -> Tokens:
    """Sort tokens without the ends of lines; `any_number` makes all numbers equal."""
    found = [token for token in tokens if token != _LINE_END]
    if any_number:
        found = ["0" if token[-1].isdecimal() else token for token in found]
    return sorted(found)


def one_answer(
    *,
    partial_credit: bool = True,
    ignore_case: bool = True,
    any_number: bool = False,
    has_punctuation: bool = False,
    ignored: str = "",
) -> ScorerFix:
    """Return the fix that scores a task by this rule.

    Args:
        partial_credit: Whether a wrong answer scores half of the library's score. It
            is off if a copy of the question or a constant would score more than 0.25,
            and if the scorer gives credit to any text that contains the reference.
        ignore_case: Whether upper and lower case are equal.
        any_number: Whether other numbers are right if the scorer gives them 1.0.
        has_punctuation: Whether commas, quotes and brackets inside the answer count.
        ignored: Words and signs, separated by spaces, that mean nothing in this task.

    Example:
        >>> fix = one_answer(ignored="legs")
        >>> fix.score("5.0 legs", {"answer": "5"}, lambda answer: 0.0)
        1.0
    """
    signs = "" if has_punctuation else _IGNORED
    all_ignored = frozenset(signs) | frozenset(ignored.split())

    def credit_of(value: float) -> float:
        if value == 1.0:
            return value
        if not partial_credit:
            return 0.0
        return value if value <= READABLE_SCORE else value / 2

    def score(answer: str, entry: Entry, library: LibraryScore) -> float:
        gold = entry.get("answer")
        if not isinstance(gold, str):
            return credit_of(library(answer))
        reference = _tokens(gold, all_ignored, ignore_case)
        text = _THOUSANDS.sub("", answer) if _is_number(reference) else answer
        answered = _tokens(text, all_ignored, ignore_case)
        if _LINE_END not in reference:
            answered = [token for token in answered if token != _LINE_END]
        forms = (answered, _without_fillers(answered, reference, entry))
        is_equal = bool(reference) and reference in forms
        if answer == gold or (is_equal and is_balanced(answer)):
            return 1.0
        value = library(answer)
        if value < 1.0:
            return credit_of(value)
        orders = [_sorted_tokens(form, any_number) for form in forms]
        is_reordered = _sorted_tokens(reference, any_number) in orders
        return float(bool(reference) and is_reordered)

    return ScorerFix(score)


CONTAINMENT_FIX = one_answer(partial_credit=False)
"""The fix for the library's base scorer, which gives 0.5 to any text that contains the
reference, such as `-5` and `50` for 5. Tasks without a row have this fix, too."""
