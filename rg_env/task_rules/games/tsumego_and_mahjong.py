"""Rules of mahjong_puzzle and tsumego, whose answers are a word or a point."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from rg_env.task_rules.answer_matching import CONTAINMENT_FIX
from rg_env.task_rules.rules import Entry, ItemCheck, TaskRules

# -- mahjong_puzzle --------------------------------------------------------------------

# Offsets of the two other cards of a sequence from the added one.
_SEQUENCES = ((-2, -1), (-1, 1), (1, 2))


def result_of_last_round(rounds: Sequence[Mapping[str, str]]) -> str:
    """Return "Peng", "Chi" or "Pass".

    Args:
        rounds: The card that was added (`add`), the card that was removed (`remove`)
            and the cards in hand afterwards (`cards`) of each round.

    Example:
        >>> result_of_last_round([{"add": "B", "remove": "X", "cards": "ABC"}])
        'Chi'
    """
    last = rounds[-1]
    added = last["add"]
    hand = Counter(last["cards"] + last["remove"])
    hand[added] -= 1
    if hand[added] >= 2:
        return "Peng"
    code = ord(added)
    if any(hand[chr(code + a)] and hand[chr(code + b)] for a, b in _SEQUENCES):
        return "Chi"
    return "Pass"


def _has_another_result(entry: Entry) -> bool:
    result = result_of_last_round(entry["metadata"]["rounds"])
    return bool(result != entry["answer"])


MAHJONG = TaskRules(
    "mahjong_puzzle",
    item_checks=(
        ItemCheck("answer is not the result of its last round", _has_another_result),
    ),
)


# -- tsumego ---------------------------------------------------------------------------

Board = Sequence[Sequence[str]]
"""Rows from the top; "X" is black, "O" white and "." empty."""

Point = tuple[int, int]


def _neighbours(board: Board, point: Point) -> Iterator[tuple[Point, str]]:
    row, column = point
    for down, right in ((-1, 0), (1, 0), (0, -1), (0, 1)):
        r, c = row + down, column + right
        if 0 <= r < len(board) and 0 <= c < len(board[r]):
            yield (r, c), board[r][c]


def _white_group(board: Board, stone: Point) -> tuple[set[Point], set[Point]]:
    """Return the stones and the liberties of a group."""
    stones = {stone}
    liberties: set[Point] = set()
    unvisited = [stone]
    while unvisited:
        for point, mark in _neighbours(board, unvisited.pop()):
            if mark == ".":
                liberties.add(point)
            elif mark == "O" and point not in stones:
                stones.add(point)
                unvisited.append(point)
    return stones, liberties


def captured_stones(board: Board) -> Counter[str]:
    """Return the moves that capture, each with the number of captured stones.

    A move is written as in the question: the letter of the column from the left and the
    number of the row from below. A stone on the only liberty of a group captures it.
    """
    captured: Counter[str] = Counter()
    seen: set[Point] = set()
    for row, marks in enumerate(board):
        for column, mark in enumerate(marks):
            if mark != "O" or (row, column) in seen:
                continue
            stones, liberties = _white_group(board, (row, column))
            seen |= stones
            if len(liberties) == 1:
                r, c = liberties.pop()
                captured[f"{chr(ord('A') + c)}{len(board) - r}"] += len(stones)
    return captured


def _captures_nothing(entry: Entry) -> bool:
    board = entry["metadata"]["board"]
    return entry["answer"] not in captured_stones(board)


def _is_not_the_only_capture(entry: Entry) -> bool:
    others = captured_stones(entry["metadata"]["board"])
    captured = others.pop(entry["answer"])
    if "as many white stones as possible" in entry["question"]:
        return max(others.values(), default=0) >= captured
    return bool(others)


TSUMEGO = TaskRules(
    "tsumego",
    fix=CONTAINMENT_FIX,
    item_checks=(
        ItemCheck("answer captures nothing", _captures_nothing),
        ItemCheck(
            "answer is not the only move that captures", _is_not_the_only_capture
        ),
    ),
)
