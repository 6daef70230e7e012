"""A full-score answer to an entry, where the library gives one.

The entry's `answer` is one, but in five tasks it is None because many answers are
right. Three of those keep an example in the metadata, boxnet and rush_hour none.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from rg_env.task_rules.cube_unscrambling import unscramble

IN_METADATA = {
    "graph_color": "possible_answer",
    "propositional_logic": "example_answer",
    "rubiks_cube": "example_correct_answer",
}
"""Task to the name of the example in its metadata."""


def solution(task: str, entry: Mapping[str, Any]) -> str | None:
    """Return an answer that scores 1.0, None where the entry holds none."""
    answer = entry["answer"]
    if answer is None and task in IN_METADATA:
        answer = entry["metadata"].get(IN_METADATA[task])
    if answer == "" and task == "rubiks_cube":
        # The library solves cubes of 3 alone.
        answer = unscramble(entry["metadata"]["scramble_moves"])
    if answer is None or isinstance(answer, str):
        return answer
    return json.dumps(answer)
