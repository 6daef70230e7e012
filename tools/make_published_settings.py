"""Writes items/published_settings.json from the published evaluations of the library.

    python -m tools.make_published_settings CHECKOUT

CHECKOUT is one of github.com/open-thought/reasoning-gym-eval, whose files have the
parameters of each task and the questions that models got. Facts alone are kept:
the parameters that differ from the installed library's defaults, and the names of the
tasks some of whose questions the installed library does not make again for every run.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rg_env.items import worker_jobs
from rg_env.items.evaluation_items import SEED, SIZE, TABLE, Preset
from rg_env.items.task_check import is_unusable
from rg_env.tasks import library
from rg_env.tasks.library import load_factory
from rg_env.workers.pool_errors import PoolError
from rg_env.workers.worker_pool import WorkerPool

DEADLINE_S = 120.0
FILES = "reasoninggym-paper-experiments/zero-shot/{}/*/*/*.json"


def other_than_defaults(task: str, config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that the task has and that differ from its defaults."""
    own = dataclasses.asdict(load_factory().DATASETS[task][1]())
    plain = json.loads(json.dumps(own, default=str))
    return {k: v for k, v in config.items() if k in plain and plain[k] != v}


def is_same(pool: WorkerPool, preset: Preset, task: str, given: list[str]) -> bool:
    """Say whether the installed library makes the same questions."""
    specs = preset.specs([task])
    if len(given) != len(specs):
        return False
    for (spec,), question in zip(specs, given, strict=True):
        params = dict(spec.params)
        call = (worker_jobs.make_entry, task, params, spec.seed, False, True)
        try:
            entry = pool.call(*call, spec.place, deadline_s=DEADLINE_S)
        except PoolError as error:
            if not is_unusable(error):
                return False
            continue  # nothing is compared with it
        if entry["question"] != question:
            return False
    return True


def row_of(pool: WorkerPool, checkout: Path, difficulty: str) -> dict[str, Any]:
    """Return parameters and changed tasks of `easy` or `hard`."""
    params: dict[str, dict[str, Any]] = {}
    given: dict[str, set[tuple[str, ...]]] = {}
    for file in sorted(checkout.glob(FILES.format(difficulty))):
        found = json.loads(file.read_text(encoding="utf-8"))
        task, config = found["name"], dict(found["config"])
        if (config.pop("seed"), config.pop("size")) != (SEED, SIZE):
            raise SystemExit(f"{file}: another seed or size than {SEED} and {SIZE}")
        own = other_than_defaults(task, config)
        if params.setdefault(task, own) != own:
            raise SystemExit(f"{file}: other parameters than those of another run")
        questions = tuple(result["question"] for result in found["results"])
        given.setdefault(task, set()).add(questions)
    preset = Preset(params, frozenset())
    changed = [
        task
        for task, runs in sorted(given.items())
        if len(runs) > 1 or not is_same(pool, preset, task, list(*runs))
    ]
    return {"params": dict(sorted(params.items())), "changed": changed}


def table_text(version: str, presets: Mapping[str, Any]) -> str:
    """Return the text of the file, a line for each task."""
    rows = []
    for name, row in presets.items():
        tasks = ",\n   ".join(
            f"{json.dumps(task)}: {json.dumps(params)}"
            for task, params in row["params"].items()
        )
        changed = json.dumps(row["changed"])
        rows.append(
            f'  "{name}": {{\n   "params": {{\n   {tasks}\n   }},\n'
            f'   "changed": {changed}\n  }}'
        )
    body = ",\n".join(rows)
    return f'{{\n "library_version": "{version}",\n "presets": {{\n{body}\n }}\n}}\n'


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkout", type=Path)
    checkout = parser.parse_args().checkout
    with contextlib.closing(WorkerPool(1, preload=worker_jobs.PRELOAD)) as pool:
        presets = {
            f"rg-{name}": row_of(pool, checkout, name) for name in ("easy", "hard")
        }
    text = table_text(library.describe().version, presets)
    TABLE.write_text(text, encoding="utf-8")
    for name, row in presets.items():
        print(f"{name}: other questions in {', '.join(row['changed'])}")


if __name__ == "__main__":
    main()
