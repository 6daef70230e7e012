"""Whether a categorical statement follows from two others, by an exact procedure.

Three terms make eight kinds of things. A universal statement says that kinds do not
exist, a particular one that one of some kinds does; sets of kinds are bits of a number.
What is allowed and as much as possible refutes every statement that can be refuted.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence

from rg_env.task_rules.reading.words import as_verdict
from rg_env.task_rules.rules import Entry, ItemCheck, LevelRepair, TaskRules

_STATEMENT = re.compile(r"(All|No|Some) (.+?) are (not )?(.+)")
_ALL_KINDS = 0xFF


@dataclasses.dataclass(frozen=True)
class _Statement:
    """A statement of the form All, No or Some ... are (not) ..."""

    is_universal: bool
    terms: tuple[str, str]
    is_of_both: bool
    """Whether it speaks of what falls under both terms, not of the rest."""

    def kinds(self, terms: Sequence[str]) -> int:
        """Return the kinds that it speaks of."""
        subject, predicate = (_kinds_under(terms.index(t)) for t in self.terms)
        return subject & (predicate if self.is_of_both else _ALL_KINDS & ~predicate)


def _kinds_under(term: int) -> int:
    return sum(1 << kind for kind in range(8) if kind >> term & 1)


def _read(text: str) -> _Statement:
    match = _STATEMENT.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is no categorical statement")
    how, subject, negation, predicate = match.groups()
    is_of_both = how == "No" or (how == "Some" and not negation)
    return _Statement(how != "Some", (subject, predicate), is_of_both)


def follows(premises: Sequence[str], conclusion: str, are_there: bool) -> bool:
    """Say whether a conclusion holds wherever the premises do.

    Args:
        premises: Statements over at most three terms with those of the conclusion.
        conclusion: Another one.
        are_there: Whether something falls under each term.

    Raises:
        ValueError: A text is no such statement.
    """
    *given, concluded = map(_read, [*premises, conclusion])
    terms = sorted({term for each in (*given, concluded) for term in each.terms})
    allowed = _ALL_KINDS
    needed = [_kinds_under(i) for i in range(len(terms))] if are_there else []
    for premise in given:
        kinds = premise.kinds(terms)
        if premise.is_universal:
            allowed &= ~kinds
        else:
            needed.append(kinds)
    kinds = concluded.kinds(terms)
    if concluded.is_universal:
        return not allowed & kinds or any(not allowed & some for some in needed)
    return any(not allowed & ~kinds & some for some in needed)


def _readings(entry: Entry) -> set[str]:
    """Return the answer where terms may be empty, and where they may not."""
    metadata = entry["metadata"]
    premises = [metadata["premise1"], metadata["premise2"]]
    return {
        "Yes" if follows(premises, metadata["conclusion"], are_there) else "No"
        for are_there in (False, True)
    }


RULES = TaskRules(
    "syllogism",
    notation=as_verdict,
    item_checks=(
        ItemCheck(
            "answer is wrong by any reading",
            lambda entry: entry["answer"] not in _readings(entry),
        ),
        ItemCheck(
            "answer depends on whether there are such things, which it does not say",
            lambda entry: len(_readings(entry)) > 1,
        ),
    ),
    level_repair=LevelRepair(
        {0: {"allow_no": True}},
        "level 0 has statements about all alone, of which Yes is right for 93 of 100",
    ),
)
