"""Rules of the arithmetic tasks whose answer is a number or a product."""

from __future__ import annotations

import decimal
import re

from rg_env.task_rules.reading.filler_words import is_wrapper
from rg_env.task_rules.reading.four_operations import exact_value
from rg_env.task_rules.reading.numbers import (
    as_fraction,
    as_number,
    same_number,
)
from rg_env.task_rules.rules import (
    NEARLY,
    Entry,
    ItemCheck,
    LevelRepair,
    LibraryScore,
    ScorerFix,
    TaskRules,
)

# -- chain_sum -------------------------------------------------------------------------


def _decimal(answer: str, entry: Entry, library: LibraryScore) -> float:
    """Score a number, or a wrapper of it.

    The library's `compute_decimal_reward` compares as decimals, tolerating a sign,
    zeros and thousands separators, which stays. Only its fallback, credit for an answer
    that contains the gold one as text, is held to wrappers. The tasks' own scorer is
    one line that calls it, so the digest does not cover the function itself.
    """
    bare, gold = answer.replace(",", ""), entry["answer"].replace(",", "")
    if same_number(bare, gold) or is_wrapper(bare, gold):
        return library(answer)
    return 0.0


DECIMAL_FIX = ScorerFix(
    scorer_sha256="419e44f8d29e1743c1500a09ff4cc239b004fbace7be3c580f90fbd4a15e99e7",
    fault="Gives credit for a longer number that contains the right one.",
    score=_decimal,
)
"""The scorer fix of chain_sum and products."""

CHAIN_SUM = TaskRules("chain_sum", notation=as_number, fix=DECIMAL_FIX)


# -- decimal_arithmetic ----------------------------------------------------------------

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


DECIMAL_ARITHMETIC = TaskRules(
    "decimal_arithmetic",
    fix=ScorerFix(
        scorer_sha256="ae3b745c4d0dbb0829785cd0bde50b2733d3d048309a1186185d5d4a0617d404",
        fault="Numbers within 0.001 score 1.0 where 12 digits are required.",
        score=_all_digits,
    ),
)


# -- fraction_simplification -----------------------------------------------------------

_LATEX_FRACTION = re.compile(r"\\d?frac\{\d+\}\{\d+\}", re.IGNORECASE)


def _fraction(answer: str, entry: Entry, library: LibraryScore) -> float:
    if "frac" in answer.lower():
        bare = "".join(answer.split()).strip("$.")
        return library(answer) if _LATEX_FRACTION.fullmatch(bare) else 0.0
    return library(answer)


FRACTION_SIMPLIFICATION = TaskRules(
    "fraction_simplification",
    notation=as_fraction,
    fix=ScorerFix(
        scorer_sha256="aa013e4952b0d79b9b896b0d46db0ab3ee6888e85c8df21a283d4efb0a3f823f",
        fault="Ignores what follows a LaTeX fraction, even a second one.",
        score=_fraction,
    ),
)


# -- gsm_symbolic ----------------------------------------------------------------------

_FIRST_NUMBER = re.compile(r"-?\b\d+(?:\.\d+)?\b")
_PERCENT = re.compile("%|percent")


def _asked(entry: Entry) -> str:
    """Return the sentence that asks, without its question mark."""
    return str(entry.get("question", "")).rpartition("?")[0].rpartition(". ")[2]


def _only_number(answer: str, entry: Entry, library: LibraryScore) -> float:
    """Score a number with its sign, if there is no other.

    Where the right number is negative the library scores 0, and this 1.0.
    """
    asked = _asked(entry)
    bare = _PERCENT.sub(" ", answer) if _PERCENT.search(asked) else answer
    number = _FIRST_NUMBER.search(bare)
    if number is None or not is_wrapper(bare, number[0], asked):
        return 0.0
    if number[0].startswith("-"):
        return float(float(number[0]) == float(entry["answer"]))
    return library(answer)


_STEP = re.compile(r"([\d.]+(?:\s*[-+*/]\s*[\d.]+)+)\s*=\s*(\d+)(?![\d.])")
"""A step of the library's solution, `5*0.5=2`, with a whole number."""


