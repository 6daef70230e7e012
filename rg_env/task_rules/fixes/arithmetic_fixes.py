"""Fixes of the category arithmetic.

No fix for bitwise_arithmetic, calendar_arithmetic, decimal_chain_sum, dice and
power_function: nothing was found that they overpay beyond a near miss.
"""

from __future__ import annotations

import decimal
import re

from rg_env.task_rules.reading.exact_sums import exact_value
from rg_env.task_rules.reading.talk_around_answers import is_wrapper
from rg_env.task_rules.scorer_fix import Entry, LibraryScore, ScorerFix

TIME_CREDIT_FROM = 0.9
"""Below this a time interval earns nothing.

The library pays 1 - error / largest possible difference, so that 50 of 100 days is
worth 0.75 on average. From here on a constant is near one answer in five at most.
"""

NEARLY = 0.4
"""What a number is worth that the library's tolerance takes for the right one."""

NOISE = 1e-6
"""Of candidates that have nine digits before the point."""

TIMES = "\N{MULTIPLICATION SIGN}"

_FIRST_NUMBER = re.compile(r"-?\b\d+(?:\.\d+)?\b")
_PRODUCT = re.compile(rf"\s*\d{{1,40}}(?:\s*{TIMES}\s*\d{{1,40}}){{0,200}}\s*")
_LATEX_FRACTION = re.compile(r"\\d?frac\{\d+\}\{\d+\}", re.IGNORECASE)
_DAYS = re.compile(r"(?:-(?=[1-9]))?\d+(?:\s+days?)?\.?")
_CLOCK = re.compile(r"\d+:\d+(?::\d+(?:\.\d+)?)?")
_DAYS_AND_CLOCK = re.compile(rf"(?:-(?=[1-9]))?\d+ days,\s*{_CLOCK.pattern}")


def _same_number(answer: str, gold: str) -> bool:
    try:
        return decimal.Decimal(answer) == decimal.Decimal(gold)
    except decimal.InvalidOperation:
        return False


def _decimal(answer: str, entry: Entry, library: LibraryScore) -> float:
    """Score chain_sum and products: a number, or a wrapper of it.

    The library's `compute_decimal_reward` compares as decimals, tolerating a sign,
    zeros and thousands separators, which stays. Only its fallback, credit for an answer
    that contains the gold one as text, is held to wrappers. The tasks' own scorer is
    one line that calls it, so the digest does not cover the function itself.
    """
    bare, gold = answer.replace(",", ""), entry["answer"].replace(",", "")
    if _same_number(bare, gold) or is_wrapper(bare, gold):
        return library(answer)
    return 0.0


def _longer_number(entry: Entry) -> str:
    return f"1{entry['answer']}"


_DIGITS_ASKED_FOR = re.compile(r"maximum of (\d{1,2}) significant digits")


def _rounded_as_asked(question: str) -> decimal.Decimal | None:
    """Work out the question and round once, at the end, as it says."""
    asked = _DIGITS_ASKED_FOR.search(question)
    exact = exact_value(question.rpartition("\n")[2].partition("=")[0])
    if asked is None or exact is None:
        return None
    rounding = decimal.Context(int(asked[1]), decimal.ROUND_HALF_UP)
    return rounding.divide(
        decimal.Decimal(exact.numerator), decimal.Decimal(exact.denominator)
    )


def _all_digits(answer: str, entry: Entry, library: LibraryScore) -> float:
    """Score decimal_arithmetic: in all digits that the question asks for.

    The library rounds after every operation, so in one item of 16 its own last digits
    are not those of the question; both are right there.
    """
    value = library(answer)
    if value < 1.0 or _same_number(answer, entry["answer"]):
        return value
    right = _rounded_as_asked(entry["question"])
    return value if right is not None and _same_number(answer, str(right)) else NEARLY


def _in_the_fourth_place(entry: Entry) -> str:
    """Return a number that is off by less than the library's tolerance."""
    return str(decimal.Decimal(entry["answer"]) + decimal.Decimal("0.0009"))


def _candidate(answer: str, entry: Entry, library: LibraryScore) -> float:
    """Score number_format: the right candidate of the question, and no other.

    The library's numbers have noise in their last digits, which not all that is shown
    of them has: `940803934.563` for 940803934.5630001.
    """
    value, metadata = library(answer), entry["metadata"]
    if value < 1.0:
        return value
    found, solution = float(answer.replace(",", "")), metadata["solution"]
    meant = {n for n in metadata.get("candidates", []) if abs(n - found) < NOISE}
    return value if meant == {solution} or found == solution else NEARLY


def _beside_the_candidate(entry: Entry) -> str:
    return str(decimal.Decimal(entry["answer"]) + decimal.Decimal("0.009"))


def _fraction(answer: str, entry: Entry, library: LibraryScore) -> float:
    """Score fraction_simplification: nothing may follow a LaTeX fraction."""
    if "frac" in answer.lower():
        bare = "".join(answer.split()).strip("$.")
        return library(answer) if _LATEX_FRACTION.fullmatch(bare) else 0.0
    return library(answer)


