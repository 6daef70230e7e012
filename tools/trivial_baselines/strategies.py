"""Trivial baselines: answers without solving the item.

Each is a pure function of a question, of other questions of the same task and level
with their right answers, and of a source of chance. A score of theirs is no sign of
skill. They know the form of questions, not the tasks, but for a few moves that a task
invites.

A strategy that solves a task, such as to reverse a text, is a correct answer there:
`SOLVING` says where. Some sixty more were the best nowhere and are not kept.
"""

from __future__ import annotations

import difflib
import itertools
import json
import random
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from tools.trivial_baselines import question_parts as parts
from tools.trivial_baselines.learned_guesses import GUESSES, Seen

Strategy = Callable[[str, Seen, random.Random], str | None]
"""From a question, others with their right answers and chance to an answer, None where
the strategy has nothing to say."""

PHRASES = (
    "",
    *("-1", "0", "1", "2", "3", "0.0", "0.5", "1/2", "1e+00", "0x0"),
    *("True", "False", "Yes", "No", "on", "off", "undetermined", "Pass"),
    *("infeasible", "impossible", "None", "nan", "N/A", "I do not know"),
    *("[]", "[[]]", "{}", "[{}]", "null", '""', '["No solution"]', "x", "A", "A B C"),
    *("P", "Q", "P ∧ Q", "P ∨ Q", "P ∨ ¬P", "P ∧ ¬P", "P → Q"),  # noqa: RUF001
    *("0.0 + 0.0i", "(0, 0)", "C", "U", "R R", "A1", "C4", "00:00:00"),
)
"""Answers that fit many questions or none."""

FEW_ANSWERS = 12
"""Right answers that are no more than so many are drawn from as from a list."""

BLANKS = "_?❔"


def _candidates(question: str) -> Sequence[str]:
    """Return what the end of a question offers to choose from."""
    rest = parts.after_colon(question) or ""
    if "\n" in rest:
        return []
    offered = rest.split(",") if ", " in rest else rest.split()
    return [text.strip(" .?") for text in offered] if len(offered) > 1 else []


def _reading(answer: Callable[[str], str | None]) -> Strategy:
    """Return the strategy that reads the question alone."""
    return lambda question, seen, rng: answer(question)


def _number_at(place: Callable[[int], int]) -> Strategy:
    """Return the strategy that repeats a number of the question, by its place."""

    def pick(question: str) -> str | None:
        texts = parts.numbers(question)
        return texts[place(len(texts))] if texts else None

    return _reading(pick)


def _any_of(find: Callable[[str], Sequence[str]]) -> Strategy:
    def pick(question: str, seen: Seen, rng: random.Random) -> str | None:
        texts = find(question)
        return rng.choice(texts) if texts else None

    return pick


# -- right answers to other items ------------------------------------------------------


def _named_golds(question: str, seen: Seen) -> list[str]:
    """Return right answers to other items that stand in the question, in its order."""
    present = {gold for _, gold in seen if gold and gold in question}
    return sorted(present, key=question.rfind)


def _first_named(question: str, seen: Seen, rng: random.Random) -> str | None:
    return next(iter(_named_golds(question, seen)), None)


def _random_named(question: str, seen: Seen, rng: random.Random) -> str | None:
    named = _named_golds(question, seen)
    return rng.choice(named) if named else None


def _commonest_named(question: str, seen: Seen, rng: random.Random) -> str | None:
    return max(_named_golds(question, seen), key=question.count, default=None)


def _unnamed_gold(question: str, seen: Seen, rng: random.Random) -> str | None:
    common = Counter(gold for _, gold in seen).most_common()
    return next((gold for gold, _ in common if gold not in question), None)


def _any_gold(question: str, seen: Seen, rng: random.Random) -> str | None:
    few = sorted({gold for _, gold in seen})
    return rng.choice(few) if 0 < len(few) <= FEW_ANSWERS else None


# -- texts and lists -------------------------------------------------------------------