def _rounds_down(entry: Entry) -> bool:
    steps = _STEP.findall(entry["metadata"]["answer_cot"])
    values = [(exact_value(sides), int(whole)) for sides, whole in steps]
    return any(v is not None and v // 1 == n != v for v, n in values)


GSM_SYMBOLIC = TaskRules(
    "gsm_symbolic",
    fix=ScorerFix(
        scorer_sha256="39d8f8174f9dad30e1fff8a01577ef74fc809f9cc0f3a148e112cdb43e49abcd",
        fault="Takes the first number without its sign and ignores what follows.",
        score=_only_number,
    ),
    item_checks=(ItemCheck("solution rounds a part of a thing down", _rounds_down),),
    fixed_level=(
        "the library has no curriculum for it, and its difficulty takes"
        " the value 1.0 alone"
    ),
    is_rebuilt=True,
)


# -- number_format ---------------------------------------------------------------------

# The rounding error of candidates that have nine digits before the point.
NOISE = 1e-6

# Candidates of number_format are floats of nine digits before the point.
SAME_NUMBER = 1e-5


def _candidate(answer: str, entry: Entry, library: LibraryScore) -> float:
    """Score the right candidate of the question, and no other.

    The library's numbers have noise in their last digits, which not all that is shown
    of them has: `940803934.563` for 940803934.5630001.
    """
    value, metadata = library(answer), entry["metadata"]
    if value < 1.0:
        return value
    match, solution = float(answer.replace(",", "")), metadata["solution"]
    meant = {n for n in metadata.get("candidates", []) if abs(n - match) < NOISE}
    return value if meant == {solution} or match == solution else NEARLY


def _reads_alike(entry: Entry) -> bool:
    candidates = entry["metadata"]["formatted_candidates"]
    numbers = [float(number.replace(",", "")) for number in candidates]
    return max(numbers) - min(numbers) < SAME_NUMBER


NUMBER_FORMAT = TaskRules(
    "number_format",
    fix=ScorerFix(
        scorer_sha256="661dda4216e791dfc785767b986aab4a537cd34bf7f6f724e826160f9384a856",
        fault="Any number within 0.01 of the right candidate scores 1.0.",
        score=_candidate,
    ),
    item_checks=(
        ItemCheck("candidates are one number at the digits shown", _reads_alike),
    ),
    level_repair=LevelRepair(
        {2: {"max_delta": 1.0}, 3: {"max_delta": 0.1}},
        "levels 2 and 3 ask for numbers that differ in fewer decimals than the three"
        " that are made, so that any of them is right",
    ),
)


# -- prime_factorization ---------------------------------------------------------------

TIMES = "\N{MULTIPLICATION SIGN}"
_PRODUCT = re.compile(rf"\s*\d{{1,40}}(?:\s*{TIMES}\s*\d{{1,40}}){{0,200}}\s*")


def _factors(answer: str, entry: Entry, library: LibraryScore) -> float:
    """Score by the splits made, where the product is right.

    The library's 0.5 stays where one split is missing. With more missing it is their
    share of 0.5, so that halving every number scores little; a factor of 1 scores 0.
    """
    if not _PRODUCT.fullmatch(answer):
        return 0.0
    value = library(answer)
    if not 0.05 < value < 1.0:
        return value
    factors = [int(factor) for factor in answer.split(TIMES) if factor.strip()]
    splits, wanted = len(factors) - 1, entry["answer"].count(TIMES)
    if splits < 1 or min(factors) < 2:
        return 0.0
    return value if splits == wanted - 1 else value * splits / wanted


PRIME_FACTORIZATION = TaskRules(
    "prime_factorization",
    fix=ScorerFix(
        scorer_sha256="d3237737b9da3335fa9ceb1d73d8f14736b4ee0fe9729625c552e70b5e503b5e",
        fault="Gives 0.5 to the number itself as its only factor.",
        score=_factors,
    ),
)
