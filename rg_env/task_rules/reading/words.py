"""Answers of one word, or of a few that the question names."""

from __future__ import annotations

import re

from rg_env.task_rules.reading.notation import of_short_text
from rg_env.task_rules.rules import Entry


def in_any_case(answer: str, entry: Entry) -> str:
    """Return the right answer for one that differs from it by upper case alone."""
    gold = entry.get("answer")
    if isinstance(gold, str) and answer.casefold() == gold.casefold():
        return gold
    return answer


_ENDS = " .\"'`*\u201c\u201d"


def but_for_its_ends(answer: str, entry: Entry) -> str:
    """Return the right sentence for one without, or with more, quotes around it."""
    gold = entry.get("answer")
    if isinstance(gold, str) and answer.strip(_ENDS) == gold.strip(_ENDS) != "":
        return gold
    return answer


# -- yes and no ------------------------------------------------------------------------

_VERDICT = re.compile(
    r"(?P<word>[A-Za-z]+)(?:\s*[,.;:!(\u2013\u2014-]\s*|\s*$)(?P<rest>.*)", re.DOTALL
)
_AFFIRM = frozenset({"yes", "true"})
_DENY = frozenset({"no", "false"})
_WORD = re.compile(r"[A-Za-z']+")
_NUMBER = re.compile(r"\d+")
_NOT = "not cannot can't doesn't don't isn't aren't won't never invalid"
NEGATIONS = frozenset(_NOT.split())
_VERDICTS = (
    "it this that the does do is are can will would logically follow follows from"
    " conclusion statements statement premises given necessarily valid therefore you"
    " be of all a an and so since because thus hence must"
)
OF_VERDICTS = frozenset(_VERDICTS.split())


@of_short_text
def as_verdict(answer: str, entry: Entry) -> str:
    """Return the first word of `Yes, it follows.`, which says nothing else than it.

    What follows is made of words of the question. It has a negation where the first
    word is a denial, and none where it is not.
    """
    spelled = in_any_case(answer, entry)
    match = _VERDICT.fullmatch(answer.replace("\u2019", "'"))
    if spelled != answer or match is None:
        return spelled
    word = match["word"].lower()
    if word not in _AFFIRM | _DENY:
        return answer
    question = entry.get("question", "").lower()
    rest_text = match["rest"].lower()
    numbers = set(_NUMBER.findall(rest_text))
    if numbers and not (
        _WORD.search(rest_text) and numbers <= set(_NUMBER.findall(question))
    ):
        return answer
    for line in question.split("\n"):
        conclusion = line.strip(" ?.:")
        rest_text = (
            rest_text.replace(conclusion, " ") if len(conclusion) > 8 else rest_text
        )
    known = OF_VERDICTS | NEGATIONS | set(_WORD.findall(question))
    rest = _WORD.findall(rest_text)
    has_negation = not NEGATIONS.isdisjoint(rest)
    is_said_again = not rest or has_negation == (word in _DENY)
    if not is_said_again or not known.issuperset(rest) or (_AFFIRM | _DENY) & set(rest):
        return answer
    return in_any_case(match["word"], entry)
