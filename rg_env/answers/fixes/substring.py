"""Credit for an answer that contains the gold answer, and the scorers that pay it.

The library's base scorer pays `len(gold) / len(answer)` wherever the gold answer occurs
in the answer as text: 0.5 for `-5` or `50` where 5 is right, 0.5 for `Yes No`, 0.98
for a long grid with a wrong cell behind it. `compute_decimal_reward`, which compares
numbers first, falls back to the same.

Here the credit stays what the library gives, but only for a wrapper: an answer in which
the gold answer stands by itself and everything else is talk that can be no second
answer. `The answer is 5.`, `x = 5`, `5 legs` and `**5**` are; what they earn needs the
gold answer and so cannot be farmed. Everything else earns 0:

    part of another number or word    -5  50  1/5  .5  5e3  5%  falsehoods
    a second answer beside it         Yes No   5 or 6   5, 6   not True
    any other sign beside it          5#  5!  ~5

Which words are talk depends on the gold answer. Where it has letters (True, a decoded
sentence, a hexadecimal number) only the words of `TALK`; where it has none, any words
but `CHANGES`, which deny it, offer a choice or make another number of it.

It compares text and evaluates none; time is linear in the answer. The library's credit
for the wrapper is kept as it is, also where that is small.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from rg_env.answers.fixes.fix import LibraryScore, ScorerFix

LIBRARY_VERSION = "0.1.25"

BASE_SCORER_SHA256 = "d4c377f0ac8e002f2cc7809fd18f6359465da4faae08a43824c050926a1d83f4"
"""Digest of the source of `ProceduralDataset.score_answer`."""

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
    " double squared cubed factorial"
    # a denial or a choice
    " not no none nor never neither wrong false or either else alternatively versus"
    " maybe perhaps possibly unlikely except unless if between least most"
)
CHANGES = frozenset(_CHANGES.split())
"""Words that deny a number, offer a choice or make another number of it."""

_PLAIN = re.compile(r"[A-Za-z\s.,:;'\"`$*_={}()\[\]\\]*")
_WORD = re.compile(r"[A-Za-z]+")


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
    words = {word.lower() for word in _WORD.findall(rest)}
    if any(char.isalpha() for char in gold):
        return words <= TALK
    return words.isdisjoint(CHANGES)


def score_substring(
    answer: str, entry: Mapping[str, Any], library: LibraryScore
) -> float:
    """Score where the library uses its base scorer: credit for wrappers only."""
    gold = entry["answer"]
    if isinstance(gold, str) and answer != gold and not is_wrapper(answer, gold):
        return 0.0
    return library(answer)


def longer_number(entry: Mapping[str, Any]) -> str:
    """Return another number that contains the gold one."""
    return f"1{entry['answer']}"


def junk_behind(junk: str) -> Callable[[Mapping[str, Any]], str]:
    """Return the proof that puts something directly behind the gold answer."""
    return lambda entry: f"{entry['answer']}{junk}"


def every_choice(*choices: str) -> Callable[[Mapping[str, Any]], str]:
    """Return the proof that answers with all choices, whatever the entry."""
    return lambda entry: " ".join(choices)


def base_fix(
    task: str,
    fault: str,
    proof: Callable[[Mapping[str, Any]], str],
    proof_pays: float,
) -> ScorerFix:
    """Return the row of a task that inherits the library's base scorer."""
    return ScorerFix(
        task=task,
        library_version=LIBRARY_VERSION,
        scorer_sha256=BASE_SCORER_SHA256,
        fault=fault,
        proof=proof,
        proof_pays=proof_pays,
        score=score_substring,
    )
