"""Rules of graph_color, whose answer is a color for each vertex, in JSON."""

from __future__ import annotations

import json
from math import comb

from rg_env.task_rules.reading.values import as_json, refuse_duplicate_names
from rg_env.task_rules.rules import (
    READABLE_SCORE,
    Entry,
    ItemCheck,
    LevelRepair,
    LibraryScore,
    ScorerFix,
    TaskRules,
)

# The largest share of graphs for which a fixed coloring may be right.
MAX_COLORED = 0.2


def _score_coloring(answer: str, entry: Entry, library: LibraryScore) -> float:
    value = library(answer)
    if value <= READABLE_SCORE:
        return value
    try:
        colors = json.loads(answer, object_pairs_hook=refuse_duplicate_names)
    except ValueError:
        return READABLE_SCORE
    vertices = {str(vertex) for vertex in entry["metadata"]["puzzle"]["vertices"]}
    are_integers = all(type(color) is int for color in colors.values())
    return value if are_integers and colors.keys() == vertices else READABLE_SCORE


def _has_few_edges(entry: Entry) -> bool:
    """Return whether a fixed coloring is right for too many graphs of this size.

    The best fixed coloring assigns the colors in turn: no other one gives fewer pairs
    of vertices the same color.
    """
    puzzle = entry["metadata"]["puzzle"]
    vertices = len(puzzle["vertices"])
    edges = len(puzzle["edges"])
    colors = len(puzzle["color_options"])
    # `larger` of the colors have one vertex more than the others.
    size, larger = divmod(vertices, colors)
    same_color = larger * comb(size + 1, 2) + (colors - larger) * comb(size, 2)
    pairs = comb(vertices, 2)
    return comb(pairs - same_color, edges) > MAX_COLORED * comb(pairs, edges)


GRAPH_COLOR = TaskRules(
    "graph_color",
    notation=as_json,
    fix=ScorerFix(
        fault="Takes the last color if a vertex gets two.",
        score=_score_coloring,
    ),
    item_checks=(
        ItemCheck(
            "edges are so few that the colors in turn are right for one in five such"
            " graphs",
            _has_few_edges,
            answer_stands=True,
        ),
    ),
    level_repair=LevelRepair(
        {
            0: {"num_colors": 4, "min_num_vertices": 8, "edge_probability": 0.3},
            1: {"min_num_vertices": 8, "edge_probability": 0.2},
            2: {"min_num_vertices": 10},
            3: {"min_num_vertices": 10},
        },
        "levels 0 and 1 have so few edges that the colors in turn are right in up to 77"
        " of 100 items",
    ),
    solution=lambda entry: entry["metadata"].get("possible_answer"),
)
