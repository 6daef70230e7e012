r"""Expressions, in the ways that their question leaves open.

Signs and brackets are written as the scorers read them (`\times` is `*`), the name of
a constant or of a point is taken off, and a list of solutions is joined by commas.
Nothing is worked out: a sum stays the sum it is, and a product the product.

Where the question forbids a form, as the integrations forbid `^`, it is left alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from rg_env.task_rules.reading.notation import Spelling, of_short_text
from rg_env.task_rules.reading.written_numbers import read_number

MAX_CHARS = 2_000

# -- signs -----------------------------------------------------------------------------

_SIGNS = (
    (re.compile(r"\\left(?=[(\[{])|\\right(?=[)\]}])"), ""),
    (re.compile(r"\\times|\\cdot|\\ast|[\u00d7\u00b7\u22c5\u2217\u2715\u2022]"), "*"),
    (re.compile(r"(?<=[\d)\]])\s*[xX]\s*(?=[\d(\[])"), " * "),
    (re.compile(r"\\div|[\u00f7\u2044\u2215]"), "/"),
    (re.compile("[\u2212\u2013\u2014]"), "-"),
    (re.compile("\uff0b"), "+"),
    (re.compile(r"\\?[\[{]"), "("),
    (re.compile(r"\\?[\]}]"), ")"),
)
_ONLY_ARITHMETIC = re.compile(r"[\d\s+\-*/()]+")


def _target_of(entry: Mapping[str, Any]) -> str:
    return str(entry.get("metadata", {}).get("target", 24))


def as_sum(answer: str, entry: Mapping[str, Any]) -> str:
    """Write a sum with `* / - ( )` and without the number that it is to make."""
    if len(answer) > MAX_CHARS:
        return answer
    plain, target = answer, _target_of(entry)
    for sign, written in _SIGNS:
        plain = sign.sub(written, plain)
    sides = [side.strip() for side in plain.split("=")]
    if len(sides) == 2 and target in sides:
        plain = sides[sides[0] == target]
    plain = plain.strip()
    return plain if _ONLY_ARITHMETIC.fullmatch(plain) else answer


# -- factors ---------------------------------------------------------------------------

MAX_POWER = 64

_TIMES = "\N{MULTIPLICATION SIGN}"
_RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")
_POWERS_ABOVE = re.compile(r"[⁰¹²³⁴⁵⁶⁷⁸⁹]+")
_BETWEEN = re.compile(
    r"\s*(?:\*(?!\*)|[x,;\u00d7\u00b7\u22c5\u2217\u2022]|\\times|\\cdot|\\ast)\s*"
    r"|\s+and\s+",
    re.IGNORECASE,
)
_FACTOR = re.compile(r"(\d{1,30})(?:\s*(?:\^|\*\*)\s*[{(]?\s*(\d{1,2})\s*[)}]?)?")


def as_factors(answer: str, entry: Mapping[str, Any]) -> str:
    r"""Write the factors of a product one by one: `2^2 \cdot 3` has 2, 2 and 3."""
    if len(answer) > MAX_CHARS:
        return answer
    text = _POWERS_ABOVE.sub(lambda found: "^" + found[0].translate(_RAISED), answer)
    text = text.replace("**", "^")
    sides = [side.strip() for side in text.split("=")]
    number = str(entry.get("metadata", {}).get("number", ""))
    if len(sides) == 2 and number in sides:
        text = sides[sides[0] == number]
    text = text.strip("[](){} \n")
    if "^" in text and not text.endswith(tuple("0123456789")):
        text += "}"
    factors: list[str] = []
    for piece in _BETWEEN.split(text):
        match = _FACTOR.fullmatch(piece.strip().strip("()"))
        if match is None or int(match[2] or 1) > MAX_POWER:
            return answer
        factors.extend([match[1]] * int(match[2] or 1))
    return f" {_TIMES} ".join(factors)


# -- complex numbers -------------------------------------------------------------------

_DIGITS = r"\d{1,40}(?:,\d{3})*(?:\.\d{1,40})?"
_TERM = re.compile(
    rf"\s*(?P<sign>[+-])?\s*(?:(?P<number>{_DIGITS})\s*\*?\s*(?P<unit>[ij])?|(?P<alone>[ij]))"
)


def as_complex_number(answer: str, entry: Mapping[str, Any]) -> str:
    """Write a complex number with its real part first: `4i - 9` is `-9+4i`."""
    text = answer.replace("\u2212", "-")
    while text.startswith("(") and text.endswith(")"):
        text = text[1:-1].strip()
    parts: dict[bool, str] = {}
    at = 0
    while at < len(text):
        match = _TERM.match(text, at)
        if match is None or (at and not match["sign"]):
            return answer
        imaginary = bool(match["unit"] or match["alone"])
        if imaginary in parts:
            return answer
        digits = (match["number"] or "1").replace(",", "")
        parts[imaginary] = (match["sign"] or "+") + digits
        at = match.end()
        while at < len(text) and text[at].isspace():
            at += 1
    if not parts:
        return answer
    real, other = parts.get(False, "").removeprefix("+"), parts.get(True, "")
    if not other:
        return real
    return f"{real} {other[0]} {other[1:]}i" if real else f"{other.removeprefix('+')}i"


# -- solutions and points --------------------------------------------------------------

_BETWEEN_SOLUTIONS = re.compile(r"\s*(?:[,;\n]|\bor\b|\band\b)\s*")
_NAMED = re.compile(
    r"(?:[A-Za-z](?:_?\{?\d{1,2}\}?|[\u2080-\u2089])?\s*(?:=|\u2248|\\approx)\s*"
    r"|[A-Za-z]\s*(?:\u2208|\\in)\s*)"
)
_BRACKETS = (("[", "]"), ("(", ")"), ("{", "}"), (r"\{", r"\}"))


def _without_brackets(text: str) -> str:
    text = text.strip()
    for opening, closing in _BRACKETS:
        inside = text[len(opening) : -len(closing)]
        if text.startswith(opening) and text.endswith(closing) and len(text) > 1:
            return inside.strip().removesuffix("\\").strip()
    return text


def as_solutions(answer: str, entry: Mapping[str, Any]) -> str:
    """Write the solutions of an equation as numbers that are joined by commas."""
    if len(answer) > MAX_CHARS or not any(map(str.isdigit, answer)):
        return answer
    variable = str(entry.get("metadata", {}).get("variable", ""))
    text = answer.replace("$", "").strip()
    named = _NAMED.match(text)
    if named and not named[0].startswith(variable):
        return answer
    text = _without_brackets(text[named.end() :] if named else text)
    solutions = []
    for piece in _BETWEEN_SOLUTIONS.split(text):
        if not piece:
            continue
        named = _NAMED.match(piece)
        if named and not named[0].startswith(variable):
            return answer
        number = read_number(piece[named.end() :] if named else piece)
        if number is None or number.bottom is not None:
            return answer
        solutions.append(number.text)
    return ", ".join(solutions)


# -- antiderivatives -------------------------------------------------------------------

_CONSTANT = (
    r"(?:(?:an?\s+)?(?:arbitrary\s+)?(?:integration\s+)?const(?:ant|\.)?"
    r"(?:\s+of\s+integration)?|[A-DF-HJ-MP-Wa-df-hj-mp-w](?:_?\{?\d\}?|[\u2080-\u2089])?)"
)
_CONSTANT_LAST = re.compile(rf"(?<=[\s\w)])\s*\+\s*\(?{_CONSTANT}\)?$", re.IGNORECASE)
_CONSTANT_FIRST = re.compile(rf"^{_CONSTANT}\s*\+\s*", re.IGNORECASE)
_FUNCTION_OF = re.compile(r"[A-Za-z]\(\w\)\s*=\s*")
_LONG_NAMES = re.compile(r"\barc(?=(?:sin|cos|tan|cot|sec|csc)h?\()")


def as_antiderivative(answer: str, entry: Mapping[str, Any]) -> str:
    """Name the constant of integration `C`, and inverse functions as sympy does."""
    variable = str(entry.get("metadata", {}).get("variable", "x"))
    text = _FUNCTION_OF.sub("", answer, count=1)
    text = _LONG_NAMES.sub("a", text)
    match = _CONSTANT_LAST.search(text)
    if match and match[0].strip("+ \t") == "C":
        return text
    if match and match[0].strip("+() \t") != variable:
        return text[: match.start()] + " + C"
    match = _CONSTANT_FIRST.match(text)
    if match and match[0].strip("+ \t") != variable:
        return text[match.end() :] + " + C"
    return text


SPELLINGS: Mapping[str, Spelling] = {
    "complex_arithmetic": of_short_text(as_complex_number),
    "intermediate_integration": of_short_text(as_antiderivative),
    "polynomial_equations": as_solutions,
    "prime_factorization": as_factors,
    "simple_integration": of_short_text(as_antiderivative),
}
"""Task to its spelling."""
