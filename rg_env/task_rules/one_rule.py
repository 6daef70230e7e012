r"""Scores the tasks with one right answer: an answer must say it and nothing else.

    reference     right                         not right
    5             5.0, +5, 5 legs, «5».         5 or 6, not 5, 57, 5%
    -3 + 11i      11i - 3                       -3 + 11i or 5
    3 7           [[3, 7], [5, 1]]              3 7 5 1
    5 1

The answer and the reference are split into tokens: numbers, words, signs and ends of
lines. An answer with the tokens of the reference is right. If the tokens are in another
order, the task's own scorer must give 1.0 too. Any other answer that this scorer gives
1.0 says something more or something else, and scores 0. An answer that it gives less
than 1.0 scores half of that, except its 0.01 for every answer that it can parse.
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
_PASSED_OVER = "()[]{}'\"\u2018\u2019\u201c\u201d\u00ab\u00bb`*\\,;:.="
_AROUND = " \t\n$[]()\"'`*\u201c\u201d"
_ROW_END = re.compile(r"\][\s,;]*\[|;")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")

Tokens = list[str]


def _number(text: str) -> str:
    """Write a number of any length without redundant zeros or a plus sign."""
    whole, _, rest = text.lstrip("+- \t").partition(".")
    digits = f"{whole.lstrip('0') or '0'}.{rest.rstrip('0')}".rstrip(".")
    return f"-{digits}" if text[0] == "-" and digits != "0" else digits


# Every answer of a group is compared with the same reference, which may be long.
@functools.lru_cache(maxsize=4)
def _tokens(text: str, ignored: frozenset[str], ignore_case: bool) -> Tokens:
    # A period before a digit belongs to the number.
    text = text.replace("\u2212", "-").strip(_AROUND).rstrip(f"{_AROUND}.")
    text = _ROW_END.sub("\n", text)
    found: Tokens = []
    for match in _TOKEN.finditer(text.casefold() if ignore_case else text):
        token = _number(match[0]) if match["number"] else match[0]
        if token not in ignored and [*found[-1:], token] != ["\n", "\n"]:
            found.append(token)
    return found


def _is_number(tokens: Tokens) -> bool:
    return len(tokens) == 1 and tokens[0][-1].isdecimal()


def _without_fillers(tokens: Tokens, right: Tokens, entry: Entry) -> Tokens:
    """Drop filler words around the answer if the reference has at most one word."""
    if sum(map(str.isalpha, right)) > 1:
        return tokens
    question = entry.get("question", "")
    fillers = words_of_numbers(question) if _is_number(right) else FILLER
    kept = [len(t) == 1 or t.casefold() not in fillers for t in tokens]
    if True not in kept:
        return []
    end = len(kept) - kept[::-1].index(True)
    behind = tokens[end:]
    # `No solution` and `No is the solution` differ in meaning.
    if behind and not _is_number(right) and behind[0].casefold() not in ("is", "\n"):
        return tokens
    return tokens[kept.index(True) : end]


def is_closed(text: str) -> bool:
    """Return whether every bracket is closed; they are not in a truncated text."""
    depth = 0
    for sign in text:
        depth += (sign in "([{") - (sign in ")]}")
        if depth < 0:
            return False
    return depth == 0


def _in_any_order(tokens: Tokens, any_number: bool) -> Tokens:
    words = [each for each in tokens if each != "\n"]
    if any_number:
        words = ["0" if word[-1].isdecimal() else word for word in words]
    return sorted(words)


def one_answer(
    *,
    partial_credit: bool = True,
    ignore_case: bool = True,
    any_number: bool = False,
    has_punctuation: bool = False,
    ignored: str = "",
) -> ScorerFix:
    """Return the rule as the fix of a task.

    Args:
        partial_credit: Whether a wrong answer scores half of the library's score. It
            is off if a copy of the question or a constant would score more than 0.25,
            and if the scorer gives credit to any text that contains the reference.
        ignore_case: Whether upper and lower case are equal.
        any_number: Whether other numbers are right if the scorer gives them 1.0.
        has_punctuation: Whether commas, quotes and brackets inside the answer count.
        ignored: Words and signs, separated by spaces, that have no meaning here.

    Example:
        >>> fix = one_answer(ignored="legs")
        >>> fix.score("5.0 legs", {"answer": "5"}, lambda answer: 0.0)
        1.0
    """
    signs = "" if has_punctuation else _PASSED_OVER
    silent = frozenset(signs) | frozenset(ignored.split())

    def part_of(value: float) -> float:
        if not partial_credit:
            return 0.0
        return value if value <= READABLE_SCORE else value / 2

    def score(answer: str, entry: Entry, library: LibraryScore) -> float:
        gold = entry.get("answer")
        if not isinstance(gold, str):
            value = library(answer)
            return value if value == 1.0 else part_of(value)
        right = _tokens(gold, silent, ignore_case)
        text = _THOUSANDS.sub("", answer) if _is_number(right) else answer
        said = _tokens(text, silent, ignore_case)
        if "\n" not in right:
            said = [each for each in said if each != "\n"]
        forms = (said, _without_fillers(said, right, entry))
        if answer == gold or (right and right in forms and is_closed(answer)):
            return 1.0
        value = library(answer)
        if value < 1.0:
            return part_of(value)
        orders = [_in_any_order(form, any_number) for form in forms]
        return float(bool(right) and _in_any_order(right, any_number) in orders)

    return ScorerFix(score)


CONTAINMENT_FIX = one_answer(partial_credit=False)
"""The fix for the library's base scorer, which gives 0.5 to any text that contains the
reference, such as `-5` and `50` for 5. Tasks without a row have this fix, too."""