def _of_text(change: Callable[[str], str]) -> Strategy:
    """Return the strategy that changes what follows the last colon."""

    def changed(question: str) -> str | None:
        text = parts.after_colon(question)
        return None if text is None else change(text)

    return _reading(changed)


def _first_side(question: str) -> str | None:
    """Take the first side of each `a/b` of the form shown."""
    forms = [text for text in parts.quoted(question) if "/" in text]
    return re.sub(r"(\w+)/(\w+)", r"\1", forms[-1]) if forms else None


def _lists_in_turn(question: str) -> str | None:
    """Give each value of the first list one of the last."""
    found = parts.value_lists(question)
    if len(found) < 2:
        return None
    last = found[-1]
    return json.dumps({str(key): last[i % len(last)] for i, key in enumerate(found[0])})


def _joined_numbers(sign: str) -> Strategy:
    """Return the strategy that joins the numbers of the last list by a sign."""

    def joined(question: str) -> str | None:
        listed = re.findall(r"(?<![\d-])-?\d+(?:, -?\d+)+", question)
        return sign.join(listed[-1].split(", ")) if listed else None

    return _reading(joined)


def _letters_in_turn(question: str) -> str | None:
    """Turn one quoted word into another, letter by letter."""
    quoted = [text for text in parts.quoted(question) if text.isalpha()]
    if len(quoted) < 2 or len(quoted[-1]) != len(quoted[-2]):
        return None
    start, end = quoted[-2:]
    steps = [end[:i] + start[i:] for i in range(len(start) + 1)]
    return ",".join(dict.fromkeys(steps))


_PLACES = re.compile(r"[A-Za-z]+|\d+")
_FORMULA = re.compile(r"\$([^$]+)\$|\u222b\s*(.*?) d[a-zA-Z]\b|(?<=: )([^\n:=]+)")


def _echo(question: str, seen: Seen, rng: random.Random) -> str | None:
    """Write the part of the question back that looks most like an answer."""
    formulas = ["".join(found) for found in _FORMULA.findall(question)]
    listed = list(map(json.dumps, parts.value_lists(question)))
    offered = [*parts.quoted(question), *formulas, *listed, *parts.grid_texts(question)]
    if not seen or not offered:
        return None
    form = _PLACES.sub("0", seen[0][1])
    alike = difflib.SequenceMatcher(b=form, autojunk=False)

    def likeness(text: str) -> float:
        alike.set_seq1(_PLACES.sub("0", text)[: 2 * len(form)])
        return alike.ratio()

    return max(offered, key=likeness)


def _next_term(question: str) -> str | None:
    """Go on as most steps of a list of numbers go, by `a*last + b*before + c`."""
    terms = [int(n) for n in re.findall(r"-?\d{1,9}", question)]
    steps = list(zip(terms[2:], terms[1:], terms, strict=False))
    fits = Counter(
        (a, b, after - a * last - b * before)
        for a, b in itertools.product(range(-10, 11), range(3))
        for after, last, before in steps
    )
    if not fits:
        return None
    (a, b, c), _ = fits.most_common(1)[0]
    return str(a * terms[-1] + b * terms[-2] + c)


# -- grids -----------------------------------------------------------------------------


def _with_blanks(question: str) -> str | None:
    """Return the last grid that has blanks."""
    found = [text for text in parts.grid_texts(question) if set(text) & set(BLANKS)]
    return found[-1] if found else None


def _blanks_filled(question: str) -> str | None:
    text = _with_blanks(question)
    common = Counter(sign for sign in text or "" if sign not in BLANKS + " \n")
    if text is None or not common:
        return None
    sign = common.most_common(1)[0][0]
    return text.translate(dict.fromkeys(map(ord, BLANKS), sign))


def _queens(question: str, seen: Seen, rng: random.Random) -> str | None:
    """Put a queen by chance into each row and column that has none."""
    text = _with_blanks(question)
    if text is None or "Q" not in question:
        return None
    grid = parts.cells(text)
    if len({len(row) for row in grid}) != 1:
        return None
    taken = {row.index("Q") for row in grid if "Q" in row}
    free = [n for n in range(len(grid[0])) if n not in taken]
    free = rng.sample(free, len(free))
    for row in grid:
        if "Q" not in row and free:
            row[free.pop()] = "Q"
    return parts.grid_text(grid, text)


