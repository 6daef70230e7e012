"""The rewards against the published answers of models.

    python reasoning_gym_environment.py rescore CHECKOUT --out scores.jsonl
    python -m tools.real_answers scores.jsonl [--tasks gcd,dice] [--examples 3]

CHECKOUT is one of https://github.com/open-thought/reasoning-gym-eval. The completions
that `rescore` has scored are judged by `judge.py`. Printed are the tables of
`docs/reward_audits.md`, with --examples the texts behind them. `compare scores.jsonl
--score ours` ranks the models.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
from pathlib import Path

from rg_env import ending, logs
from rg_env.items import worker_jobs
from rg_env.workers.worker_pool import WorkerPool
from tools.real_answers import tables
from tools.real_answers.judge import judged, verdicts


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    add = parser.add_argument
    add("file", type=Path, help="which `rescore --out` has written")
    add("--tasks", help="only these, with commas between")
    add("--workers", type=int, default=os.cpu_count() or 1)
    add("--examples", type=int, default=0, help="texts shown of each kind")
    options = parser.parse_args()
    logs.set_levels(False, quiet_framework=True)
    tasks = options.tasks.split(",") if options.tasks else None
    with options.file.open("rb") as lines:
        rows = map(json.loads, lines)
        samples = [tables.slim(r) for r in rows if not tasks or r["task"] in tasks]
    # A worker may read none of our files, so it is forked with all that it needs.
    preload = (*worker_jobs.PRELOAD, verdicts.__module__)
    with contextlib.closing(WorkerPool(options.workers, preload=preload)) as pool:
        samples = ending.run(judged(pool, samples))
    print("## Differences\n", *tables.differences(samples, options.examples), sep="\n")
    print("## Judged\n", *tables.judgement(samples, options.examples), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
