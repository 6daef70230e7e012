"""Wrong answers near the right one: a digit changed, a row dropped, two answers.

Each change is a pure function of the right answer and a generator of chance; None where
it does not apply. Whether what comes out is wrong is not known here: see
`tools/answer_texts/surely_wrong.py`.
"""

from __future__ import annotations

import random
import re
import string
from collections.abc import Callable, Mapping
from decimal import Decimal

from tools.answer_texts.formatting import forms_of

Change = Callable[[str, random.Random], "str | None"]
"""(right answer, or a part of it, chance) to a wrong one."""

PartsChange = Callable[[list[str], random.Random], "list[str] | None"]
"""(parts of the right answer, chance) to those of a wrong one."""

OTHER = "\0"
"""The place of another answer in a wrong one."""


def _in_one(pattern: str, change: Change) -> Change:
    """Change one of the places in an answer that a pattern finds, by chance."""

    def changed(right: str, chance: random.Random) -> str | None:
        found = list(re.finditer(pattern, right))
        if not found:
            return None
        match = chance.choice(found)
        part = change(match.group(), chance)
        return f"{right[: match.start()]}{part}{right[match.end() :]}"

    return changed


def _of_number(change: Callable[[float, str], str | None]) -> Change:
    """Change an answer that is one number."""

    def changed(right: str, chance: random.Random) -> str | None:
        if not re.fullmatch(r"[+-]?\d+(?:\.\d+)?", right) or len(right) > 15:
            return None
        return change(float(right), right)

    return changed


def _another(sign: str, chance: random.Random) -> str:
    """Return another digit for a digit, and another letter for any other sign."""
    signs = string.digits if sign.isdigit() else string.ascii_lowercase
    new = chance.choice([each for each in signs if each != sign.lower()])
    return new.upper() if sign.isupper() else new


# -- numbers ---------------------------------------------------------------------------

_NUMBER = r"\d+(?:\.\d+)?"


def _more(by: int) -> Change:
    def change(text: str, chance: random.Random) -> str:
        places = len(text.partition(".")[2])
        return f"{Decimal(text) + by * Decimal(10) ** -places:.{places}f}"

    return change


NUMBERS: Mapping[str, Change] = {
    "another digit": _in_one(r"\d", _another),
    "a digit less": _in_one(r"\d(?=\d)|(?<=\d)\d", lambda digit, chance: ""),
    "a digit twice": _in_one(_NUMBER, lambda text, chance: text + text[-1]),
    "a zero more": _in_one(_NUMBER, lambda text, chance: f"{text}0"),
    "one more": _in_one(_NUMBER, _more(1)),
    "one less": _in_one(_NUMBER, _more(-1)),
    "two more": _in_one(_NUMBER, _more(2)),
    "1 % more": _of_number(lambda value, text: f"{value * 1.01:.10g}"),
    "one hundredth more": _of_number(lambda value, text: f"{value + 0.01:.4f}"),
    "another sign": _in_one(
        r"\A-?(?=[\d.(x$\\].*\Z)", lambda sign, chance: "" if sign else "-"
    ),
    "a sign inside": _in_one(
        r"(?<!^)[+-]", lambda sign, chance: "-" if sign == "+" else "+"
    ),
    "without decimals": _in_one(r"\.\d+\Z", lambda decimals, chance: ""),
    "ten times": _of_number(lambda value, text: f"{value * 10:.10g}"),
    "a tenth": _of_number(lambda value, text: f"{value / 10:.10g}"),
}

# -- parts -----------------------------------------------------------------------------

_WORD = r"[^\W\d_]{2,}"


def _without_one(parts: list[str], chance: random.Random) -> list[str]:
    at = chance.randrange(len(parts))
    return parts[:at] + parts[at + 1 :]


def _one_twice(parts: list[str], chance: random.Random) -> list[str]:
    at = chance.randrange(len(parts))
    return parts[: at + 1] + parts[at:]


def _two_swapped(parts: list[str], chance: random.Random) -> list[str] | None:
    first = chance.randrange(len(parts))
    others = [i for i in range(len(parts)) if parts[i] != parts[first]]
    if not others:
        return None
    second = chance.choice(others)
    parts[first], parts[second] = parts[second], parts[first]
    return parts


def _one_replaced(parts: list[str], chance: random.Random) -> list[str] | None:
    at = chance.randrange(len(parts))
    others = [part for part in parts if part != parts[at]]
    if not others:
        return None
    return [*parts[:at], chance.choice(others), *parts[at + 1 :]]


def _letters(change: PartsChange) -> Change:
    return _in_one(
        _WORD, lambda word, chance: "".join(change(list(word), chance) or [])
    )


