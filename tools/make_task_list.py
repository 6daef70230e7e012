"""Writes tasks/task_list.json from the library: `python -m tools.make_task_list`.

The list says what ought to exist when the registry cannot be read. A test compares it
with the installed library, so run this when reasoning-gym changes.
"""

from __future__ import annotations

import json

from rg_env.tasks import library
from rg_env.tasks.library_import import TASK_LIST


def list_text(description: library.LibraryDescription) -> str:
    """Return the text of the file for a library."""
    found = {"library_version": description.version, "tasks": [*description.tasks]}
    return json.dumps(found, indent=1) + "\n"


if __name__ == "__main__":
    TASK_LIST.write_text(list_text(library.describe()), encoding="utf-8")
    print(f"wrote {TASK_LIST.name}")
