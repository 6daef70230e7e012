"""Rules of the games with a list of moves as the solution."""

from __future__ import annotations

import re
import string
from collections import deque
from collections.abc import Mapping, Sequence

from rg_env.task_rules.reading.filler_words import is_filler_beside
from rg_env.task_rules.reading.lists import (
    list_notation,
    plain,
    read_sequence,
    repetition_guard,
)
from rg_env.task_rules.reading.values import as_json
from rg_env.task_rules.rules import (
    READABLE_SCORE,
    Entry,
    FasterFunction,
    ItemCheck,
    LevelRepair,
    LibraryScore,
    ScorerFix,
    TaskRules,
    downsample_answer,
)

# -- knight_swap -----------------------------------------------------------------------

# The library defines a class in every search and makes an object for each position.
# Nine of ten searches are for boards that turn out to have no solution.

Board = Mapping[str, Sequence[str]]
Move = tuple[str, str, str]
State = tuple[frozenset[str], frozenset[str], str]


def _solve_swap(
    board: Board, pieces: Mapping[str, str | None], start_turn: str = "w"
) -> list[Move] | None:
    """Search as the library does, in the same order, with plain tuples.

    Sets of squares are built as in the library, because their order decides which of
    several shortest solutions it finds.
    """
    initial_white = frozenset(s for s, piece in pieces.items() if piece == "w")
    initial_black = frozenset(s for s, piece in pieces.items() if piece == "B")
    start: State = (initial_white, initial_black, start_turn)
    came_from: dict[State, tuple[State, Move] | None] = {start: None}
    queue = deque([start])
    while queue:
        state = queue.popleft()
        white, black, turn = state
        if (white, black) == (initial_black, initial_white):
            return _moves_to(state, came_from)
        is_white = turn == "w"
        moving = white if is_white else black
        for square in moving:
            for target in board[square]:
                if target in white or target in black:
                    continue
                moved = frozenset(target if s == square else s for s in moving)
                after = (moved, black, "B") if is_white else (white, moved, "w")
                if after not in came_from:
                    came_from[after] = (state, (turn, square, target))
                    queue.append(after)
    return None


def _moves_to(
    state: State, came_from: Mapping[State, tuple[State, Move] | None]
) -> list[Move]:
    moves: list[Move] = []
    while step := came_from[state]:
        state, move = step
        moves.insert(0, move)
    return moves


def _is_leap(a: str, b: str) -> bool:
    return {abs(ord(a[0]) - ord(b[0])), abs(int(a[1:]) - int(b[1:]))} == {1, 2}


def _can_be_swapped(entry: Entry) -> bool:
    """Return whether the knights can be swapped although the answer is `No`.

    The library removes a connection from the board that it searches, but the question
    shows the board with it.
    """
    metadata = entry["metadata"]
    if metadata["is_possible"]:
        return False
    squares = metadata["board"]
    board = {a: [b for b in squares if _is_leap(a, b)] for a in squares}
    return _solve_swap(board, metadata["pieces"], metadata["start_turn"]) is not None


KNIGHT_SWAP = TaskRules(
    "knight_swap",
    notation=as_json,
    item_checks=(
        ItemCheck(
            "answer is that the knights cannot be swapped, and they can",
            _can_be_swapped,
        ),
        # 12 to 21 of 100 positions cannot be reached.
        downsample_answer("No", one_in=2),
    ),
    level_repair=LevelRepair(
        {
            **{level: {"min_nodes": 6, "max_nodes": 7} for level in (0, 1)},
            **{level: {"min_nodes": 6} for level in (2, 3, 4)},
        },
        "every level asks for boards from 4 squares on, and the task wants 6; with only"
        " 6, as at levels 0 and 1, a puzzle takes seconds to find",
    ),
    faster=(
        FasterFunction(
            module="reasoning_gym.games.knight_swap",
            name="KnightSwapLogic.solve_swap",
            digest="c8790a24b325cf2f",
            make=lambda original: _solve_swap,
        ),
    ),
)


# -- rush_hour -------------------------------------------------------------------------

# In the library, a car moves as far as it can, and a blocked car stays. So a hundred
# random moves free the red car in 19 of 20 easy items. Here a car must be able to move
# by the whole number of cells.
#
# At the exit, the red car may drive out by the two cells of its length. The other cars
# then move as if it were gone.

Cell = tuple[int, int]
Cars = dict[str, list[Cell]]

# Rows and columns of the board.
SIDE = 6

RED = "A"

EXIT: list[Cell] = [(2, SIDE - 2), (2, SIDE - 1)]
"""The cells that the red car has to reach."""

_CAR_MOVE = re.compile(r"([A-Z])([+-])([0-9]+)")


def read_board(config: str) -> tuple[Cars, set[Cell]]:
    """Return the cars and the walls of a board of 36 letters, row by row.

    The question renames the cars to A, B, C, ... in their order.
    """
    by_label: Cars = {}
    for index, label in enumerate(config):
        by_label.setdefault(label, []).append(divmod(index, SIDE))
    by_label.pop("o", None)
    walls = set(by_label.pop("x", []))
    cars = (by_label[label] for label in sorted(by_label))
    return dict(zip(string.ascii_uppercase, cars, strict=False)), walls


