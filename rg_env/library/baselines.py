"""Trivial baselines: the scores of answers without solving, by task and level.

If the answer space is small, guessing scores. `python -m tools.make_baselines` measures
how much at the defaults of one version of the library and at every step of the shipped
scales, and writes `baselines.json`.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path

TABLE = Path(__file__).with_name("baselines.json")

# If a trivial baseline scores more, the score of a model means little.
EASILY_GUESSED = 0.4


def guessing_notes(tasks: Collection[str]) -> list[str]:
    """Return a sentence that names the tasks that can be guessed, or no sentence."""
    table = json.loads(TABLE.read_text(encoding="utf-8"))
    guessed = [
        task
        for task, row in sorted(table["tasks"].items())
        if task in tasks and any(b["value"] > EASILY_GUESSED for b in row["baselines"])
    ]
    note = (
        f"scores say little in {', '.join(guessed)}: answers without solving score more"
        f" than {EASILY_GUESSED} at a level of each (docs/trivial_baselines.md)"
    )
    return [note] if guessed else []
