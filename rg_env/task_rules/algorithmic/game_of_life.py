"""Rules of game_of_life."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from rg_env.task_rules.answer_matching import one_answer
from rg_env.task_rules.rules import (
    Entry,
    FasterFunction,
    ItemCheck,
    LevelRepair,
    TaskRules,
)


def _ends_as_it_began(entry: Entry) -> bool:
    last: str = entry["answer"]
    return "1" not in last or last in entry["question"].replace("\n ", "")


def _make_evolve2d(original: Any) -> Callable[..., Any]:
    """Return an `evolve2d` that is faster for the rule of the game of life.

    The library's recursive cache costs more than the sum of nine cells that it saves.
    """
    # The main process imports this module too, and does not need numpy.
    import numpy as np

    life_rule = importlib.import_module("cellpylib").game_of_life_rule

    def evolve2d(
        boards: Any, timesteps: Any, apply_rule: Any, *more: Any, **options: Any
    ) -> Any:
        has_options = more or not options.keys() <= {"memoize"}
        if apply_rule is not life_rule or has_options or callable(timesteps):
            return original(boards, timesteps, apply_rule, *more, **options)
        states = [boards]
        for _ in range(1, timesteps):
            states.append(_next_board(states[-1][-1])[np.newaxis])
        return np.concatenate(states, axis=0)

    return evolve2d


def _next_board(board: Any) -> Any:
    """Return the next board of 0 and 1, with the same shape and type; edges wrap."""
    import numpy as np

    thirds = board + np.roll(board, 1, axis=0) + np.roll(board, -1, axis=0)
    sums = thirds + np.roll(thirds, 1, axis=1) + np.roll(thirds, -1, axis=1)
    living = (sums == 3) | ((board == 1) & (sums == 4))
    return living.astype(board.dtype)


GAME_OF_LIFE = TaskRules(
    "game_of_life",
    fix=one_answer(partial_credit=False),
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
        "every level has the 10 living cells of the defaults, because the library"
        " ignores the share of a level, so that the empty board is right in 99 of 100"
        " items from level 1 on; and the right answer of level 3 has 20,201 characters",
    ),
    faster=(
        FasterFunction(
            module="cellpylib",
            name="evolve2d",
            digest="8cdd09deb4158caf",
            make=_make_evolve2d,
        ),
    ),
)