def _step(cars: Cars, walls: set[Cell], car: str, direction: int) -> bool:
    """Move a car by one cell; return whether the move was possible."""
    cells = cars[car]
    down, right = (0, direction) if cells[0][0] == cells[1][0] else (direction, 0)
    moved = [(row + down, column + right) for row, column in cells]
    gone = {car, RED} if cars[RED] == EXIT else {car}
    taken = {cell for other in cars.keys() - gone for cell in cars[other]} | walls
    if not all(0 <= index < SIDE for cell in moved for index in cell):
        return False
    if not taken.isdisjoint(moved):
        return False
    cars[car] = moved
    return True


def _are_moves_possible(config: str, answer: str) -> bool:
    cars, walls = read_board(config)
    driven_out = 0
    for car, sign, digits in _CAR_MOVE.findall(answer):
        if car not in cars or len(digits) > 2:
            return False
        direction = 1 if sign == "+" else -1
        for _ in range(int(digits)):
            if car == RED and direction == 1 and cars[RED] == EXIT:
                driven_out += 1
            elif (car == RED and driven_out) or not _step(cars, walls, car, direction):
                return False
    return driven_out <= len(EXIT)


def _score_car_moves(answer: str, entry: Entry, library: LibraryScore) -> float:
    if not is_filler_beside(_CAR_MOVE, answer):
        return 0.0
    if not _are_moves_possible(entry["metadata"]["board_config"], answer):
        return READABLE_SCORE
    return library(answer)


_WRITTEN_CAR_MOVE = re.compile(r"([A-Za-z])\1{0,2}\s*([+-])\s*([0-9]+)")
_STEP_COUNTS = re.compile(r"[A-Z][+-](\d+)")

RUSH_HOUR = TaskRules(
    "rush_hour",
    # The scorer moves a car a billion times for A+999999999.
    guard=repetition_guard(_STEP_COUNTS.findall, 20_000),
    notation=list_notation(
        _WRITTEN_CAR_MOVE,
        " ".join,
        written=lambda move: f"{move[1].upper()}{move[2]}{move[3]}",
    ),
    fix=ScorerFix(
        fault="Skips impossible moves, so that enough random moves free the car.",
        score=_score_car_moves,
    ),
)


# -- sokoban ---------------------------------------------------------------------------

# The library plays every letter that it finds. Moves after a solution often change
# nothing, so a right walk with a wrong one after it scores 1.0. Here a walk in several
# pieces must end with the move that solves the puzzle, and no piece may solve it
# without the others. The multilingual version writes moves as arrows.

_MOVES = r"\b[LRUD]+\b"
_ARROWS = "[←↑→↓]+"


def _score_walk(answer: str, entry: Entry, library: LibraryScore) -> float:
    """Score moves with nothing but filler words beside them."""
    moves = _ARROWS if re.match(_ARROWS, entry["answer"]) else _MOVES
    if not is_filler_beside(re.compile(f"{moves}|->|→"), answer):
        return 0.0
    pieces = re.findall(moves, answer)
    walk = "".join(pieces)
    shorter = {walk[:-1], *pieces} if len(pieces) > 1 else ()
    return 0.0 if 1.0 in map(library, shorter) else library(walk)


SOKOBAN = TaskRules(
    "sokoban",
    notation=lambda answer, entry: (
        answer.upper() if set(answer) <= set("lrudLRUD \n") else answer
    ),
    fix=ScorerFix(
        fault="Ignores everything but the letters of moves, even a second answer.",
        score=_score_walk,
    ),
    level_repair=LevelRepair(
        {0: {"min_boxes": 3, "max_boxes": 4}},
        "level 0 asks for the default's 4 to 10 boxes on a board of 6 by 6, and none is"
        " found in 20 s",
    ),
)


# -- tower_of_hanoi --------------------------------------------------------------------

_DISK_MOVE = re.compile(
    r"(?:move )?dis[kc] ?([0-9]{1,4}) from (?:peg|rod) ?([0-9]{1,4})"
    r" to (?:peg|rod) ?([0-9]{1,4})\b",
    re.IGNORECASE,
)


def _score_disk_moves(answer: str, entry: Entry, library: LibraryScore) -> float:
    # The reference shows how a move is written in the question's language.
    first_move = re.escape(entry["answer"].partition("\n")[0])
    pattern = re.compile(re.sub("[0-9]+", "[0-9]{1,4}", first_move))
    moves = read_sequence(plain(answer), pattern)
    if moves is None:
        return 0.0
    # One version of the library reads only the first move of a line.
    value = library("\n".join(move[0] for move in moves))
    return value if value in (0.0, 0.05) else 1.0  # 0.05: a disk is on another peg


TOWER_OF_HANOI = TaskRules(
    "tower_of_hanoi",
    notation=list_notation(
        _DISK_MOVE,
        "\n".join,
        written=lambda move: f"Move disk {move[1]} from Peg {move[2]} to Peg {move[3]}",
    ),
    fix=ScorerFix(
        fault=(
            "Ignores signs before a move, `~Move disk 1`; a solution that is not the"
            " shortest scores less, which the question does not ask for."
        ),
        score=_score_disk_moves,
    ),
    level_repair=LevelRepair(
        {0: {"max_disks": 4}}, "level 0 has six different questions"
    ),
)
