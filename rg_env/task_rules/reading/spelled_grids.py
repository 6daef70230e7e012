"""Grids of numbers and signs, however their rows and cells are kept apart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rg_env.task_rules.reading.grids import (
    BIT,
    DECIMAL,
    DIGIT,
    WHOLE,
    grid_of,
    read_grid,
)
from rg_env.task_rules.reading.notation import Spelling


def board_of_bits(answer: str, entry: Mapping[str, Any]) -> str:
    """Write a board of game_of_life as JSON without spaces."""
    rows = read_grid(answer, BIT, compact=True)
    if rows is None:
        return answer
    return f"[{','.join('[' + ','.join(row) + ']' for row in rows)}]"


SPELLINGS: Mapping[str, Spelling] = {
    "arc_1d": grid_of(DIGIT, compact=True),
    "arc_agi": grid_of(DIGIT, compact=True),
    "binary_matrix": grid_of(WHOLE),
    "game_of_life": board_of_bits,
    "manipulate_matrix": grid_of(WHOLE),
    "pool_matrix": grid_of(DECIMAL),
    "rearc": grid_of(DIGIT, compact=True),
    "rotate_matrix": grid_of(WHOLE),
}
"""Task to its spelling."""
