"""Fixes of the category algorithmic."""

from __future__ import annotations

import json

from fixed_scores import entries, fixed_score


def test_the_dead_board_is_paid_only_where_it_is_right() -> None:
    dead = json.dumps([[0] * 10] * 10)
    for entry in entries("game_of_life"):
        fixed = fixed_score("game_of_life", entry, dead)
        assert fixed == float("1" not in entry["answer"])
