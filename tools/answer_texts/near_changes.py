"""Wrong answers near the right one: a digit changed, a row dropped, two answers.

Each change is a pure function of the right answer, another answer and a generator of
chance; None where it does not apply. Whether what comes out is wrong is not known here:
see `tools/answer_texts/surely_wrong.py`.
"""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Callable, Mapping

from tools.answer_texts.formatting import forms_of

Change = Callable[[str, str, random.Random], "str | None"]
"""(right answer, other answer, chance) to a wrong answer."""

NUMBER = re.compile(r"\d+(?:\.\d+)?")
_WHOLE_NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?")
_WORD = re.compile(r"[^\W\d_]{2,}")
_ENTRY = re.compile(r"[^\s,\[\]{}]+")


def _in_one(
    pattern: re.Pattern[str], change: Callable[[str, random.Random], str | None]
) -> Change:
    """Change one of the places in an answer that a pattern finds, by chance."""

    def changed(right: str, other: str, chance: random.Random) -> str | None:
        found = list(pattern.finditer(right))
        if not found:
            return None
        match = chance.choice(found)
        part = change(match.group(), chance)
        if part is None:
            return None
        return right[: match.start()] + part + right[match.end() :]

    return changed


def _of_number(change: Callable[[float, str], str | None]) -> Change:
    """Change an answer that is one number."""

    def changed(right: str, other: str, chance: random.Random) -> str | None:
        if not _WHOLE_NUMBER.fullmatch(right) or len(right) > 15:
            return None
        return change(float(right), right)

    return changed


# -- numbers ---------------------------------------------------------------------------


def _other_digit(text: str, chance: random.Random) -> str:
    at = chance.choice([i for i, char in enumerate(text) if char.isdigit()])
    digit = chance.choice([d for d in "0123456789" if d != text[at]])
    return text[:at] + digit + text[at + 1 :]


def _without_digit(text: str, chance: random.Random) -> str | None:
    at = chance.randrange(len(text))
    rest = text[:at] + text[at + 1 :]
    return rest if any(map(str.isdigit, rest)) else None


def _more(by: int) -> Callable[[str, random.Random], str]:
    def change(text: str, chance: random.Random) -> str:
        if "." not in text:
            return str(max(0, int(text) + by)) if len(text) < 400 else text
        places = len(text.partition(".")[2])
        return f"{float(text) + by * 10.0**-places:.{places}f}"

    return change


def _share_more(share: float) -> Change:
    def change(value: float, text: str) -> str:
        if "." in text:
            return f"{value * (1 + share):.{len(text.partition('.')[2])}f}"
        whole = round(value * (1 + share))
        return str(whole if whole != value else value * (1 + share))

    return _of_number(change)


def _cut_decimals(left: int) -> Change:
    def change(value: float, text: str) -> str | None:
        whole, _, decimals = text.partition(".")
        if len(decimals) <= left:
            return None
        return f"{whole}.{decimals[:left]}" if left else whole

    return _of_number(change)


def _one_decimal_less(value: float, text: str) -> str | None:
    decimals = text.partition(".")[2]
    return text[:-1] if len(decimals) > 1 else None


def _rounded(value: float, text: str) -> str | None:
    places = len(text.partition(".")[2])
    return f"{value:.{places - 1}f}" if places > 1 else None


def _flipped(right: str, other: str, chance: random.Random) -> str | None:
    """Give a number, or what begins with one, the other sign."""
    if not re.match(r"-?[\d.(x$\\]", right) or "\n" in right:
        return None
    return right[1:] if right.startswith("-") else f"-{right}"


def _one_sign(right: str, other: str, chance: random.Random) -> str | None:
    places = [i for i, char in enumerate(right) if char in "+-" and i]
    if not places:
        return None
    at = chance.choice(places)
    return right[:at] + ("-" if right[at] == "+" else "+") + right[at + 1 :]


NUMBERS: Mapping[str, Change] = {
    "another digit": _in_one(NUMBER, _other_digit),
    "a digit less": _in_one(NUMBER, _without_digit),
    "a digit twice": _in_one(NUMBER, lambda text, chance: text + text[-1]),
    "a zero more": _in_one(NUMBER, lambda text, chance: f"{text}0"),
    "one more": _in_one(NUMBER, _more(1)),
    "one less": _in_one(NUMBER, _more(-1)),
    "two more": _in_one(NUMBER, _more(2)),
    "two less": _in_one(NUMBER, _more(-2)),
    "0.5 % more": _share_more(0.005),
    "1 % more": _share_more(0.01),
    "1 % less": _share_more(-0.01),
    "4 % more": _share_more(0.04),
    "one hundredth more": _of_number(lambda value, text: f"{value + 0.01:.4f}"),
    "another sign": _flipped,
    "a sign inside": _one_sign,
    "without decimals": _cut_decimals(0),
    "one decimal": _cut_decimals(1),
    "a decimal less": _of_number(_one_decimal_less),
    "rounded": _of_number(_rounded),
    "ten times": _of_number(lambda value, text: f"{value * 10:.10g}"),
    "a tenth": _of_number(lambda value, text: f"{value / 10:.10g}"),
}

