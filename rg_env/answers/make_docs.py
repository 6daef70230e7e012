"""Writes docs/scoring.md from the tables: `python -m rg_env.answers.make_docs`.

A test compares the file with the tables, so run this when a fix or a guard changes.
"""

from __future__ import annotations

import sys
from pathlib import Path

from rg_env.answers.fixes.table import FIXES
from rg_env.answers.guards import GUARDS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "scoring.md"

HEAD = """\
# What stands between an answer and its score

Written from the tables in `rg_env/answers/` by `python -m rg_env.answers.make_docs`.

An answer goes through three steps, all of them in a worker process with a deadline:

1. Longer than `max_answer_chars`, or not what an honest answer to the task can hold
   (the guards below): `refused`, score 0. The text is read and never evaluated.
2. The library's scorer gives its score, bare and tagged.
3. Where that scorer has a known fault, the corrected score counts instead (the fixes
   below), unless `scorer_fixes` is false. A fix holds for the scorer that it was
   written for; if the installed library has another one, the fault is looked for
   again first, and the log says what was found.
"""


def _table(headings: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [headings, tuple("---" for _ in headings), *rows]
    cells = [[cell.replace("|", "\\|") for cell in line] for line in lines]
    return "\n".join("| " + " | ".join(line) + " |" for line in cells)


def page() -> str:
    """Return the text of the page."""
    guards = _table(
        ("Task", "What its scorer does with text", "What an honest answer holds"),
        [(g.task, g.danger, g.honest) for _, g in sorted(GUARDS.items())],
    )
    fixes = _table(
        ("Task", "Fault of the library's scorer", "Found in"),
        [(f.task, f.fault, f.library_version) for _, f in sorted(FIXES.items())],
    )
    guard_title = f"## Guards ({len(GUARDS)})"
    fix_title = f"## Fixes ({len(FIXES)})"
    return "\n\n".join([HEAD.rstrip(), guard_title, guards, fix_title, fixes]) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    sys.stdout.write(f"wrote {PAGE.name}\n")
