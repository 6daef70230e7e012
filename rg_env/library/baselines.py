"""What a trivial baseline scores at a task and level: answers without solving.

Where an answer space is small, guessing scores. `baselines.json` says how much, for one
version of the library: measured by `python -m tools.make_baselines` at the
library's defaults and at every step of the shipped scales.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path

TABLE = Path(__file__).with_name("baselines.json")

# Where a trivial baseline scores more, a model's score says little.
EASILY_GUESSED = 0.4


def guessing_notes(tasks: Collection[str]) -> list[str]:
    """Return a sentence that names those of some tasks that can be guessed, if any."""
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
