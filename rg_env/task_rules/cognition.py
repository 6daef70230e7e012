"""Rules of the cognition tasks."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rg_env.task_rules.algorithmic.words import anagrams
from rg_env.task_rules.answer_matching import one_answer
from rg_env.task_rules.faster_functions import dataset_init
from rg_env.task_rules.reading.lists import repetition_guard
from rg_env.task_rules.rules import (
    Entry,
    FasterFunction,
    ItemCheck,
    LevelRepair,
    LibraryScore,
    ScorerFix,
    TaskRules,
    downsample,
)

# -- color_cube_rotation ---------------------------------------------------------------

# "The bottom is now at the top" is half a turn, either forward or to the side. The two
# turns leave different sides at the front and at the right.

SIDES = ("top", "bottom", "front", "back", "left", "right")
_OPPOSITES = {"front": "back", "back": "front", "left": "right", "right": "left"}

Cube = tuple[str, ...]
"""The color of each side, in the order of `SIDES`."""


def _turned(cube: Cube, side: str) -> Cube:
    """Return the cube after the quarter turn that brings a side to the top."""
    colors = dict(zip(SIDES, cube, strict=True))
    # Each of these sides takes the color of the next one.
    cycle = ("top", side, "bottom", _OPPOSITES[side])
    sources = dict(zip(cycle, cycle[1:] + cycle[:1], strict=True))
    return tuple(colors[sources.get(target, target)] for target in SIDES)


def _possible_cubes(cube: Cube, side: str) -> list[Cube]:
    """Return the cubes that may result when a side is brought to the top."""
    if side == "bottom":
        return [_turned(_turned(cube, half), half) for half in ("front", "left")]
    return [_turned(cube, side)]


def _has_several_answers(entry: Entry) -> bool:
    """Return whether the side in question may have several colors after all turns."""
    metadata = entry["metadata"]
    cubes = {tuple(metadata["initial_state"][side] for side in SIDES)}
    for side in metadata["rotations"]:
        cubes = {turned for cube in cubes for turned in _possible_cubes(cube, side)}
    target = SIDES.index(metadata["target_side"])
    return len({cube[target] for cube in cubes}) > 1


COLOR_CUBE_ROTATION = TaskRules(
    "color_cube_rotation",
    item_checks=(
        ItemCheck(
            "answer depends on the direction of a half turn, which is not given",
            _has_several_answers,
        ),
    ),
)


# -- figlet_font -----------------------------------------------------------------------


@functools.cache
def _all_words(path: Path) -> list[str]:
    return [word for group in anagrams(path) for word in group]


def _fill(library: Mapping[str, Any], dataset: Any, config: Any) -> None:
    lengths = range(config.min_word_len, config.max_word_len + 1)
    words = _all_words(library["get_data_file_path"]("anagrams.jsonl"))
    dataset.words = [word for word in words if len(word) in lengths]
    if not dataset.words:
        raise ValueError("no word of the file has a length in the range")
    dataset._prompt_templates = [
        "What word does this say?\n\n{figlet_render}",
        "Please read the following figlet font:\n\n{figlet_render}",
    ]


_LOOKALIKES = re.compile(
    "b_m__200 .*[BCDEFGKLMNO]|runic .*[QUVXZ]|smisome1 .*[DO]|stencil2 .*[CI]", re.I
)
"""Matches a font and a word with a letter that looks like another letter in it."""

FIGLET_FONT = TaskRules(
    "figlet_font",
    fix=one_answer(),
    item_checks=(
        ItemCheck(
            "word has a letter that looks like another",
            lambda entry: bool(
                _LOOKALIKES.match(f"{entry['metadata']['font']} {entry['answer']}")
            ),
        ),
    ),
    faster=(
        FasterFunction(
            module="reasoning_gym.cognition.figlet_fonts",
            name="FigletFontDataset.__init__",
            digest="e632e55cd4484594",
            make=dataset_init(_fill),
        ),
    ),
)


# -- modulo_grid -----------------------------------------------------------------------


def _holds_majority_sign(entry: Entry) -> bool:
    """Return whether the majority sign of a grid is right in all blanks."""
    grid: str = entry["question"].partition("\n\n")[2]
    majority = max("✅❌", key=grid.count)
    return bool(grid.replace("❔", majority).strip() == entry["answer"].strip())


MODULO_GRID = TaskRules(
    "modulo_grid",
    item_checks=(
        downsample(
            "blanks all hold the majority sign of the grid",
            _holds_majority_sign,
            one_in=6,  # 90 of 100 at the defaults, with one blank in a grid
        ),
    ),
    level_repair=LevelRepair(
        {
            0: {"max_holes": 10},
            1: {"max_target": 2, "max_holes": 15},
            2: {"max_holes": 20},
            3: {"max_holes": 40},
            4: {"max_holes": 50},
            5: {"max_holes": 100},
        },
        "level 1 asks for a target of at most 0, and the task wants 1; and with so few"
        " holes the majority sign in all of them is right in up to 57 of 100 items",
    ),
)


# -- rectangle_count -------------------------------------------------------------------

# Some grids can be drawn in several ways: a cross is two bars or four arms, and two
# overlapping rectangles can also be drawn with small squares. The question does not say
# how small a rectangle may be, so every number of rectangles (2 by 2 cells or more)
# that draws the grid is a right answer.
#
# The first cell of a grid, row by row, is a corner of a rectangle. The search removes
# every rectangle with this corner in turn, in each connected part of the grid. A set of
# cells is an integer with one bit for each cell, row after row.

# Most states of the search in a part. If the number is unique, 100 steps prove it in
# all but 1 of 300 grids; a part that needs more than 300 nearly always has several.
MAX_STEPS = 300

# Translations to the bits of cells that are drawn at least once, and drawn twice.
_ONCE = str.maketrans(" #█", "011")
_TWICE = str.maketrans(" #█", "001")


def _bits(cells: int) -> Iterator[int]:
    """Yield the index of each cell of a set, the lowest first."""
    while cells:
        lowest = cells & -cells
        yield lowest.bit_length() - 1
        cells ^= lowest


def _parts(cells: int, stride: int) -> Iterator[int]:
    """Yield the sets of cells that are connected by their sides."""
    while cells:
        part = 0
        grown = cells & -cells
        while grown != part:
            part = grown
            grown |= part << 1 | part >> 1 | part << stride | part >> stride
            grown &= cells
        yield part
        cells &= ~part


def _outlines(cells: int, stride: int, column: int) -> Iterator[int]:
    """Yield the outlines of rectangles with the first cell as their first corner.

    Args:
        cells: The cells that an outline may use; at least one.
        stride: Bits from one row to the next; the last bit of a row is never set.
        column: The cells of the first column.
    """
    first = next(_bits(cells))
    cells >>= first  # the first cell is bit 0
    row = cells & ~(cells + 1)  # the cells to the right of the first one up to a gap
    gaps = column & ~cells
    side = column & ((gaps & -gaps) - 1)  # the cells below the first one up to a gap
    # A corner at the right has a cell below it, and a corner below one to its right.
    corners_right = row & cells >> stride & ~1
    corners_below = side & cells >> 1 & ~1
    for below, right in itertools.product(_bits(corners_below), _bits(corners_right)):
        edge = (2 << right) - 1
        upright = column & ((2 << below) - 1)
        outline = edge | edge << below | upright | upright << right
        if not outline & ~cells:
            yield outline << first


def _shows_one_count(once: int, twice: int, stride: int, column: int) -> bool:
    """Return whether all ways to draw a part use the same number of rectangles.

    Args:
        once: The cells that are drawn at least once.
        twice: The cells of them that are drawn twice.
        stride: As of `_outlines`.
        column: As of `_outlines`.
    """
    counts = set[int]()
    states = [(once, twice, 0)]
    for _ in range(MAX_STEPS):
        if not states:
            return True
        once, twice, count = states.pop()
        if not once:
            counts.add(count)
            if len(counts) > 1:
                return False
            continue
        for outline in _outlines(once, stride, column):
            rest = once & ~outline | twice & outline
            states.append((rest, twice & ~outline, count + 1))
    return False


def may_show_another_count(puzzle: str) -> bool:
    """Return whether a grid may be drawn with different numbers of rectangles.

    Args:
        puzzle: Rows of ` ` (empty), `#` (drawn once) and `█` (drawn twice).
    """
    rows = puzzle.rstrip("\n").split("\n")
    stride = len(rows[0]) + 1
    text = " ".join(rows)[::-1]
    once = int(text.translate(_ONCE), 2)
    twice = int(text.translate(_TWICE), 2)
    column = sum(1 << row * stride for row in range(len(rows) + 1))
    return not all(
        _shows_one_count(part, twice & part, stride, column)
        for part in _parts(once, stride)
    )


RECTANGLE_COUNT = TaskRules(
    "rectangle_count",
    fix=one_answer(partial_credit=False),
    item_checks=(
        ItemCheck(
            "grid may be drawn with another number of rectangles",
            lambda entry: may_show_another_count(entry["metadata"]["puzzle"]),
        ),
    ),
)


# -- rubiks_cube -----------------------------------------------------------------------

# The library gives an example solution only for cubes of size 3. The inverse moves of a
# scramble in reverse order undo it. The scorer drops moves that begin with a number, so
# a turn of the second layer, `2R`, is written `Rw R'`.

_NUMBERED = re.compile(r"(?<!\S)([12])([LRUDBF])(w?)('?)(?!\S)")


def _unnumbered_move(move: re.Match[str]) -> str:
    """Write a turn of the first or second layer without a leading number."""
    number, face, wide, prime = move.groups()
    if number == "1":
        return f"{face}{prime}"
    both = f"{face}w{prime}"
    back = "" if prime else "'"
    return both if wide else f"{both} {face}{back}"


def _unnumbered_moves(answer: str, entry: Entry) -> str:
    return _NUMBERED.sub(_unnumbered_move, answer)


# The repeat count of each move that the scorer does not drop.
_REPEATS = re.compile(r"(?<!\S)[^\d\s]+(\d*)(?!\S)")
_PLAIN_TURNS = re.compile(r"(?:[LRUDBF]w?'? ?)*")
_TURN = re.compile(r"(?:[LRDUBF]w?|[XYZMES])'?[0-9]{0,2}")


def _score_turns(answer: str, entry: Entry, library: LibraryScore) -> float:
    return library(answer) if all(map(_TURN.fullmatch, answer.split())) else 0.0


def unscramble(moves: str) -> str | None:
    """Return the answer that undoes a scramble, without leading numbers.

    It is None if a move turns a layer deeper than the second.

    Example:
        >>> unscramble("R 2U' Lw")
        "Lw' Uw U' R'"
    """
    undone = [f"{move}'".replace("''", "") for move in reversed(moves.split())]
    text = _NUMBERED.sub(_unnumbered_move, " ".join(undone))
    return text if _PLAIN_TURNS.fullmatch(text) else None


def _solution(entry: Entry) -> str | None:
    metadata = entry["metadata"]
    example: str | None = metadata.get("example_correct_answer")
    return unscramble(metadata["scramble_moves"]) if example == "" else example


RUBIKS_CUBE = TaskRules(
    "rubiks_cube",
    # The scorer turns the cube a million times for R1000000, and lists the moves.
    guard=repetition_guard(_REPEATS.findall, 2_000),
    notation=_unnumbered_moves,
    fix=ScorerFix(
        fault="Ignores numbers that stand alone and turns like `2R` and `U2'`.",
        score=_score_turns,
    ),
    level_repair=LevelRepair(
        {level: {"cube_size": 5} for level in (3, 4)},
        "level 3 asks for a cube of 6 with inner layers that no answer can turn, as"
        " the scorer drops moves that begin with a number; level 4 asks for 7, and the"
        " task takes 6 at most",
    ),
    solution=_solution,
)
