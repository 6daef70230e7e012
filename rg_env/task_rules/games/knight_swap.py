"""knight_swap: moves of knights, and whether there are any.

The library defines a class in every search and describes each position by an object of
it. Nine of ten searches are for boards that turn out to have no solution.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rg_env.task_rules.common_answers import seldom_answered
from rg_env.task_rules.reading.moves import moves_of
from rg_env.task_rules.rules import (
    Entry,
    FasterFunction,
    ItemCheck,
    LevelRepair,
    TaskRules,
)

_KNIGHT_MOVE = re.compile(
    r"(w(?:hite)?|b(?:lack)?)\s*[:,\s]\s*([A-Z][0-9]{1,2})"
    r"\s*(?:,|\u2192|\bto\b|-|\s)\s*([A-Z][0-9]{1,2})\b",
    re.IGNORECASE,
)


def _knight_move(move: re.Match[str]) -> str:
    color = "w" if move[1][0] in "wW" else "B"
    return f"{color},{move[2].upper()},{move[3].upper()}"


Board = Mapping[str, Sequence[str]]
Move = tuple[str, str, str]
State = tuple[frozenset[str], frozenset[str], str]


def make_solve_swap(own: Any) -> Callable[..., list[Move] | None]:
    """Return `solve_swap`: the same search in the same order, with plain tuples.

    Sets of squares are made as the library makes them, because of several shortest
    solutions it takes the one that their order comes to first.
    """

    def solve_swap(
        board: Board, pieces: Mapping[str, str | None], start_turn: str = "w"
    ) -> list[Move] | None:
        initial_white = frozenset(at for at, piece in pieces.items() if piece == "w")
        initial_black = frozenset(at for at, piece in pieces.items() if piece == "B")
        goal = (initial_black, initial_white)
        start: State = (initial_white, initial_black, start_turn)
        came_from: dict[State, tuple[State, Move] | None] = {start: None}
        queue = deque([start])
        while queue:
            state = queue.popleft()
            white, black, turn = state
            if (white, black) == goal:
                return _moves_to(state, came_from)
            is_white = turn == "w"
            moving = white if is_white else black
            next_turn = "B" if is_white else "w"
            for square in moving:
                for target in board[square]:
                    if target in white or target in black:
                        continue
                    moved = frozenset(target if at == square else at for at in moving)
                    after: State = (
                        (moved, black, next_turn)
                        if is_white
                        else (white, moved, next_turn)
                    )
                    if after not in came_from:
                        came_from[after] = (state, (turn, square, target))
                        queue.append(after)
        return None

    return solve_swap


def _moves_to(
    state: State, came_from: Mapping[State, tuple[State, Move] | None]
) -> list[Move]:
    moves = []
    step = came_from[state]
    while step is not None:
        before, move = step
        moves.append(move)
        step = came_from[before]
    return moves[::-1]


_LEAP = {1, 2}
"""Columns and rows between two squares, in either order."""


def _can_be_swapped(entry: Entry) -> bool:
    """Say whether knights swap where `No` is the answer.

    The library removes a move between two squares from the board that it searches, and
    not from the one that it draws.
    """
    metadata = entry["metadata"]
    if metadata["is_possible"]:
        return False
    board = {
        a: [
            b
            for b in metadata["board"]
            if {abs(ord(a[0]) - ord(b[0])), abs(int(a[1:]) - int(b[1:]))} == _LEAP
        ]
        for a in metadata["board"]
    }
    solve = make_solve_swap(None)
    return solve(board, metadata["pieces"], metadata["start_turn"]) is not None


RULES = TaskRules(
    "knight_swap",
    notation=moves_of(_KNIGHT_MOVE, _knight_move, json.dumps),
    item_checks=(
        ItemCheck(
            "answer is that the knights cannot be swapped, and they can",
            _can_be_swapped,
        ),
        # 12 to 21 of 100 positions cannot be reached.
        seldom_answered({"No": 2}),
    ),
    level_repair=LevelRepair(
        {
            **{level: {"min_nodes": 6, "max_nodes": 7} for level in (0, 1)},
            **{level: {"min_nodes": 6} for level in (2, 3, 4)},
        },
        "every level asks for boards from 4 squares on, and the task wants 6; with 6"
        " alone, as at levels 0 and 1, a puzzle takes seconds to find",
    ),
    faster=(
        FasterFunction(
            "reasoning_gym.games.knight_swap",
            "KnightSwapLogic.solve_swap",
            "c8790a24b325cf2f",
            make_solve_swap,
        ),
    ),
)
