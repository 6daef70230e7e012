"""Rules of thumb: answers by one sign of an item alone.

Other than the strategies they know their task. Where a rule decides nearly all items of
a level, these are too easy, or say little of whether somebody can solve the task.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections import Counter
from collections.abc import Callable

from tools.trivial_baselines import question_parts as parts


@dataclasses.dataclass(frozen=True)
class RuleOfThumb:
    """A rule for the items of one task.

    Attributes:
        task: The registered task.
        rule: What it answers, in words.
        answer: From the question to the answer.
    """

    task: str
    rule: str
    answer: Callable[[str], str]


def _light_like_before(question: str) -> str:
    experiments, test = question.split("New test case:\n")
    objects = set(test.splitlines()[0].split(", "))
    tried = re.findall(r"^(.*) \u2192 (\w+)$", experiments, re.M)
    lights = Counter(light for on, light in tried if objects & set(on.split(", ")))
    return lights.most_common(1)[0][0] if lights else "undetermined"


def _what_the_last_gate_mostly_gives(question: str) -> str:
    last = re.search(r"\u2502(.)\1\u2500+ OUT", question)
    return str(int(last is not None and last[1] in "+\u2191"))


def _no_two_courses_before_each_other(question: str) -> str:
    pairs = set(re.findall(r"\((\d+), (\d+)\)", question))
    return str(not any((b, a) in pairs for a, b in pairs))


def _no_living_cell_with_three_neighbours(question: str) -> str:
    rows = re.findall(r"\[([01\s]+)\]", question)
    grid = [[int(cell) for cell in row.split()] for row in rows]
    around = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j]

    def neighbours(row: int, column: int) -> int:
        places = ((row + i, column + j) for i, j in around)
        return sum(grid[i % len(grid)][j % len(grid[0])] for i, j in places)

    cells = (
        (i, j) for i, row in enumerate(grid) for j, alive in enumerate(row) if alive
    )
    return str(all(neighbours(i, j) != 3 for i, j in cells))


def _same_counts_of_letters(question: str) -> str:
    last = parts.lines(question)[-1]
    first, second = (sorted(Counter(word).values()) for word in last.split())
    return str(first == second)


def _rows_and_columns_between(question: str) -> str:
    ends = re.findall(r"'(.)' \((?:start|goal)\)", question)
    rows = question.split("\n```\n")[1].splitlines()
    (x, y), (u, v) = (
        next((i, row.index(sign)) for i, row in enumerate(rows) if sign in row)
        for sign in ends
    )
    return str(abs(x - u) + abs(y - v))


def _every_letter_occurs(question: str) -> str:
    note, magazine = re.findall(r"(?:note|Magazine): (\w*)", question)[-2:]
    return str(set(note) <= set(magazine))


def _first_number_that_fits(question: str) -> str:
    text = next(text for text in parts.grid_texts(question) if "_" in text)
    grid = parts.cells(text)
    box = math.isqrt(len(grid))

    def taken(i: int, j: int) -> set[str]:
        rows = grid[i // box * box : (i // box + 1) * box]
        boxes = (row[j // box * box : (j // box + 1) * box] for row in rows)
        return set(grid[i]).union((row[j] for row in grid), *boxes)

    for i, row in enumerate(grid):
        for j, cell in enumerate(row):
            if cell == "_":
                numbers = map(str, range(1, len(grid) + 1))
                row[j] = next((n for n in numbers if n not in taken(i, j)), "1")
    return parts.grid_text(grid, text)


def _mood(statement: str) -> tuple[bool, bool]:
    """Return whether a statement is about some, and whether it denies."""
    words = statement.split()
    return words[0] == "Some", words[0] == "No" or "not" in words


def _conclusion_in_the_mood_of_the_premises(question: str) -> str:
    premises = [_mood(premise) for premise in parts.listed(question)]
    conclusion = _mood(parts.lines(question.split("follow that:")[1])[0])
    return "Yes" if conclusion == tuple(map(any, zip(*premises, strict=True))) else "No"


def _point_beside_most_white_stones(question: str) -> str:
    rows = re.findall(r"^ *(\d+) ((?:[.XO] ?)+)$", question, re.M)
    names = re.findall(r"^ +((?:[A-Z] )+[A-Z])$", question, re.M)[0].split()
    board = {
        (x, int(row)): stone
        for row, stones in rows
        for x, stone in enumerate(stones.split())
    }

    def white_beside(point: tuple[int, int]) -> int:
        x, y = point
        beside = ((x - 1, y), (x + 1, y), (x, y - 1), (x, y + 1))
        return sum(board.get(other) == "O" for other in beside)

    x, y = max((at for at, stone in board.items() if stone == "."), key=white_beside)
    return f"{names[x]}{y}"


RULES: tuple[RuleOfThumb, ...] = (
    RuleOfThumb(
        "acre",
        "the commonest result of the experiments with one of the objects",
        _light_like_before,
    ),
    RuleOfThumb(
        "circuit_logic",
        "1 where the last gate is OR or NAND, else 0",
        _what_the_last_gate_mostly_gives,
    ),
    RuleOfThumb(
        "course_schedule",
        "True where no two courses require each other",
        _no_two_courses_before_each_other,
    ),
    RuleOfThumb(
        "game_of_life_halting",
        "True where no living cell has three neighbours",
        _no_living_cell_with_three_neighbours,
    ),
    RuleOfThumb(
        "isomorphic_strings",
        "True where letters occur equally often in both",
        _same_counts_of_letters,
    ),
    RuleOfThumb(
        "maze", "rows and columns between start and goal", _rows_and_columns_between
    ),
    RuleOfThumb(
        "mini_sudoku",
        "for each blank the first number that fits",
        _first_number_that_fits,
    ),
    RuleOfThumb(
        "ransom_note",
        "True where every letter of the note occurs at all",
        _every_letter_occurs,
    ),
    RuleOfThumb(
        "sudoku",
        "for each blank the first number that fits",
        _first_number_that_fits,
    ),
    RuleOfThumb(
        "syllogism",
        "Yes where the conclusion is about some, and negative, if a premise is",
        _conclusion_in_the_mood_of_the_premises,
    ),
    RuleOfThumb(
        "tsumego",
        "the free point beside most white stones",
        _point_beside_most_white_stones,
    ),
)
"""Ordered by task."""