# -- words -----------------------------------------------------------------------------


def _other_letter(word: str, chance: random.Random) -> str:
    at = chance.randrange(len(word))
    letters = "abcdefghijklmnopqrstuvwxyz"
    new = chance.choice([c for c in letters if c != word[at].lower()])
    new = new.upper() if word[at].isupper() else new
    return word[:at] + new + word[at + 1 :]


def _letters(change: Callable[[list[str], random.Random], list[str]]) -> Change:
    return _in_one(_WORD, lambda word, chance: "".join(change(list(word), chance)))


def _without_one(parts: list[str], chance: random.Random) -> list[str]:
    at = chance.randrange(len(parts))
    return parts[:at] + parts[at + 1 :]


def _one_twice(parts: list[str], chance: random.Random) -> list[str]:
    at = chance.randrange(len(parts))
    return parts[: at + 1] + parts[at:]


def _two_swapped(parts: list[str], chance: random.Random) -> list[str]:
    at = chance.randrange(len(parts) - 1)
    return [*parts[:at], parts[at + 1], parts[at], *parts[at + 2 :]]


def _other_case(right: str, other: str, chance: random.Random) -> str | None:
    swapped = right.swapcase()
    return None if swapped == right else swapped


WORDS: Mapping[str, Change] = {
    "another letter": _in_one(_WORD, _other_letter),
    "a letter less": _letters(_without_one),
    "a letter twice": _letters(_one_twice),
    "two letters swapped": _letters(_two_swapped),
    "a letter more": lambda right, other, chance: f"{right}s" if right else None,
    "the other case": _other_case,
    "one word in the other case": _in_one(_WORD, lambda word, _: word.swapcase()),
    "backwards": lambda right, other, chance: right[::-1],
}

# -- lists, grids, moves ---------------------------------------------------------------


def _entries(change: Callable[[list[str], random.Random], list[str] | None]) -> Change:
    """Change the entries of an answer; what stands between them stays."""

    def changed(right: str, other: str, chance: random.Random) -> str | None:
        found = list(_ENTRY.finditer(right))
        if len(found) < 2:
            return None
        entries = change([match.group() for match in found], chance)
        if entries is None:
            return None
        gaps = [right[a.end() : b.start()] for a, b in itertools.pairwise(found)]
        text = right[: found[0].start()]
        for place, entry in enumerate(entries):
            text += entry
            if place < len(entries) - 1:
                text += gaps[min(place, len(gaps) - 1)]
        return text + right[found[-1].end() :]

    return changed


def _swapped(entries: list[str], chance: random.Random) -> list[str] | None:
    first = chance.randrange(len(entries) - 1)
    others = [i for i in range(len(entries)) if entries[i] != entries[first]]
    if not others:
        return None
    second = chance.choice(others)
    entries[first], entries[second] = entries[second], entries[first]
    return entries


def _other_entry(entries: list[str], chance: random.Random) -> list[str] | None:
    at = chance.randrange(len(entries))
    others = [entry for entry in entries if entry != entries[at]]
    if not others:
        return None
    return [*entries[:at], chance.choice(others), *entries[at + 1 :]]


def _lines(change: Callable[[list[str], random.Random], list[str]]) -> Change:
    def changed(right: str, other: str, chance: random.Random) -> str | None:
        lines = right.split("\n")
        return "\n".join(change(lines, chance)) if len(lines) > 1 else None

    return changed


def _characters(change: Callable[[list[str], random.Random], list[str]]) -> Change:
    """Change a word of moves or letters, character by character."""

    def changed(right: str, other: str, chance: random.Random) -> str | None:
        if not re.fullmatch(r"[A-Za-z]{3,}", right):
            return None
        return "".join(change(list(right), chance))

    return changed


def _another_end(right: str, other: str, chance: random.Random) -> str | None:
    end = right[-1:]
    others = "0123456789" if end.isdigit() else "abcdefghijklmnopqrstuvwxyz"
    return right[:-1] + chance.choice([x for x in others if x != end.lower()])


