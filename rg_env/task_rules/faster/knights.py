"""knight_swap: the moves that swap the knights.

The library defines a class in every search and describes each position by an object of
it. Nine of ten searches are for boards that turn out to have no solution.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

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
