"""prime_factorization: the prime factors of a number."""

from __future__ import annotations

import re

from rg_env.task_rules.reading.sums import without_side
from rg_env.task_rules.rules import (
    Entry,
    LibraryScore,
    ScorerFix,
    TaskRules,
)

TIMES = "\N{MULTIPLICATION SIGN}"
_PRODUCT = re.compile(rf"\s*\d{{1,40}}(?:\s*{TIMES}\s*\d{{1,40}}){{0,200}}\s*")
MAX_CHARS = 2_000
MAX_POWER = 64
_RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")
_POWERS_ABOVE = re.compile(r"[⁰¹²³⁴⁵⁶⁷⁸⁹]+")
_BETWEEN = re.compile(
    r"\s*(?:\*(?!\*)|[x,;\u00d7\u00b7\u22c5\u2217\u2022]|\\times|\\cdot|\\ast)\s*"
    r"|\s+and\s+",
    re.IGNORECASE,
)
_FACTOR = re.compile(r"(\d{1,30})(?:\s*(?:\^|\*\*)\s*[{(]?\s*(\d{1,2})\s*[)}]?)?")


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
    made, wanted = len(factors) - 1, entry["answer"].count(TIMES)
    if made < 1 or min(factors) < 2:
        return 0.0
    return value if made == wanted - 1 else value * made / wanted


def _one_by_one(answer: str, entry: Entry) -> str:
    r"""Write the factors of a product one by one: `2^2 \cdot 3` has 2, 2 and 3."""
    if len(answer) > MAX_CHARS:
        return answer
    text = _POWERS_ABOVE.sub(lambda found: "^" + found[0].translate(_RAISED), answer)
    number = str(entry.get("metadata", {}).get("number", ""))
    text = without_side(text.replace("**", "^"), number).strip("[](){} \n")
    if "^" in text and not text.endswith(tuple("0123456789")):
        text += "}"
    factors: list[str] = []
    for piece in _BETWEEN.split(text):
        match = _FACTOR.fullmatch(piece.strip().strip("()"))
        if match is None or int(match[2] or 1) > MAX_POWER:
            return answer
        factors.extend([match[1]] * int(match[2] or 1))
    return f" {TIMES} ".join(factors)


RULES = TaskRules(
    "prime_factorization",
    notation=_one_by_one,
    fix=ScorerFix(
        scorer_sha256="d3237737b9da3335fa9ceb1d73d8f14736b4ee0fe9729625c552e70b5e503b5e",
        fault="Gives 0.5 to the number itself as its only factor.",
        score=_factors,
    ),
)
