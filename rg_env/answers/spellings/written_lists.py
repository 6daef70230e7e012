r"""Lists and sequences as people write them: marks, labels, arrows, commas, lines.

`Moves: A+1, B-2`, `A+1 → B-2`, `1. A+1` above `2. B-2` and `["A+1", "B-2"]` are one
list. What stands between its elements says nothing, so it may be any of that; what is
neither an element nor known to say nothing makes the text unreadable, and with it any
second answer, a choice or a denial.

Time is linear in the text: it is read once from left to right.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from rg_env.answers.spellings.written_values import read_list
from rg_env.answers.undressing import without_fence

_LABEL_WORDS = (
    "a are assignment backward best board buttons by cells chain color coloring"
    " colors colours complete completed coordinates correct cube decoded decrypted"
    " directions distances elements filled final finished following for from full"
    " goal grid groups here in instructions is it ladder letters list mapping matrix"
    " message minimal minimum move moves my name nodes numbers of operations optimal"
    " order output palindrome partition partitions path pattern person plaintext"
    " plan point position press presses program puzzle queens reach relation"
    " relationship required result reversed rotated rotations route rows secret"
    " sentence sequence shortest so solution solve solved sorted spiral start state"
    " step steps string table test text that the therefore this thus to tokens"
    " transformed valid values way with word words"
)
LABEL_WORDS = frozenset(_LABEL_WORDS.split())
"""Words that announce a list and say nothing of what is in it."""

_LABEL = re.compile(
    r"[*_#\s]*((?:[A-Za-z']{1,20}[ \t]+){0,11}[A-Za-z']{2,20})[*_]*\s*:[*_]*\s*"
)
_WORD = re.compile(r"[A-Za-z']+")
_ARROW = re.compile(
    "[-=\u2013\u2014\u2212]{1,4}>|[\u2192\u21d2\u21e8\u27f6\u27f9\u279c\u279d\u279e\u27a1"
    "\u2794\u21a6\u2799\u27a4\u25b6\u25ba]\ufe0f?"
    r"|\\(?:to|(?:long)?rightarrow|(?:Long)?[Rr]ightarrow|implies|mapsto)(?![A-Za-z])"
)
_LATEX_TEXT = re.compile(
    r"\\(?:text|texttt|textbf|textit|mathrm|mathbf|mathtt|operatorname)\{([^{}\\]*)\}"
)
_LATEX_SPACE = re.compile(r"\\(?:quad(?![A-Za-z])|qquad(?![A-Za-z])|[,;:! ])")
_CODE = re.compile(r"(?<!\w)`([^`]*)`")

_MARK = re.compile(
    r"(?:(?:step|move|row|line|turn)[ \t]*)?\(?#?([0-9]{1,6})[.):](?:\s+|$)",
    re.IGNORECASE,
)
"""What numbers an element: `1.`, `2)`, `(3)`, `Step 4:`."""

_BULLET = re.compile("[-*+\u2022\u2013\u00b7\u25e6]\\s+")
_QUOTES = "\"'\u201c\u201d\u2018\u2019"
_BETWEEN = rf"[\s,;\u2192{_QUOTES}]|\.(?=\s|$)"
_THEN = r"\b(?:and[ \t]+)?(?:then|next)\b"
BETWEEN = re.compile(rf"(?:{_BETWEEN})*")
"""What may stand between the elements of a list."""

BETWEEN_MOVES = re.compile(rf"(?:{_BETWEEN}|{_THEN})*")
"""What may stand between moves, which come one after the other."""

BETWEEN_STEPS = re.compile(rf"(?:{_BETWEEN}|{_THEN}|[>\u2010-\u2015\u2212-])*")
"""What may stand between moves that have no sign of their own."""


def plain(text: str) -> str:
    """Take bold, code and LaTeX off what stands inside a text; one sign is an arrow."""
    text = _LATEX_TEXT.sub(r"\1", text)
    text = _ARROW.sub("\u2192", _LATEX_SPACE.sub(" ", text))
    return _CODE.sub(r"\1", text.replace("**", "")).strip()


def without_label(text: str) -> str:
    """Take off what announces a list, `The moves are:`, and a fence behind it."""
    at = 0
    while match := _LABEL.match(text, at):
        words = {word.lower() for word in _WORD.findall(match[1])}
        if not words <= LABEL_WORDS or match.end() == len(text):
            break
        at = match.end()
    return without_fence(text[at:].strip()) if at else text


def content(text: str) -> str:
    """Take off a label and all dress inside a text."""
    return plain(without_label(text))


def without_brackets(text: str) -> str:
    """Take off one pair of brackets around a whole text."""
    if text[:1] + text[-1:] in ("[]", "()", "{}"):
        inner = text[1:-1]
        if not any(bracket in inner for bracket in "[](){}"):
            return inner.strip()
    return text


def _elements(
    text: str, element: re.Pattern[str], between: re.Pattern[str], numbered: bool
) -> Iterator[re.Match[str] | None]:
    """Yield each element, and None at the end where something else stands."""
    number, at = 1, _end_of(between, text, 0)
    while at < len(text):
        at = _end_of(_BULLET, text, at)
        mark = _MARK.match(text, at) if numbered else None
        if mark is not None and int(mark[1]) == number:
            number, at = number + 1, _end_of(between, text, mark.end())
        match = element.match(text, at)
        yield match
        if match is None:
            return
        at = _end_of(between, text, match.end())
        if at == match.end() < len(text):
            yield None
            return


def _end_of(pattern: re.Pattern[str], text: str, at: int) -> int:
    """Return where what matches here ends; here, if nothing does."""
    match = pattern.match(text, at)
    return match.end() if match else at


def read_sequence(
    text: str,
    element: re.Pattern[str],
    between: re.Pattern[str] = BETWEEN,
    *,
    numbered: bool = True,
) -> list[re.Match[str]] | None:
    """Read a text that holds elements and otherwise only what says nothing.

    Args:
        text: Any text, from `content`.
        element: What one element looks like; not empty, in linear time.
        between: What may stand between two of them; something has to.
        numbered: Whether numbers that count from 1 are marks of the elements.

    Returns:
        The elements in their order, at least one; None where the text holds anything
        else.
    """
    listed = read_list(text)
    if listed is not None:
        found = [element.fullmatch(plain(written)) for written in listed]
    else:
        found = list(_elements(without_brackets(text), element, between, numbered))
    read = [match for match in found if match is not None]
    return read if read and len(read) == len(found) else None
