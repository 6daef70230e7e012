"""CPU time of making items, with the faster parts and with the library's own.

    python benchmarks/item_speed.py [--items 15] [--defaults] [--json FILE]

Each task makes as many items as the others, at random levels as a run does, in fresh
processes: first all that is replaced, then nothing, A B A B. Shown are the tasks that
differ, in CPU seconds: of the first so many items of each task in a process, which set
datasets up, and of as many later ones; at the end whether both made the same items. A
replacement touches one task or two, so that a row is what leaving it out costs.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import psutil

from rg_env.tasks import library, library_import, scales
from rg_env.tasks.sampler import entry_seed, mix_of_seed

WORTH_SHOWING = 0.005  # of all; a smaller difference may be chance


def make_items(whose: str, items: int, at_defaults: bool) -> dict[str, Any]:
    """Make items in this process; return CPU seconds and digests by task."""
    if whose == "own":
        library_import.__dict__["replace"] = lambda replacements: []
    tasks = library.describe().tasks
    known = {} if at_defaults else scales.load_shipped().scales
    spent = {task: [0.0, 0.0] for task in tasks}
    made: dict[str, list[str]] = {task: [] for task in tasks}
    for number in range(2 * items):
        for task in tasks:
            seed = entry_seed("train", task, number)
            params = {}
            if task in known:
                level = random.Random(seed).random()
                params = dict(known[task].step_at(level, mix_of_seed(seed)).params)
            began = time.process_time()
            try:
                text = repr(library.make_entry(task, params, seed))
            except Exception as error:  # noqa: BLE001 - foreign code may raise anything
                text = repr(error)
            spent[task][number // items] += time.process_time() - began
            made[task].append(hashlib.sha256(text.encode()).hexdigest())
    mib = psutil.Process().memory_info().rss // 2**20
    return {"spent": spent, "made": made, "mib": mib}


def in_another_process(whose: str, options: argparse.Namespace) -> dict[str, Any]:
    """Make items in a fresh process and folder; items of codeio print and write."""
    with tempfile.TemporaryDirectory() as folder:
        found = Path(folder) / "found.json"
        command = [sys.executable, str(Path(__file__).resolve()), "--whose", whose]
        command += ["--items", str(options.items), "--json", str(found)]
        command += ["--defaults"] * options.defaults
        settings = os.environ | {"PYTHONHASHSEED": "0"}
        subprocess.run(
            command, cwd=folder, env=settings, capture_output=True, check=True
        )
        return dict(json.loads(found.read_text(encoding="utf-8")))


def show(runs: dict[str, list[dict[str, Any]]]) -> None:
    """Print the tasks whose time differs, those that save most first."""
    tasks = runs["faster"][0]["spent"]
    least = {
        (whose, task): [min(r["spent"][task][i] for r in found) for i in range(2)]
        for whose, found in runs.items()
        for task in tasks
    }
    total = sum(sum(least["faster", task]) for task in tasks)
    saved = {t: sum(least["own", t]) - sum(least["faster", t]) for t in tasks}
    print(f"{'CPU s':<22}   faster first, later      own first, later    saved   items")
    for task in sorted(tasks, key=lambda task: -saved[task]):
        if abs(saved[task]) > WORTH_SHOWING * total:
            made = [run["made"][task] for found in runs.values() for run in found]
            cells = [f"{s:11.2f}" for w in runs for s in least[w, task]]
            same = "same" if made.count(made[0]) == len(made) else "others"
            print(f"{task:<22}{''.join(cells)} {saved[task] / total:8.1%} {same:>7}")
    for whose, found in runs.items():
        first, later = (sum(least[whose, task][i] for task in tasks) for i in (0, 1))
        print(f"{whose}: {first:.2f}, {later:.2f} s in all, {found[0]['mib']} MiB")


def main() -> None:
    """Measure in turn and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--items", type=int, default=15, help="of a task, twice")
    add("--rounds", type=int, default=2, help="A B A B is two")
    add("--defaults", action="store_true", help="not at random levels")
    add("--json", type=Path)
    add("--whose", choices=["own", "faster"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.whose:
        found: Any = make_items(options.whose, options.items, options.defaults)
    else:
        found = {"faster": [], "own": []}
        for _ in range(options.rounds):
            for whose, runs in found.items():
                runs.append(in_another_process(whose, options))
        show(found)
    if options.json:
        options.json.write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main()
