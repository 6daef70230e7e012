"""Trivial baselines: answers without solving the item.

Each is a pure function of a question, of other questions of the same task and level
with their right answers, and of a source of chance. A score of theirs is no sign of
skill. They know the form of questions, not the tasks, but for a few moves that a task
invites.

A strategy that solves a few tasks, such as to sort, is a correct answer there:
`SOLVING` says where.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

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


def _first(found: Sequence[str]) -> str | None:
    return found[0] if found else None


def _last(found: Sequence[str]) -> str | None:
    return found[-1] if found else None


def _middle(found: Sequence[str]) -> str | None:
    return found[len(found) // 2] if found else None


def _any(found: Sequence[str], rng: random.Random) -> str | None:
    return rng.choice(found) if found else None


def _picks(name: str, find: Callable[[str], Sequence[str]]) -> dict[str, Strategy]:
    """Return the strategies that pick one of what is found in the question."""
    return {
        f"first {name}": lambda question, seen, rng: _first(find(question)),
        f"middle {name}": lambda question, seen, rng: _middle(find(question)),
        f"last {name}": lambda question, seen, rng: _last(find(question)),
        f"random {name}": lambda question, seen, rng: _any(find(question), rng),
    }


# -- candidates ------------------------------------------------------------------------


def _candidates(question: str) -> Sequence[str]:
    """Return what the end of a question offers to choose from."""
    rest = parts.after_colon(question) or ""
    if "\n" in rest:
        return []
    offered = rest.split(",") if ", " in rest else rest.split()
    return [text.strip(" .?") for text in offered] if len(offered) > 1 else []


def _first_enumeration(question: str) -> Sequence[str]:
    return next(iter(parts.enumerations(question)), [])


def _named_golds(question: str, seen: Seen) -> list[str]:
    """Return right answers to other items that stand in the question, in its order."""
    present = {gold for _, gold in seen if gold and gold in question}
    return sorted(present, key=question.rfind)


def _by_golds(
    choose: Callable[[str, list[str], random.Random], str | None],
) -> Strategy:
    return lambda question, seen, rng: choose(
        question, _named_golds(question, seen), rng
    )


def _rarest_named(question: str, named: list[str], rng: random.Random) -> str | None:
    return min(named, key=question.count, default=None)


def _commonest_named(question: str, named: list[str], rng: random.Random) -> str | None:
    return max(named, key=question.count, default=None)


def _unnamed_gold(question: str, seen: Seen, rng: random.Random) -> str | None:
    common = Counter(gold for _, gold in seen).most_common()
    few = [gold for gold, _ in common if gold not in question]
    return _first(few)


def _any_gold(question: str, seen: Seen, rng: random.Random) -> str | None:
    few = sorted({gold for _, gold in seen})
    return rng.choice(few) if 0 < len(few) <= FEW_ANSWERS else None


# -- echoes ----------------------------------------------------------------------------


def _part(find: Callable[[str], Sequence[str]], place: int) -> Strategy:
    """Return the strategy that repeats one of what is found, counted from the end."""

    def echo(question: str, seen: Seen, rng: random.Random) -> str | None:
        found = find(question)
        return found[place] if len(found) >= -place else None

    return echo


def _after_colon(question: str, seen: Seen, rng: random.Random) -> str | None:
    return parts.after_colon(question)


def _of_text(change: Callable[[str], str]) -> Strategy:
    """Return the strategy that changes what follows the last colon."""

    def changed(question: str, seen: Seen, rng: random.Random) -> str | None:
        text = parts.after_colon(question)
        return None if text is None else change(text)

    return changed


def _last_quoted_choice(which: int) -> Strategy:
    """Return the strategy that takes one side of each `a/b` of the form shown."""

    def chosen(question: str, seen: Seen, rng: random.Random) -> str | None:
        forms = [text for text in parts.quoted(question) if "/" in text]
        if not forms:
            return None
        side = re.compile(r"(\w+)/(\w+)")
        return side.sub(
            lambda m: m[which] if which else m[rng.choice((1, 2))], forms[-1]
        )

    return chosen


# -- lists and words -------------------------------------------------------------------


def _joined(texts: Sequence[str], question: str) -> str:
    return (", " if ", " in (parts.after_colon(question) or "") else " ").join(texts)


def _of_candidates(change: Callable[[list[str], random.Random], list[str]]) -> Strategy:
    """Return the strategy that puts the candidates into another order."""

    def changed(question: str, seen: Seen, rng: random.Random) -> str | None:
        found = list(_candidates(question))
        return _joined(change(found, rng), question) if found else None

    return changed


def _of_list(change: Callable[[list[Any], random.Random], Any]) -> Strategy:
    """Return the strategy that changes the last list of the question."""

    def changed(question: str, seen: Seen, rng: random.Random) -> str | None:
        found = parts.value_lists(question)
        if not found:
            return None
        text = repr(change(found[-1], rng))
        return text if "'" in parts.bracketed(question)[-1] else text.replace("'", '"')

    return changed


def _shuffled(values: Sequence[Any], rng: random.Random) -> list[Any]:
    return rng.sample(list(values), len(values))


def _zeros(value: Any) -> Any:
    """Return a list of the same shape that holds zeros alone."""
    return [_zeros(part) for part in value] if isinstance(value, list) else 0


def _zipped_lists(choose: Callable[[list[Any], int, random.Random], Any]) -> Strategy:
    """Return the strategy that gives each value of the first list one of the last."""

    def zipped(question: str, seen: Seen, rng: random.Random) -> str | None:
        found = parts.value_lists(question)
        if len(found) < 2:
            return None
        pairs = enumerate(found[0])
        return json.dumps({str(key): choose(found[-1], i, rng) for i, key in pairs})

    return zipped


def _sum_of_numbers(sign: str) -> Strategy:
    """Return the strategy that joins the numbers of the last list by a sign."""

    def joined(question: str, seen: Seen, rng: random.Random) -> str | None:
        listed = re.findall(r"(?<![\d-])-?\d+(?:, -?\d+)+", question)
        return sign.join(listed[-1].split(", ")) if listed else None

    return joined


def _letters_in_turn(question: str, seen: Seen, rng: random.Random) -> str | None:
    """Turn one quoted word into another, letter by letter."""
    quoted = [text for text in parts.quoted(question) if text.isalpha()]
    if len(quoted) < 2 or len(quoted[-1]) != len(quoted[-2]):
        return None
    start, end = quoted[-2:]
    steps = [end[:i] + start[i:] for i in range(len(start) + 1)]
    return ",".join(dict.fromkeys(steps))


def _quoted_ends(question: str, seen: Seen, rng: random.Random) -> str | None:
    quoted = parts.quoted(question)
    return ",".join(quoted[-2:]) if len(quoted) > 1 else None


# -- grids -----------------------------------------------------------------------------


def _last_grid(question: str) -> str | None:
    return _last(parts.grid_texts(question))


def _of_grid(
    change: Callable[[parts.Grid, random.Random], parts.Grid | None],
) -> Strategy:
    """Return the strategy that changes the last grid of the question."""

    def changed(question: str, seen: Seen, rng: random.Random) -> str | None:
        text = _last_grid(question)
        if text is None:
            return None
        grid = change(parts.cells(text), rng)
        return None if grid is None else parts.grid_text(grid, text)

    return changed


def _filled_with(sign: str) -> Strategy:
    return _of_grid(lambda grid, rng: [[sign] * len(row) for row in grid])


def _filled_at_random(grid: parts.Grid, rng: random.Random) -> parts.Grid:
    signs = sorted({cell for row in grid for cell in row})
    return [[rng.choice(signs) for _ in row] for row in grid]


def _random_bits(grid: parts.Grid, rng: random.Random) -> parts.Grid:
    return [[rng.choice("01") for _ in row] for row in grid]


def _with_blanks(question: str) -> str | None:
    """Return the last grid that has blanks."""
    found = [text for text in parts.grid_texts(question) if set(text) & set(BLANKS)]
    return _last(found)


def _blanks_of_signs(which: int) -> Strategy:
    """Return the strategy that fills blanks with the commonest or next other sign."""

    def filled(question: str, seen: Seen, rng: random.Random) -> str | None:
        text = _with_blanks(question)
        if text is None:
            return None
        counted = Counter(sign for sign in text if sign not in BLANKS + " \n")
        common = [sign for sign, _ in counted.most_common(which + 1)]
        if len(common) <= which:
            return None
        return text.translate(dict.fromkeys(map(ord, BLANKS), common[which]))

    return filled


def _queens(question: str, seen: Seen, rng: random.Random) -> str | None:
    """Put a queen by chance into each row and column that has none."""
    text = _with_blanks(question)
    if text is None or "Q" not in question:
        return None
    grid = parts.cells(text)
    if len({len(row) for row in grid}) != 1:
        return None
    taken = {row.index("Q") for row in grid if "Q" in row}
    free = _shuffled([n for n in range(len(grid[0])) if n not in taken], rng)
    for row in grid:
        if "Q" not in row and free:
            row[free.pop()] = "Q"
    return parts.grid_text(grid, text)


def _zeros_from_list(question: str, seen: Seen, rng: random.Random) -> str | None:
    """Put the values of the last list by chance where a grid has zeros."""
    text, found = _last_grid(question), parts.value_lists(question)
    if text is None or not found:
        return None
    values = _shuffled(found[-1], rng)
    grid = [
        [str(values.pop()) if cell == "0" and values else cell for cell in row]
        for row in parts.cells(text)
    ]
    return parts.grid_text(grid, text)


def _turned(grid: parts.Grid, rng: random.Random) -> parts.Grid | None:
    if len({len(row) for row in grid}) != 1:
        return None
    return [list(column) for column in zip(*grid, strict=True)]


def _flat(question: str, seen: Seen, rng: random.Random) -> str | None:
    text = _last_grid(question)
    return None if text is None else " ".join(text.split())


def _busiest_field(question: str, seen: Seen, rng: random.Random) -> str | None:
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


def _learned(guess: Callable[[str, Seen], str | None]) -> Strategy:
    return lambda question, seen, rng: guess(question, seen)


STRATEGIES: Mapping[str, Strategy] = {
    "whole question": lambda question, seen, rng: question.strip(),
    "last line": _part(parts.lines, -1),
    "last but one line": _part(parts.lines, -2),
    "last paragraph": _part(parts.paragraphs, -1),
    "last but one paragraph": _part(parts.paragraphs, -2),
    "after the last colon": _after_colon,
    "last grid": _part(parts.grid_texts, -1),
    "last but one grid": _part(parts.grid_texts, -2),
    "last list": _part(parts.bracketed, -1),
    "last but one list": _part(parts.bracketed, -2),
    "last example": _part(parts.examples, -1),
    **_picks("quoted text", parts.quoted),
    **_picks("number", parts.numbers),
    **_picks("word", parts.words),
    **_picks("name", parts.names),
    **_picks("listed text", parts.listed),
    **_picks("candidate", _candidates),
    **_picks("of the first enumeration", _first_enumeration),
    "first side of the form": _last_quoted_choice(1),
    "second side of the form": _last_quoted_choice(2),
    "random side of the form": _last_quoted_choice(0),
    "first answer word named": _by_golds(lambda q, named, rng: _first(named)),
    "last answer word named": _by_golds(lambda q, named, rng: _last(named)),
    "random answer word named": _by_golds(lambda q, named, rng: _any(named, rng)),
    "rarest answer word named": _by_golds(_rarest_named),
    "commonest answer word named": _by_golds(_commonest_named),
    "answer word not named": _unnamed_gold,
    "random answer word": _any_gold,
    "text in capital and small letters": _of_text(
        lambda text: text[:1].upper() + text[1:]
    ),
    "text without spaces": _of_text(lambda text: re.sub(r"[\s,]", "", text)),
    "text reversed": _of_text(lambda text: text[::-1]),
    "candidates sorted": _of_candidates(lambda found, rng: sorted(found)),
    "candidates reversed": _of_candidates(lambda found, rng: found[::-1]),
    "candidates in random order": _of_candidates(_shuffled),
    "list sorted": _of_list(lambda values, rng: sorted(values, key=str)),
    "list reversed": _of_list(lambda values, rng: values[::-1]),
    "list in random order": _of_list(_shuffled),
    "list of zeros": _of_list(lambda values, rng: _zeros(values)),
    "each value of the list alone": _of_list(
        lambda values, rng: [[value] for value in values]
    ),
    "list in a list": _of_list(lambda values, rng: [values]),
    "first list to last list in turn": _zipped_lists(
        lambda values, i, rng: values[i % len(values)]
    ),
    "first list to last list at random": _zipped_lists(
        lambda values, i, rng: rng.choice(values)
    ),
    "numbers added": _sum_of_numbers(" + "),
    "numbers multiplied": _sum_of_numbers("*"),
    "letters in turn": _letters_in_turn,
    "the two quoted words": _quoted_ends,
    "grid of zeros": _filled_with("0"),
    "grid of ones": _filled_with("1"),
    "grid of random bits": _of_grid(_random_bits),
    "grid at random": _of_grid(_filled_at_random),
    "grid upside down": _of_grid(lambda grid, rng: grid[::-1]),
    "grid mirrored": _of_grid(lambda grid, rng: [row[::-1] for row in grid]),
    "grid turned": _of_grid(_turned),
    "grid as a list": _flat,
    "blanks with the commonest sign": _blanks_of_signs(0),
    "blanks with the next sign": _blanks_of_signs(1),
    "queens at random": _queens,
    "zeros from the list at random": _zeros_from_list,
    "free field with most around it": _busiest_field,
    **{name: _learned(guess) for name, guess in GUESSES.items()},
}
"""Name to strategy."""

SOLVING: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(
        ("chain_sum", "products"),
        frozenset({"sum of its numbers that is right oftenest"}),
    ),
    "number_sorting": frozenset({"list sorted", "list reversed"}),
    "spell_backward": frozenset({"text reversed"}),
    "word_sequence_reversal": frozenset({"candidates reversed"}),
    "word_sorting": frozenset({"candidates sorted", "candidates reversed"}),
}
"""Task to the strategies that solve it, which are not counted there."""


def answers(
    task: str,
    question: str,
    seen: Seen,
    key: str,
    only: Collection[str] | None = None,
) -> dict[str, str]:
    """Return the answers of strategies by name, without those that have none.

    What is left to chance is decided by `key`. `only` names the strategies that answer,
    None means all. Those that solve the task are left out.
    """
    solving = SOLVING.get(task, frozenset())
    found = {}
    for name, strategy in STRATEGIES.items():
        if name in solving or (only is not None and name not in only):
            continue
        answer = strategy(question, seen, random.Random(f"{key}/{name}"))
        if answer is not None:
            found[name] = answer.strip()
    return found
