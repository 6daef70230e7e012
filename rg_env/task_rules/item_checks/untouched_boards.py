"""Boards, grids and graphs on which doing nothing, or the same to each, is right."""

from __future__ import annotations

from math import comb

from rg_env.task_rules.item_checks.item_check import Entry

MOST_COLORED = 0.2
"""Of graphs with so many edges, the share that the colors in turn may be right for."""


def ends_as_it_began(entry: Entry) -> bool:
    """Say whether a game of life ends with no cell or with its first board."""
    gold: str = entry["answer"]
    return "1" not in gold or gold in entry["question"].replace("\n ", "")


def has_few_edges(entry: Entry) -> bool:
    """Say whether a fixed coloring is right for too many graphs of this size.

    The colors in turn are the best of them: no other fixed coloring gives fewer pairs
    of vertices the same color.
    """
    puzzle = entry["metadata"]["puzzle"]
    vertices, edges = len(puzzle["vertices"]), len(puzzle["edges"])
    size, larger = divmod(vertices, len(puzzle["color_options"]))
    colors = len(puzzle["color_options"])
    same = larger * comb(size + 1, 2) + (colors - larger) * comb(size, 2)
    pairs = comb(vertices, 2)
    return comb(pairs - same, edges) > MOST_COLORED * comb(pairs, edges)
