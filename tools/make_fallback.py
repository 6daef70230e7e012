"""Writes fallback_tasks.py from the library: `python -m tools.make_fallback`.

The list there says what ought to exist when the registry cannot be read. A test
compares it with the installed library, so run this when reasoning-gym changes.
"""

from __future__ import annotations

import sys
from pathlib import Path

from rg_env.tasks import library

HEADER = '''"""The tasks of reasoning-gym {version}, as written by make_fallback.py.

It is no substitute for the registry: no item can be made without the library. It says
what ought to be there when the library cannot be imported.
"""

LIBRARY_VERSION = "{version}"

TASKS = (
'''


def fallback_source(description: library.LibraryDescription) -> str:
    """Return the text of fallback_tasks.py for a library."""
    names = "".join(f'    "{name}",\n' for name in sorted(description.tasks))
    return HEADER.format(version=description.version) + names + ")\n"


if __name__ == "__main__":
    target = Path(library.__file__).with_name("fallback_tasks.py")
    target.write_text(fallback_source(library.describe()), encoding="utf-8")
    sys.stdout.write(f"wrote {target.name}\n")
