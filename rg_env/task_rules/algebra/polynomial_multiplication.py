"""polynomial_multiplication: a product as a sum.

The fix is about what an answer by hand can contain; keeping text away from the parser
is the guard's work.
"""

from __future__ import annotations

import re
import string

from rg_env.task_rules.reading.expressions import ExpressionBounds, expression_guard
from rg_env.task_rules.rules import Entry, LibraryScore, ScorerFix, TaskRules

_NAME = re.compile(r"[^\W\d]\w*")
_EXPRESSION = re.compile(r"[\w\s+\-*/^().]*")
_PRODUCT_OF_BRACKETS = re.compile(r"\)\(|\)\*(?!\*)|(?<!\*)\*\(")
_NUMBER_TIMES_SUM = re.compile(r"-?\d+\*\(([^()]+)\)")
_BOUNDS = ExpressionBounds(
    names=frozenset(string.ascii_lowercase + "XYZ"),
    powers=True,
    max_chars=8_000,
    max_digits=120,
    max_tokens=2_000,
    max_exponent=200,
    max_degree=400,
)


def _expanded_polynomial(answer: str, entry: Entry, library: LibraryScore) -> float:
    """Score a sum; `2*(x + 3)` is one too, if the question has no such sum."""
    if answer == entry["answer"]:
        return library(answer)
    has_words = any(len(name) > 1 for name in _NAME.findall(answer))
    if has_words or not _EXPRESSION.fullmatch(answer):
        return 0.0
    plain = "".join(answer.split())
    undone = _PRODUCT_OF_BRACKETS.search(plain)
    factored = _NUMBER_TIMES_SUM.fullmatch(plain)
    if factored and factored[1] not in "".join(entry["question"].split()):
        undone = None
    return 0.0 if undone else library(answer)


RULES = TaskRules(
    "polynomial_multiplication",
    guard=expression_guard(
        _BOUNDS,
        "a polynomial; at high levels 6,174 characters, 83 digits, exponents to 99",
    ),
    fix=ScorerFix(
        scorer_sha256="5d0893d7e0fabb2e8cf0e6cc82fc3f5bbaaee2d02b73d56e08246d8c395f0752",
        fault="A second expression behind `or`, a comment, `expand(...)` and"
        " undone products score 1.0.",
        score=_expanded_polynomial,
    ),
)