def _entries(change: PartsChange) -> Change:
    """Change the entries of an answer; what stands between them stays."""

    def changed(right: str, chance: random.Random) -> str | None:
        *parts, end = re.split(r"([^\s,\[\]{}]+)", right)
        gaps = parts[2::2]
        entries = change(parts[1::2], chance) if gaps else None
        if entries is None:
            return None
        gaps += gaps[-1:] * len(entries)
        others = map("".join, zip(entries[:-1], gaps, strict=False))
        return "".join((*parts[:1], *others, entries[-1], end))

    return changed


def _lines(change: PartsChange) -> Change:
    def changed(right: str, chance: random.Random) -> str | None:
        lines = right.split("\n")
        return "\n".join(change(lines, chance) or []) if len(lines) > 1 else None

    return changed


PARTS: Mapping[str, Change] = {
    "another letter": _in_one(r"[^\W\d_](?=[^\W\d_])|(?<=[^\W\d_])[^\W\d_]", _another),
    "a letter less": _letters(_without_one),
    "a letter twice": _letters(_one_twice),
    "two letters swapped": _letters(_two_swapped),
    "a letter more": lambda right, chance: f"{right}s",
    "the other case": lambda right, chance: (
        right.swapcase() if right.upper() != right.lower() else None
    ),
    "one word in the other case": _in_one(_WORD, lambda word, chance: word.swapcase()),
    "backwards": lambda right, chance: right[::-1],
    "two entries swapped": _entries(_two_swapped),
    "an entry less": _entries(_without_one),
    "the last entry less": _entries(lambda entries, _: entries[:-1]),
    "an entry twice": _entries(_one_twice),
    "another entry": _entries(_one_replaced),
    "the opposite order": _entries(lambda entries, _: entries[::-1]),
    "given twice": _entries(lambda entries, _: [*entries, *entries]),
    "a line less": _lines(_without_one),
    "a line twice": _lines(_one_twice),
    "lines in the opposite order": _lines(lambda lines, _: lines[::-1]),
    "a tenth cut off": lambda right, chance: right[: len(right) * 9 // 10],
    "its first half": lambda right, chance: right[: len(right) // 2],
    "its first signs": lambda right, chance: right[:3] if right[3:] else None,
    "another last sign": _in_one(r".\Z", _another),
}

# -- two answers, words that deny, and what makes another number -----------------------


def _filled(form: str) -> Change:
    """Write the right answer of one line (X), or another one (Y) with it or alone."""

    def changed(right: str, chance: random.Random) -> str | None:
        if not right or ("Y" not in form and "\n" in right):
            return None
        return form.replace("Y", OTHER).replace("X", right)

    return changed


def _if_number(form: str) -> Change:
    """Write a number in a form that makes another one of it; 0, 1 and 2 may stay."""
    return _of_number(
        lambda value, text: form.replace("X", text) if abs(value) > 2 else None
    )


_ANOTHER = r"""
Y | Answer: Y | X or Y | Y or X | X and Y | X, Y | Y, X | X Y | Y X | X⏎Y | Y⏎X |
X / Y | X (or Y) | Y, not X | X; Y | X = Y | Y = X | X: Y | Y: X | Answer: X⏎Answer: Y |
The answer is X or Y. | The answer is X. The answer is Y. |
I thought X, but it is Y | X is wrong, the answer is Y | \boxed{X} \boxed{Y} |
**X** **Y** | "X", "Y" | $X$ or $Y$ | X</s>Y | - X⏎- Y | 1. X⏎2. Y |
```⏎X⏎```⏎```⏎Y⏎```
"""
"""Forms with another answer (Y), most with the right one (X); ⏎ ends a line."""

_DENIED = """
~~X~~ | \u2260 X | wrong: X | not X | not(X) | X is wrong | it is not X | negative X |
anything but X
"""

_OTHER_NUMBERS = r"""
X% | X thousand | X million | X/2 | 2/X | 1/X | X * 2 | X + 1 | X - 1 | X^2 | X**2 |
X! | Xe1 | X.5 | X,5 | X,000 | 1,X | X 1/2 | X k | X dozen | X squared | half X |
minus X | > X | at least X | ~X | 0.X | 0xX | X0 | 1X | \sqrt{X} | \frac{X}{2} |
-\boxed{X} | \boxed{X}^2 | \boxed{X}0 | 2\boxed{X} | **X**0 | $X$% | x = X + 1 |
2x = X | x < X | x != X | -(X) | x = -X
"""

CHANGES: Mapping[str, Change] = {
    **NUMBERS,
    **PARTS,
    **{form.replace("\n", " / "): _filled(form) for form in forms_of(_ANOTHER)},
    **{form: _filled(form) for form in forms_of(_DENIED)},
    **{form: _if_number(form) for form in forms_of(_OTHER_NUMBERS)},
}
"""By name, in which X is the right answer and Y another one."""


def other_answer(right: str, others: list[str], chance: random.Random) -> str:
    """Return an answer that another item has, or a changed one where all are equal."""
    different = [other for other in others if other.casefold() != right.casefold()]
    if different:
        return chance.choice(different)
    return CHANGES["another digit"](right, chance) or ""
