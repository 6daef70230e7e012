"""Rules of game_of_life and game_of_life_halting."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from typing import Any

from rg_env.task_rules.reading.filler_words import is_wrapper
from rg_env.task_rules.rules import (
    Entry,
    FasterFunction,
    ItemCheck,
    LevelRepair,
    LibraryScore,
    ScorerFix,
    TaskRules,
    partial_credit,
)

# -- game_of_life ----------------------------------------------------------------------


def _board(text: str) -> list[list[Any]] | None:
    try:
        rows = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
        return None
    return rows


def _claimed(rows: list[list[Any]]) -> dict[tuple[int, int], Any]:
    """Return the cells that are said to live: anything but 0, also if no number."""
    places = ((i, j, cell) for i, row in enumerate(rows) for j, cell in enumerate(row))
    return {(i, j): cell for i, j, cell in places if cell != 0}


def _overlap(rows: list[list[Any]], gold: list[list[Any]]) -> float:
    """Return the living cells that two boards share, of those in either of them."""
    claimed, living = _claimed(rows), _claimed(gold).keys()
    right: int = sum(claimed.get(at) == 1 for at in living)
    return right / max(1, len(living | claimed.keys()))


def _living_cells(answer: str, entry: Entry, library: LibraryScore) -> float:
    """Score the right board, and another one by its living cells, which are few.

    The library's score is the share of right cells, 0.95 for an empty board. Here the
    overlap of the living cells counts, beyond that of the first board and of a board
    on which all live.
    """
    rows, gold = _board(answer), _board(entry["answer"])
    if rows is None or gold is None:
        return 0.0
    if rows == gold:
        return library(answer)
    first = _board(entry["question"].partition("\n\n")[2].rstrip(".")) or []
    full = [[1] * len(row) for row in gold]
    trivial = max(_overlap(first, gold), _overlap(full, gold))
    return partial_credit(_overlap(rows, gold), trivial)


def _ends_as_it_began(entry: Entry) -> bool:
    gold: str = entry["answer"]
    return "1" not in gold or gold in entry["question"].replace("\n ", "")


def _faster_evolve2d(own: Any) -> Callable[..., Any]:
    """Return `evolve2d`, faster where the rule is that of the game of life.

    The library's recursive cache is built for rules that cost more than a sum of nine.
    """
    # The main process imports this module as well, and needs no numpy.
    import numpy as np

    life_rule = importlib.import_module("cellpylib").game_of_life_rule

    def evolve2d(
        boards: Any, timesteps: Any, apply_rule: Any, *more: Any, **options: Any
    ) -> Any:
        of_life = apply_rule is life_rule and not more and options.keys() <= {"memoize"}
        if not of_life or callable(timesteps):
            return own(boards, timesteps, apply_rule, *more, **options)
        states = [boards]
        for _ in range(1, timesteps):
            states.append(_next_board(states[-1][-1])[np.newaxis])
        return np.concatenate(states, axis=0)

    return evolve2d


def _next_board(board: Any) -> Any:
    """Return the next board of 0 and 1; shape and type stay, edges wrap around."""
    import numpy as np

    of_three = board + np.roll(board, 1, axis=0) + np.roll(board, -1, axis=0)
    of_nine = of_three + np.roll(of_three, 1, axis=1) + np.roll(of_three, -1, axis=1)
    lives = (of_nine == 3) | ((board == 1) & (of_nine == 4))
    return lives.astype(board.dtype)


GAME_OF_LIFE = TaskRules(
    "game_of_life",
    fix=ScorerFix(
        scorer_sha256="a7326b26a2eb938563cb8ee0b1652cdaeb46b22ab44507b5c4d4b2f88fbcdf9e",
        fault="An empty board scores 0.9 and more, one with a wrong cell 0.99; rows"
        " below the board are ignored.",
        score=_living_cells,
    ),
    item_checks=(
        ItemCheck(
            "last board is empty or the same as the first",
            _ends_as_it_began,
            answer_stands=True,
        ),
    ),
    level_repair=LevelRepair(
        {
            1: {"filled_cells": 125},
            2: {"filled_cells": 1250},
            3: {"filled_cells": 7840, "grid_size_x": 99, "grid_size_y": 99},
        },
        "every level has the 10 living cells of the defaults, because the share that"
        " it asks for is not read, so that the empty board is right in 99 of 100 items"
        " from level 1 on; and the right answer of level 3 has 20,201 characters",
    ),
    faster=(
        FasterFunction("cellpylib", "evolve2d", "8cdd09deb4158caf", _faster_evolve2d),
    ),
)


# -- game_of_life_halting --------------------------------------------------------------


def _halts(answer: str, entry: Entry, library: LibraryScore) -> float:
    text, gold = answer.lower(), entry["answer"].lower()
    return float(text.count(gold) == 1 and is_wrapper(text, gold))  # no `false: False`


GAME_OF_LIFE_HALTING = TaskRules(
    "game_of_life_halting",
    fix=ScorerFix(
        scorer_sha256="d194de0097bee9d5ebedd3a868b08fddeca9857377c55e50d6e35de001ecf8a6",
        fault="Any text scores 1.0, because bool() of any text is true.",
        score=_halts,
    ),
    item_checks=(
        ItemCheck(
            "question shows three dots in the place of most cells",
            lambda entry: "..." in entry["question"],
        ),
    ),
    level_repair=LevelRepair(
        {level: {"grid_size_x": 30, "grid_size_y": 30} for level in (2, 3)},
        "levels 2 and 3 ask for boards of more than 1,000 cells, and the question shows"
        " 36 cells of those",
    ),
)