def _cut_short(right: str, other: str, chance: random.Random) -> str | None:
    return right[: max(1, len(right) * 9 // 10)] if len(right) > 1 else None


LISTS: Mapping[str, Change] = {
    "two entries swapped": _entries(_swapped),
    "an entry less": _entries(_without_one),
    "the last entry less": _entries(lambda entries, _: entries[:-1]),
    "the first entry less": _entries(lambda entries, _: entries[1:]),
    "an entry twice": _entries(_one_twice),
    "another entry": _entries(_other_entry),
    "the opposite order": _entries(lambda entries, _: entries[::-1]),
    "a line less": _lines(_without_one),
    "a line twice": _lines(_one_twice),
    "lines in the opposite order": _lines(lambda lines, _: lines[::-1]),
    "the last line less": _lines(lambda lines, _: lines[:-1]),
    "a character less": _characters(_without_one),
    "a character twice": _characters(_one_twice),
    "a tenth cut off": _cut_short,
    "its first half": lambda right, other, chance: right[: len(right) // 2] or None,
    "its first signs": lambda right, other, chance: right[:3] if right[3:] else None,
    "another last sign": _another_end,
    "given twice": _entries(lambda entries, _: [*entries, *entries]),
}

# -- two answers, and words that deny --------------------------------------------------


def _both(form: str) -> Change:
    """Write the right answer (X) and another (Y)."""

    def changed(right: str, other: str, chance: random.Random) -> str | None:
        if not right or not other or other == right:
            return None
        return form.replace("Y", "\0").replace("X", right).replace("\0", other)

    return changed


def _alone(form: str) -> Change:
    def changed(right: str, other: str, chance: random.Random) -> str | None:
        return form.replace("X", right) if right and "\n" not in right else None

    return changed


def _if_number(form: str) -> Change:
    """Write a number in a form that makes another one of it; 0, 1 and 2 may stay."""
    return _of_number(
        lambda value, text: form.replace("X", text) if abs(value) > 2 else None
    )


_TWO_ANSWERS = r"""
X or Y | Y or X | X and Y | X, Y | Y, X | X Y | Y X | X⏎Y | Y⏎X | X⏎⏎Y | X / Y |
X (or Y) | Y, not X | not X but Y | X; Y | X = Y | Answer: X⏎Answer: Y |
The answer is X or Y. | The answer is X. The answer is Y. |
I thought X, but it is Y | X is wrong, the answer is Y | \boxed{X} \boxed{Y} |
\boxed{X}, \boxed{Y} | **X** **Y** | `X` or `Y` | "X", "Y" | $X$ or $Y$ | X</s>Y |
X<|im_end|>Y | <b>X</b> <b>Y</b> | - X⏎- Y | 1. X⏎2. Y | ### X⏎### Y |
```⏎X⏎```⏎```⏎Y⏎```
"""
"""Forms with the right answer (X) and another (Y); ⏎ is the end of a line."""

_DENIED = """
~~X~~ | \u2260 X | wrong: X | incorrect: X | not X | not(X) | X is wrong | it is not X |
X is incorrect | negative X | anything but X
"""

ANSWERS: Mapping[str, Change] = {
    "another item's answer": lambda right, other, chance: other or None,
    **{form.replace("\n", " / "): _both(form) for form in forms_of(_TWO_ANSWERS)},
    **{form: _both(form) for form in ("X: Y", "Y: X", "Y = X")},
    **{form: _alone(form) for form in forms_of(_DENIED)},
    "false: X": lambda right, other, chance: (
        f"false: {right}" if right.casefold() != "false" else None
    ),
    "Answer: Y": lambda right, other, chance: f"Answer: {other}" if other else None,
}

# -- what makes another number of it ---------------------------------------------------

_OTHER_NUMBERS = r"""
X% | X thousand | X hundred | X million | X/2 | 2/X | 1/X | X * 2 | X + 1 |
X - 1 | X^2 | X**2 | X! | Xe1 | Xe3 | X.5 | X,5 | X,000 | 1,X | X 1/2 | X k |
X dozen | X squared | half X | minus X | twice X | > X | < X | at least X | ~X |
(X - 1) | 0.X | 0xX | X0 | 1X | sqrt(X) | \sqrt{X} | \frac{X}{2} | -\boxed{X} |
\boxed{X}^2 | \boxed{X}0 | 2\boxed{X} | **X**0 | $X$% | x = X + 1 | 2x = X |
x + 1 = X | x < X | x != X | -(X) | x = -X
"""

UNITS: Mapping[str, Change] = {
    form: _if_number(form) for form in forms_of(_OTHER_NUMBERS)
}

CHANGES: Mapping[str, Change] = {**NUMBERS, **WORDS, **LISTS, **ANSWERS, **UNITS}
"""By name, in which X is the right answer and Y another one."""


def other_answer(right: str, others: list[str], chance: random.Random) -> str:
    """Return an answer that another item has, or a changed one where all are equal."""
    different = [other for other in others if other.casefold() != right.casefold()]
    if different:
        return chance.choice(different)
    return _other_digit(right, chance) if any(map(str.isdigit, right)) else ""
