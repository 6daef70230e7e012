"""decimal_arithmetic: a calculation to so many digits."""

from __future__ import annotations

import decimal
import re

from rg_env.task_rules.reading.numbers import same_number, written_plainly
from rg_env.task_rules.reading.sums import exact_value
from rg_env.task_rules.rules import NEARLY, Entry, LibraryScore, ScorerFix, TaskRules

_DIGITS_ASKED_FOR = re.compile(r"maximum of (\d{1,2}) significant digits")


def _rounded_as_asked(question: str) -> decimal.Decimal | None:
    """Work out a question and round once, at the end, as it says."""
    asked = _DIGITS_ASKED_FOR.search(question)
    exact = exact_value(question.rpartition("\n")[2].partition("=")[0])
    if asked is None or exact is None:
        return None
    rounding = decimal.Context(int(asked[1]), decimal.ROUND_HALF_UP)
    return rounding.divide(
        decimal.Decimal(exact.numerator), decimal.Decimal(exact.denominator)
    )


def _all_digits(answer: str, entry: Entry, library: LibraryScore) -> float:
    """Score a number in all digits that its question asks for.

    The library rounds after every operation, so in one item of 16 its own last digits
    are not those of the question; both are right there.
    """
    value = library(answer)
    if value < 1.0 or same_number(answer, entry["answer"]):
        return value
    right = _rounded_as_asked(entry["question"])
    return value if right is not None and same_number(answer, str(right)) else NEARLY


RULES = TaskRules(
    "decimal_arithmetic",
    notation=written_plainly,
    fix=ScorerFix(
        scorer_sha256="ae3b745c4d0dbb0829785cd0bde50b2733d3d048309a1186185d5d4a0617d404",
        fault="Numbers within 0.001 score 1.0 where 12 digits are required.",
        score=_all_digits,
    ),
)
