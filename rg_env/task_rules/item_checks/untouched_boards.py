"""Boards, grids and graphs on which doing nothing, or the same to each, is right."""

from __future__ import annotations

from rg_env.task_rules.item_checks.item_check import Entry

MOST_IN_PLACE = 1 / 3
"""The share of the boxes that may stand at their targets from the beginning."""


def boxes_stand_at_targets(entry: Entry) -> bool:
    """Say whether too many boxes of boxnet need no way."""
    squares = entry["metadata"]["initial_state"].values()
    boxes = [thing for things in squares for thing in things if thing[:4] == "box_"]
    in_place = sum(
        min(things.count(box), things.count(f"target_{box[4:]}"))
        for things in squares
        for box in set(things)
        if box[:4] == "box_"
    )
    return bool(in_place > MOST_IN_PLACE * len(boxes))


def is_filled_by_one_sign(entry: Entry) -> bool:
    """Say whether the commoner sign of a modulo grid is right in all of its blanks."""
    grid: str = entry["question"].partition("\n\n")[2]
    common = max("✅❌", key=grid.count)
    return bool(grid.replace("❔", common).strip() == entry["answer"].strip())