def _two_fractions(entry: Entry) -> str:
    parts = entry["metadata"]
    numerator, denominator = (
        parts["simplified_numerator"],
        parts["simplified_denominator"],
    )
    return rf"\frac{{{numerator}}}{{{denominator}}} or \frac{{{denominator}}}{{7}}"


def _only_number(answer: str, entry: Entry, library: LibraryScore) -> float:
    """Score gsm_symbolic: a number counts with its sign and if there is no other.

    Where the right number is negative the library pays nothing, and this 1.0.
    """
    asked = entry.get("question", "").rpartition("?")[0].rpartition(". ")[2]
    bare = answer
    if re.search("%|percent", asked):
        bare = re.sub("%|percent", " ", answer)
    number = _FIRST_NUMBER.search(bare)
    if number is None or not is_wrapper(bare, number.group(), asked):
        return 0.0
    if number.group().startswith("-"):
        return float(float(number.group()) == float(entry["answer"]))
    return library(answer)


def _with_a_sign(entry: Entry) -> str:
    return f"-{entry['answer']}"  # not overpaid where gold is negative: 1 in 200


def _factors(answer: str, entry: Entry, library: LibraryScore) -> float:
    """Score prime_factorization by the splits made, where the product is right.

    The library's 0.5 stays where one split is missing. With more missing it is their
    share of 0.5, so that halving every number earns little; a factor of 1 earns 0.
    """
    if not _PRODUCT.fullmatch(answer):
        return 0.0
    value = library(answer)
    if not 0.05 < value < 1.0:
        return value
    factors = [int(factor) for factor in answer.split(TIMES) if factor.strip()]
    made = len(factors) - 1
    wanted = entry["answer"].count(TIMES)
    if made < 1 or min(factors) < 2:
        return 0.0
    return value if made == wanted - 1 else value * made / wanted


def _one_times_gold(entry: Entry) -> str:
    return f"1 {TIMES} {entry['answer']}"


def _interval(answer: str, entry: Entry, library: LibraryScore) -> float:
    """Score time_intervals: one interval and nothing else, and near the right one."""
    kind = entry["metadata"]["task_type"]
    form = _DAYS_AND_CLOCK
    if kind == "date":
        form = _DAYS
    elif kind.startswith("time"):
        form = _CLOCK
    if not form.fullmatch(answer.strip()):
        return 0.0
    value = library(answer)
    return value if value >= TIME_CREDIT_FROM else 0.0


def _far_interval(entry: Entry) -> str:
    """Return an interval that is off by 30 days, or by 7 hours where it has no days."""
    gold = entry["answer"]
    shift = 30 if "day" in gold else 7
    first = re.split(r"\D", gold, maxsplit=1)[0]
    return f"{int(first) + shift:02d}{gold[len(first) :]}"


FIXES: tuple[ScorerFix, ...] = (
    *(
        ScorerFix(
            task=task,
            scorer_sha256="419e44f8d29e1743c1500a09ff4cc239b004fbace7be3c580f90fbd4a15e99e7",
            fault="A longer number that contains the right one is paid by its length.",
            proof=_longer_number,
            proof_pays=0.5,
            score=_decimal,
        )
        for task in ("chain_sum", "products")
    ),
    ScorerFix(
        task="decimal_arithmetic",
        scorer_sha256="ae3b745c4d0dbb0829785cd0bde50b2733d3d048309a1186185d5d4a0617d404",
        fault="Any number within 0.001 scores 1.0 where 12 digits are asked for.",
        proof=_in_the_fourth_place,
        proof_pays=1.0,
        score=_all_digits,
    ),
    ScorerFix(
        task="fraction_simplification",
        scorer_sha256="aa013e4952b0d79b9b896b0d46db0ab3ee6888e85c8df21a283d4efb0a3f823f",
        fault="Whatever follows a LaTeX fraction is ignored, also a second one.",
        proof=_two_fractions,
        proof_pays=1.0,
        score=_fraction,
    ),
    ScorerFix(
        task="gsm_symbolic",
        scorer_sha256="39d8f8174f9dad30e1fff8a01577ef74fc809f9cc0f3a148e112cdb43e49abcd",
        fault="It takes the first number without its sign and ignores what follows.",
        proof=_with_a_sign,
        proof_pays=1.0,
        score=_only_number,
    ),
    ScorerFix(
        task="number_format",
        scorer_sha256="661dda4216e791dfc785767b986aab4a537cd34bf7f6f724e826160f9384a856",
        fault="Any number within 0.01 of the right candidate scores 1.0.",
        proof=_beside_the_candidate,
        proof_pays=1.0,
        score=_candidate,
    ),
    ScorerFix(
        task="prime_factorization",
        scorer_sha256="d3237737b9da3335fa9ceb1d73d8f14736b4ee0fe9729625c552e70b5e503b5e",
        fault="The number of the question, taken as its only factor, scores 0.5.",
        proof=_one_times_gold,
        proof_pays=0.5,
        score=_factors,
    ),
    ScorerFix(
        task="time_intervals",
        scorer_sha256="1ae24e969375fd66478c6046c7d4c7353da9c7955273617a594f925d149bb361",
        fault="An interval in the middle of the range scores 0.75 on average, and what"
        " follows the first interval is ignored.",
        proof=_far_interval,
        proof_pays=0.6,
        score=_interval,
    ),
)
