"""Words around an answer that can be no second answer.

Several scorers search the text for what they can read and pass over the rest, so that
a right answer with a different one beside it is paid. A fix that keeps such a reader
says what the rest may be: the words in which a model presents its answer.

An answer is a wrapper if the gold answer stands by itself in it and everything else is
talk. `The answer is 5.`, `x = 5`, `5 legs` and `**5**` are; what they earn needs the
gold answer and so cannot be farmed. No wrapper is

    part of another number or word    -5  50  1/5  .5  5e3  5%  falsehoods
    a second answer beside it         Yes No   5 or 6   5, 6   not True
    any other sign beside it          5#  5!  ~5

Which words are talk depends on the gold answer. Where it has letters (True, a decoded
sentence, a hexadecimal number) only the words of `TALK`; where it has none, any words
but `CHANGES`, which deny it, offer a choice or make another number of it.

Text is compared and none evaluated; time is linear in the answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_TALK = (
    "an answer answers are boxed equal equals final hence here is it my of output"
    " result so solution text that the therefore this thus value we word"
)
TALK = frozenset(_TALK.split())
"""Words that are no answer to any task, lower case; no single letters."""

_CHANGES = (
    # other numbers
    "zero one two three four five six seven eight nine ten eleven twelve thirteen"
    " fourteen fifteen sixteen seventeen eighteen nineteen twenty thirty forty fifty"
    " sixty seventy eighty ninety hundred thousand million billion dozen infinity inf"
    " nan"
    # what makes another number of this one
    " minus negative half halves third thirds quarter quarters tenths hundredths twice"
    " double squared cubed factorial sqrt root log ln exp sin cos tan k thousands"
    " millions dozens hundreds"
    # a denial or a choice
    " not no none nor never neither wrong false or either else alternatively versus"
    " maybe perhaps possibly unlikely except unless if between least most but anything"
    " everything other than any"
)
CHANGES = frozenset(_CHANGES.split())
"""Words that deny a number, offer a choice or make another number of it."""

_PLAIN = re.compile(r"[A-Za-z\s.,:;'\"`$*_={}()\[\]\\]*")
_WORD = re.compile(r"[A-Za-z]+")


def _words_of(text: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(text)}


def is_talk(text: str) -> bool:
    """Say whether a text holds nothing but talk; time is linear in its length."""
    return bool(_PLAIN.fullmatch(text)) and _words_of(text) <= TALK


def is_talk_beside(read: re.Pattern[str], answer: str) -> bool:
    """Say whether an answer is talk once what a scorer reads is taken out of it."""
    return is_talk(read.sub(" ", answer))


def _stands_alone(answer: str, start: int, end: int) -> bool:
    """Say whether `answer[start:end]` is no part of a longer number or word."""
    before = answer[start - 1] if start else ""
    after = answer[end : end + 1]
    if before.isalnum() or before == "_" or after.isalnum() or after == "_":
        return False
    # A point or comma before a digit belongs to the number.
    if before in (".", ",") and answer[start].isdigit():
        return False
    return not (after in (".", ",") and answer[end + 1 : end + 2].isdigit())


def _pieces_beside(answer: str, gold: str) -> Iterator[str]:
    """Yield the pieces of an answer between the places where the gold stands alone."""
    piece_start = search_from = 0
    while (at := answer.find(gold, search_from)) >= 0:
        end = at + len(gold)
        if _stands_alone(answer, at, end):
            yield answer[piece_start:at]
            piece_start = search_from = end
        else:
            search_from = at + 1
    yield answer[piece_start:]


def is_wrapper(answer: str, gold: str) -> bool:
    """Say whether an answer is the gold answer with nothing but talk around it.

    Args:
        answer: What the model answered.
        gold: The library's answer to the entry.

    Returns:
        True also for the gold answer itself; False where either is empty.
    """
    if not gold:
        return False
    pieces = list(_pieces_beside(answer, gold))
    rest = " ".join(pieces)
    if len(pieces) == 1 or not _PLAIN.fullmatch(rest):
        return False
    if any(char.isalpha() for char in gold):
        return _words_of(rest) <= TALK
    return _words_of(rest).isdisjoint(CHANGES)
