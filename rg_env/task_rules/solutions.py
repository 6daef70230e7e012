"""Where the examples of correct answers stand in the entries of a task."""

from __future__ import annotations

from rg_env.task_rules.cube_unscrambling import unscramble
from rg_env.task_rules.rules import Entry


def _of_cube(entry: Entry) -> str | None:
    example: str = entry["metadata"]["example_correct_answer"]
    # The library solves cubes of 3 alone.
    return example or unscramble(entry["metadata"]["scramble_moves"])


IN_METADATA = {
    "propositional_logic": lambda entry: entry["metadata"].get("example_answer"),
    "rubiks_cube": _of_cube,
}
"""Task to its example."""