def _zeros_from_list(question: str, seen: Seen, rng: random.Random) -> str | None:
    """Put the values of the last list by chance where a grid has zeros."""
    grids, lists = parts.grid_texts(question), parts.value_lists(question)
    if not grids or not lists:
        return None
    values = rng.sample(lists[-1], len(lists[-1]))
    grid = [
        [str(values.pop()) if cell == "0" and values else cell for cell in row]
        for row in parts.cells(grids[-1])
    ]
    return parts.grid_text(grid, grids[-1])


def _half_of_the_bars(question: str) -> str | None:
    """Count the runs of signs in lines that have nothing else."""
    lines = re.findall(r"^[^\w\n]+$", question, re.M)
    bars = re.findall(r"[^\w\s]{3,}", "\n".join(lines))
    return str((len(bars) + 1) // 2) if bars else None


def _busiest_field(question: str) -> str | None:
    """Name the free field of a board with the most signs around it."""
    head = re.search(r"^ *((?:[A-Z] )+[A-Z])$", question, re.M)
    rows = re.findall(r"^ *(\d+) ((?:[.XO] )+[.XO])$", question, re.M)
    taken = [[sign != "." for sign in signs.split()] for _, signs in rows]
    around = {
        f"{column}{rows[y][0]}": sum(
            sum(row[max(0, x - 1) : x + 2]) for row in taken[max(0, y - 1) : y + 2]
        )
        for y, row in enumerate(taken)
        for x, (column, is_taken) in enumerate(
            zip(head[1].split() if head else (), row, strict=False)
        )
        if not is_taken
    }
    return max(around, key=lambda field: around[field], default=None)


STRATEGIES: Mapping[str, Strategy] = {
    "after the last colon": _of_text(str),
    "first number": _number_at(lambda count: 0),
    "middle number": _number_at(lambda count: count // 2),
    "last number": _number_at(lambda count: -1),
    "random candidate": _any_of(_candidates),
    "random of the first enumeration": _any_of(parts.enumeration),
    "first side of the form": _reading(_first_side),
    "first answer word named": _first_named,
    "random answer word named": _random_named,
    "commonest answer word named": _commonest_named,
    "answer word not named": _unnamed_gold,
    "random answer word": _any_gold,
    "text without spaces": _of_text(lambda text: re.sub(r"[\s,]", "", text)),
    "text reversed": _of_text(lambda text: text[::-1]),
    "first list to last list in turn": _reading(_lists_in_turn),
    "numbers added": _joined_numbers(" + "),
    "numbers multiplied": _joined_numbers("*"),
    "letters in turn": _reading(_letters_in_turn),
    "part of the question that looks like an answer": _echo,
    "next term": _reading(_next_term),
    "half of the bars": _reading(_half_of_the_bars),
    "blanks with the commonest sign": _reading(_blanks_filled),
    "queens at random": _queens,
    "zeros from the list at random": _zeros_from_list,
    "free field with most around it": _reading(_busiest_field),
    **GUESSES,
}
"""Name to strategy."""

SOLVING: Mapping[str, str] = {
    "chain_sum": "sum of its numbers that is right oftenest",
    "products": "sum of its numbers that is right oftenest",
    "number_sorting": "list, rising",
    "spell_backward": "text reversed",
}
"""Task to the strategy that solves it, which is not counted there."""


def answers(task: str, question: str, seen: Seen, key: str) -> dict[str, str]:
    """Return the answers of strategies by name, without those that have none.

    What is left to chance is decided by `key`. The one that solves the task says
    nothing.
    """
    found = {}
    for name, strategy in STRATEGIES.items():
        if name == SOLVING.get(task):
            continue
        answer = strategy(question, seen, random.Random(f"{key}/{name}"))
        if answer is not None:
            found[name] = answer.strip()
    return found
