"""Whether an answer is wrong, told without a scorer.

It is compared with the right answer after formatting and notation are taken out
of both. Where a task has one right answer, what still differs is wrong. Where it
has several, the rules of the task decide (`several_right.py`), and where they are not
written down there nothing is known.
"""

from __future__ import annotations

import itertools
import re
from fractions import Fraction

from tools.answer_texts.sampled_items import SampledItem
from tools.answer_texts.several_right import is_right

CASE_MATTERS = (
    *("codeio", "emoji_mystery", "letter_jumble", "word_sequence_reversal"),
    "word_sorting",
)
"""Tasks whose questions show the case that is wanted. sentence_reordering and
spell_backward show one too, but their scorers compare in lower case on purpose."""

FILLERS = {
    "knights_knaves": frozenset({"is", "a", "an", "and"}),
    "tower_of_hanoi": frozenset({"move", "disk", "from", "to", "peg"}),
}
"""Task to the words of its answers that say nothing, whether they are there or not."""

_TERM = re.compile(r"(\+-|[+-]|)(\d+(?:\.\d*)?)(i?)")
_AROUND_WORDS = re.compile(r"(?<!\w)[^\w\s]+|[^\w\s]+(?!\w)")
_DAYS_BEFORE_CLOCK = re.compile(r"\s*days?,?\s*(?=\d+:)")
_NUMBER = re.compile(r"[+-]?\d+(?:\.\d*)?(?:e[+-]?\d{1,3})?")


def _number(text: str) -> str:
    return str(Fraction(text)) if len(text) < 300 else text


def _without_fillers(task: str, text: str) -> str:
    words = [w for w in re.findall(r"\w+", text) if w not in FILLERS[task]]
    if task == "tower_of_hanoi":
        return " ".join(words)
    said = [word for word, _ in itertools.groupby(words)]
    pairs = itertools.zip_longest(said[::2], said[1::2], fillvalue="")
    return " ".join(sorted(map(" ".join, pairs)))


def meaning(task: str, answer: str) -> str:
    """Return an answer without case, spacing and other ways to write its numbers."""
    text = answer if task in CASE_MATTERS else answer.casefold()
    text = " ".join(text.split()).strip(" .\"'`*$()\u00b0")
    if task in FILLERS:
        return _without_fillers(task, text)
    if task == "complex_arithmetic":  # the parts, in either order
        terms = _TERM.findall(text.replace(" ", ""))
        if "".join(map("".join, terms)) == text.replace(" ", ""):
            parts = (f"{s[-1:].strip('+')}{_number(n)}{i}" for s, n, i in terms)
            return " ".join(sorted(parts))
    is_denied = re.search("[\u2260\u00ac]|~~", text)
    if task == "sentence_reordering" and not is_denied:  # the order counts, no quote
        text = _AROUND_WORDS.sub("", text)
    if task == "time_intervals":  # `3 days, 4:05` and `3 4:05`
        text = _DAYS_BEFORE_CLOCK.sub(" ", text)
    if task in CASE_MATTERS:
        return re.sub(r"\s*,\s*", ",", text)
    text = _NUMBER.sub(lambda match: _number(match.group()), text)
    return re.sub(r"\s*([^\w\s])\s*", r"\1", text)


def is_wrong(item: SampledItem, answer: str) -> bool | None:
    """Say whether an answer without formatting is wrong; None where nobody knows."""
    if item.task == "letter_jumble" and item.right[:1].islower():
        answer = answer[:1].lower() + answer[1:]  # a sentence may begin with a capital
    if meaning(item.task, answer) == meaning(item.task, item.right):
        return False
    right = is_right(item, answer)
    return None if right is None else not right
