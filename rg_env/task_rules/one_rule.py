r"""The rule for tasks with one right answer: right is what says it and nothing else.

    reference     right                         not right
    5             5.0, +5, 5 legs, «5».         5 or 6, not 5, 57, 5%
    -3 + 11i      11i - 3                       -3 + 11i or 5
    3 7           [[3, 7], [5, 1]]              3 7 5 1
    5 1

An answer and the reference are read as tokens: numbers, words, signs and ends of lines.
An answer with the tokens of the reference is right, and so is one that has them in
another order and that the task's own scorer gives 1.0. Another answer that the scorer
gives 1.0 says more than the reference, or something else, and scores 0; what the scorer
gives less scores half of that, but for its 0.01 for any answer that it can read.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from rg_env.task_rules.reading.filler_words import FILLER, words_of_numbers
from rg_env.task_rules.rules import READABLE, Entry, LibraryScore, ScorerFix

_TOKEN = re.compile(
    r"(?<=[^\W\d_])[0-9]+"  # behind a letter zeros count: 1e05 and 1e5 are two hex ones
    r"|(?P<number>(?:[-+][ \t]*)?(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+))"
    r"|[^\W0-9_]+|\n|[^\w\s]|_"
)
_PASSED_OVER = "()[]{}'\"\u2018\u2019\u201c\u201d\u00ab\u00bb`*\\,;:.="
_AROUND = " \t\n$[]()\"'`*\u201c\u201d"
_ROW_END = re.compile(r"\][\s,;]*\[|;")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")

Tokens = list[str]


def _number(text: str) -> str:
    """Write a number, of any length, without a sign or zeros that say nothing."""
    whole, _, rest = text.lstrip("+- \t").partition(".")
    digits = f"{whole.lstrip('0') or '0'}.{rest.rstrip('0')}".rstrip(".")
    return f"-{digits}" if text[0] == "-" and digits != "0" else digits


def _tokens(text: str, passed_over: Collection[str], any_case: bool) -> Tokens:
    # A period before a digit is a part of it.
    text = text.replace("\u2212", "-").strip(_AROUND).rstrip(f"{_AROUND}.")
    text = _ROW_END.sub("\n", text)
    found: Tokens = []
    for match in _TOKEN.finditer(text.casefold() if any_case else text):
        token = _number(match[0]) if match["number"] else match[0]
        if token not in passed_over and [*found[-1:], token] != ["\n", "\n"]:
            found.append(token)
    return found


def _is_number(tokens: Tokens) -> bool:
    return len(tokens) == 1 and tokens[0][-1].isdecimal()


def _without_fillers(tokens: Tokens, right: Tokens, entry: Entry) -> Tokens:
    """Leave out the words around a reference of one word, or of none."""
    if sum(map(str.isalpha, right)) > 1:
        return tokens
    question = entry.get("question", "")
    fillers = words_of_numbers(question) if _is_number(right) else FILLER
    kept = [len(t) == 1 or t.casefold() not in fillers for t in tokens]
    if True not in kept:
        return []
    end = len(kept) - kept[::-1].index(True)
    behind = tokens[end:]
    # `No solution` says another thing than `No is the solution`.
    if behind and not _is_number(right) and behind[0].casefold() not in ("is", "\n"):
        return tokens
    return tokens[kept.index(True) : end]


def _is_closed(text: str) -> bool:
    """Say whether every bracket is closed, as they are not where a text is cut off."""
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
    any_case: bool = True,
    any_number: bool = False,
    has_punctuation: bool = False,
    passed_over: str = "",
) -> ScorerFix:
    """Return the rule as the fix of a task.

    Args:
        partial_credit: Whether a wrong answer scores half of what the scorer gives.
            It scores 0 where a copy of the question or a constant would have more than
            0.25 so, and where the scorer gives credit to what contains the reference.
        any_case: Whether capitals make no difference.
        any_number: Whether as many other numbers are right as well where the scorer
            says so.
        has_punctuation: Whether commas, quotes and brackets inside of it count.
        passed_over: Words and signs, with spaces between, that say nothing here.
    """
    signs = "" if has_punctuation else _PASSED_OVER
    silent = frozenset(signs) | frozenset(passed_over.split())

    def part_of(value: float) -> float:
        if not partial_credit:
            return 0.0
        return value if value <= READABLE else value / 2

    def score(answer: str, entry: Entry, library: LibraryScore) -> float:
        gold = entry.get("answer")
        if not isinstance(gold, str):
            value = library(answer)
            return value if value == 1.0 else part_of(value)
        right = _tokens(gold, silent, any_case)
        text = _THOUSANDS.sub("", answer) if _is_number(right) else answer
        said = _tokens(text, silent, any_case)
        if "\n" not in right:
            said = [each for each in said if each != "\n"]
        forms = (said, _without_fillers(said, right, entry))
        if answer == gold or (right and right in forms and _is_closed(answer)):
            return 1.0
        value = library(answer)
        if value < 1.0:
            return part_of(value)
        orders = [_in_any_order(form, any_number) for form in forms]
        return float(bool(right) and _in_any_order(right, any_number) in orders)

    return ScorerFix(score)


CONTAINED = one_answer(partial_credit=False)
"""The fix of a task with the library's base scorer, which gives `-5` and `50` a half
where 5 is right because they contain it. No row has it: a task without a scorer of its
own has this one, and so has one that is not known here."""
