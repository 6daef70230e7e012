"""Records the digests of the evaluation sets: `python -m tools.make_digests`.

Making all their items takes ten minutes. Run it, and then `python -m tools.make_pages`,
when reasoning-gym changes, or which items have an incorrect reference answer.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from rg_env import Tasks

RECORDED = Path(__file__).with_name("evaluation_digests.json")

SETS: Mapping[str, Mapping[str, Any]] = {
    "default": {},
    "rg-easy": {"preset": "rg-easy"},
    "rg-hard": {"preset": "rg-hard"},
}
"""Name to the arguments of `Tasks.evaluation`."""


def recorded(tasks: Tasks, name: str) -> dict[str, Any]:
    """Return what is recorded of a set."""
    items = tasks.evaluation(**SETS[name])
    names = {item.task for item in items}
    return {"tasks": len(names), "items": len(items), "digest": tasks.digest(items)}


if __name__ == "__main__":
    tasks = Tasks()
    sets = {name: recorded(tasks, name) for name in SETS}
    found = {"library_version": metadata.version("reasoning-gym"), "sets": sets}
    RECORDED.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
