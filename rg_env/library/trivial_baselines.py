"""The scores of trivial baselines, which answer without solving.

`trivial_baselines.json` has them at the defaults of one release of reasoning-gym and at
every step of the shipped scales; `python -m tools.make_baselines` measures them.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path

BASELINES = Path(__file__).with_name("trivial_baselines.json")

# If a trivial baseline scores more, the score of a model means little.
GUESSABLE_ABOVE = 0.4


def guessing_notes(tasks: Collection[str]) -> list[str]:
    """Return a sentence that names the tasks that can be guessed, or no sentence."""
    rows = json.loads(BASELINES.read_bytes())["tasks"]
    guessable = [
        task
        for task in sorted(rows.keys() & tasks)
        if any(b["value"] > GUESSABLE_ABOVE for b in rows[task]["baselines"])
    ]
    if not guessable:
        return []
    note = (
        f"scores say little in {', '.join(guessable)}: answers without solving score"
        f" more than {GUESSABLE_ABOVE} at a level of each (docs/trivial_baselines.md)"
    )
    return [note]
