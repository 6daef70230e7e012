"""Writes library_tasks.json from the library: `python -m tools.make_library_tasks`.

The list says what ought to exist when the registry cannot be read. A test compares it
with the installed library, so run this when reasoning-gym changes.
"""

from __future__ import annotations

import json

from rg_env.library import registry
from rg_env.library.registry import LIBRARY_TASKS


def list_text(description: registry.LibraryDescription) -> str:
    tasks = {name: info.category for name, info in description.tasks.items()}
    found = {"library_version": description.version, "tasks": tasks}
    return json.dumps(found, indent=1) + "\n"


if __name__ == "__main__":
    LIBRARY_TASKS.write_text(list_text(registry.describe()), encoding="utf-8")
    print(f"wrote {LIBRARY_TASKS.name}")
