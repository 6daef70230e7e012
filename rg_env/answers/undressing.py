r"""What is only dress around an answer is taken off: `**\boxed{5}**.` is 5.

Language models write answers as they write text: in bold, in a fence, as LaTeX, quoted,
with a period behind or "The answer is" before. The library's scorers compare what
stands there. Each rule below takes one such thing off; they are tried in turn until
nothing comes off any more.

A rule that would change the gold answer is not used on the answers to it: where a
quote or a period belongs to the right answer, it is no dress. What is left is scored
beside the answer as it was written, and the higher score counts, so nothing is lost by
it. It is still one answer: nothing is chosen, computed or rounded.

Every rule is one look at the text, and there are at most MAX_ROUNDS of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable

MAX_ROUNDS = 8

Rule = Callable[[str], str]

_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u2060\ufeff]")
_SPACES = re.compile("[\u00a0\u2000-\u200a\u202f\u205f\u3000]")
_DASHES = re.compile("[\u2010-\u2015\ufe63\uff0d](?=\\s?[\\d.])")
_FENCE = re.compile(r"(```+|~~~+)[ \t]*(?:[\w+#.-]+[ \t]*)?\n(.*)\n[ \t]*\1", re.DOTALL)
_LATEX_WORD = re.compile(
    r"\\(?:boxed|fbox|text|textbf|textit|texttt|textrm|mathrm|mathbf|mathtt|mathit"
    r"|operatorname|displaystyle|mbox|emph)\s*\{(.*)\}",
    re.DOTALL,
)
_LEAD = re.compile(
    r"[*_#>\s]*(?:(?:so|thus|therefore|hence)[,:]?\s+)?(?:(?:the|my)\s+)?"
    r"(?:(?:final|correct|right)\s+)?(?:answer|solution|result|output)"
    r"(?:\s*(?:is|was|=|:))+(?:[*_\s]*:)?(?:\*\*|__)?\s+",
    re.IGNORECASE,
)
_LEAD_OF_ONE_LINE = re.compile(r"[*_]*(?:answer|solution|result|output)[*_]*:", re.I)
_NAME = re.compile(r"[A-Za-z]\w{0,19}\s*=(?!>)\s*")
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(?:,\d{3})+(?:\.\d+)?")

_PAIRS = (
    *(("$$", "$$"), ("$", "$"), (r"\(", r"\)"), (r"\[", r"\]")),
    *(("***", "***"), ("**", "**"), ("__", "__"), ("*", "*"), ("_", "_")),
    *(("```", "```"), ("``", "``"), ("`", "`")),
    *(
        ('"', '"'),
        ("'", "'"),
        ("\u201c", "\u201d"),
        ("\u201e", "\u201c"),
        ("\u2018", "\u2019"),
        ("\u00ab", "\u00bb"),
    ),
    *(("\u2039", "\u203a"), ("\u300c", "\u300d"), ("\uff02", "\uff02")),
)
"""What opens and closes dress."""

_OF_PIECES = frozenset({"$", "__", "_", "``", "`", '"', "'"})
"""What may also stand around each of several pieces, and is no sign of a formula."""

_CLOSED = tuple(f"{closing}{end}" for _, closing in _PAIRS for end in ".\u3002")


def _without_invisible(text: str) -> str:
    return _SPACES.sub(" ", _INVISIBLE.sub("", text)).strip()


def _with_plain_minus(text: str) -> str:
    return _DASHES.sub("-", text.replace("\u2212", "-"))


def without_fence(text: str) -> str:
    """Take a fence and its language off."""
    match = _FENCE.fullmatch(text)
    return match[2].strip() if match else text


def _without_pair(opening: str, closing: str) -> Rule:
    def rule(text: str) -> str:
        if not (text.startswith(opening) and text.endswith(closing)):
            return text
        inner = text[len(opening) : -len(closing)]
        if opening in _OF_PIECES and _has_pairs(inner, opening):
            return text
        return inner.strip() or text

    return rule


def _has_pairs(inner: str, mark: str) -> bool:
    """Say whether the marks around a text belong to two pieces: `"a", "b"`.

    One mark inside is an apostrophe or a part of a name.
    """
    count = inner.count("_" if mark == "__" else mark)
    return count > 0 and count % 2 == 0


def _without_latex_word(text: str) -> str:
    match = _LATEX_WORD.fullmatch(text)
    if match is None or not _is_balanced(match[1]):
        return text
    return match[1].strip()


def _is_balanced(text: str) -> bool:
    """Say whether no brace closes what was opened before the text."""
    depth = 0
    for brace in re.findall(r"(?<!\\)[{}]", text):
        depth += 1 if brace == "{" else -1
        if depth < 0:
            return False
    return depth == 0


def _without_lead(text: str) -> str:
    match = _LEAD.match(text) or _LEAD_OF_ONE_LINE.match(text)
    rest = text[match.end() :].strip() if match else ""
    if match and match[0].count("**") == 1 and rest.endswith("**"):
        rest = rest[:-2]
    return rest or text


def _without_name(text: str) -> str:
    """Take `x =` off, where nothing else is equal to anything."""
    match = _NAME.match(text)
    if match is None or text.count("=") != 1 or "\n" in text:
        return text
    return text[match.end() :].strip() or text


def _without_period(text: str) -> str:
    if text.endswith(("..", "\u2026")) or not text.endswith((".", "\u3002")):
        return text
    return text[:-1].strip() or text


def _without_period_after_dress(text: str) -> str:
    return text[:-1] if text.endswith(_CLOSED) else text


def _without_separators(text: str) -> str:
    """Take the commas of thousands out of a number."""
    return text.replace(",", "") if _THOUSANDS.fullmatch(text) else text


RULES: tuple[Rule, ...] = (
    _without_invisible,
    _with_plain_minus,
    _without_period_after_dress,
    without_fence,
    *(_without_pair(opening, closing) for opening, closing in _PAIRS),
    _without_latex_word,
    _without_lead,
    _without_period,
    _without_name,
    _without_separators,
)


def undressing(gold: str | None) -> Rule:
    """Return what undresses the answers to an item.

    Args:
        gold: The right answer, which is never undressed; None if there is none.

    Returns:
        From an answer, stripped, to the rest, stripped: the answer itself where there
        is nothing to take off.
    """
    rules = RULES if gold is None else [r for r in RULES if r(gold) == gold]

    def undressed(answer: str) -> str:
        for _ in range(MAX_ROUNDS):
            before = answer
            for rule in rules:
                answer = rule(answer)
            if answer == before:
                break
        return answer

    return undressed
