"""Record what a checkout does through its public names, and compare two records.

    python -m tools.golden_record record CHECKOUT FOLDER [SECTION ...]
    python -m tools.golden_record compare FOLDER FOLDER

A record is a folder of JSONL files, one for each section: items, scores, settings and
runs. Each line has a key and a value. A section is a program beside this file that runs
in the checkout, with the packages of this Python. A redesign compares its own record
with that of the commit before it: what differs must be meant.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

SECTIONS = ("items", "scores", "settings", "runs")
MOST_SHOWN = 12
"""Differences of a section that are printed."""


def record(checkout: Path, folder: Path, sections: list[str]) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    environ = os.environ | {"PYTHONPATH": str(checkout), "PYTHONHASHSEED": "0"}
    status = 0
    for name in sections:
        program = Path(__file__).with_name(f"{name}.py")
        with (folder / f"{name}.jsonl").open("w") as out:
            done = subprocess.run(
                [sys.executable, str(program), str(checkout)],
                stdout=out,
                cwd=checkout,
                env=environ,
                check=False,
            )
        print(f"{name}: status {done.returncode}", file=sys.stderr)
        status |= done.returncode
    return status


def _read(path: Path) -> dict[str, object]:
    lines = map(json.loads, path.read_text().splitlines())
    return {line["key"]: line["value"] for line in lines}


def compare(old: Path, new: Path) -> int:
    total = 0
    for path in sorted(old.glob("*.jsonl")):
        if not (new / path.name).exists():
            print(f"{path.stem}: not in {new}")
            continue
        before, after = _read(path), _read(new / path.name)
        keys = list(dict.fromkeys([*before, *after]))
        missing = object()
        differing = [
            key for key in keys if before.get(key, missing) != after.get(key, missing)
        ]
        total += len(differing)
        print(f"{path.stem}: {len(keys)} values, {len(differing)} differ")
        places = Counter(" ".join(key.split()[:2]) for key in differing)
        print(
            "".join(f"  {n} x {place}\n" for place, n in places.most_common()), end=""
        )
        for key in differing[:MOST_SHOWN]:
            print(f"  {key}\n    - {before.get(key)}\n    + {after.get(key)}"[:1200])
    return int(total > 0)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.golden_record")
    actions = parser.add_subparsers(required=True, dest="action")
    one = actions.add_parser("record")
    one.add_argument("checkout", type=Path)
    one.add_argument("folder", type=Path)
    one.add_argument("sections", nargs="*", default=list(SECTIONS))
    two = actions.add_parser("compare")
    two.add_argument("old", type=Path)
    two.add_argument("new", type=Path)
    given = parser.parse_args()
    if given.action == "compare":
        return compare(given.old, given.new)
    return record(given.checkout.resolve(), given.folder, given.sections)


if __name__ == "__main__":
    sys.exit(main())
