"""The rewards against the published answers of models.

    python -m tools.real_answers CHECKOUT [--split hard] [--tasks gcd,dice]
        [--out FILE] [--workers 2] [--examples 3]

CHECKOUT is one of https://github.com/open-thought/reasoning-gym-eval, or a folder above
`hard/RUN/CATEGORY/TASK.json`. Completions are scored again as by `rescore`, and judged
by `judge.py`; with --out an interrupted command is continued. Printed are the tables of
`docs/reward_audits.md`, with --examples the texts behind them. The file of --out is one
of `rescore`, so that `compare FILE --score ours` ranks the models.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rg_env import ending, logs
from rg_env.errors import SettingError
from rg_env.evaluation.rescored_file import RescoredFile
from rg_env.evaluation.rescoring import Rescoring
from rg_env.evaluation.samples import Sample
from rg_env.evaluation.sources import Sources, files_of
from rg_env.items import worker_jobs
from rg_env.items.installed_library import read_library
from rg_env.reports.progress_bar import WorkProgress
from rg_env.scoring.extraction import extract_answer
from rg_env.workers.worker_pool import WorkerPool
from tools.real_answers import tables
from tools.real_answers.judge import judged, verdicts

SPLITS = ("hard", "easy")
SAMPLES_AT_ONCE = 1_500
Refused = dict[tuple[str, str], tuple[float, float, bool]]


async def by_other_rules(rescoring: Rescoring, samples: Sequence[Sample]) -> Refused:
    """Return what refused completions with tags would score, by where they stand.

    The score with the first answer and with the last one, thinking included, and
    whether all answers are the same text.
    """
    found: dict[tuple[str, str], bool] = {}
    wanted: list[Sample] = []
    for sample in samples:
        text = sample.row.get("completion") or ""
        parts = [part.partition("</answer>") for part in text.split("<answer>")[1:]]
        answers = [inside.strip() for inside, end, _ in parts if end]
        if not answers or extract_answer(text).answer is not None:
            continue
        found[sample.row["source"], sample.row["place"]] = len(set(answers)) == 1
        for answer in (answers[0], answers[-1]):
            row = {**sample.row, "completion": None, "answer": answer}
            wanted.append(dataclasses.replace(sample, row=row))
    scores = [sample.score or 0.0 for sample in await rescoring.rescored(wanted)]
    rows = zip(scores[::2], scores[1::2], found.values(), strict=True)
    return dict(zip(found, rows, strict=True))


async def audit(
    pool: WorkerPool, files: Sequence[Path], out: Path
) -> tuple[list[Sample], Refused]:
    """Score what `out` does not hold and judge all."""
    library = await read_library(pool)
    rescoring, sources = Rescoring(pool, library), Sources(files)
    file, wanted = RescoredFile(out, library.version), set(map(str, files))
    refused: Refused = {}

    async def take(samples: Sequence[Sample]) -> None:
        file.write(samples)

    try:
        list(map(len, file.rows()))
        samples = sources.samples()
        with WorkProgress("score", sources.total_kb, "kB") as progress:
            while batch := list(itertools.islice(samples, SAMPLES_AT_ONCE)):
                await rescoring.rescored(file.missing(batch), take)
                refused |= await by_other_rules(rescoring, batch)
                progress.advance(by=sources.kb_since_last())
        found = [tables.slim(row) for row in file.rows() if row["source"] in wanted]
    finally:
        file.close()
    print(*sources.unread_said(), sep="\n", file=sys.stderr)
    return await judged(pool, found), refused


def report(samples: Sequence[Sample], refused: Refused, examples: int) -> Any:
    """Yield the lines of all tables."""
    yield "## Differences\n"
    yield from tables.differences(samples, examples)
    yield "## Judged\n"
    yield from tables.judgement(samples, examples)
    yield "## One answer outside the thinking"
    yield from tables.extraction(samples, refused)


def main() -> int:
    """Run the audit and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("checkout", metavar="CHECKOUT")
    add("--split", choices=SPLITS, help="only this one")
    add("--tasks", help="only these, with commas between")
    add("--out", type=Path, metavar="FILE", help="scores; what it holds is kept")
    add("--workers", type=int, default=os.cpu_count() or 1)
    add("--examples", type=int, default=0, help="texts shown of each kind")
    options = parser.parse_args()
    logs.set_levels(False, quiet_framework=True)
    splits = [options.split] if options.split else SPLITS
    tasks = options.tasks.split(",") if options.tasks else []
    # A worker may read none of our files, so it is forked with all that it needs.
    preload = (*worker_jobs.PRELOAD, verdicts.__module__)
    pool = WorkerPool(options.workers, preload=preload)
    try:
        files = files_of([options.checkout])
        files = [f for f in files if f.parent.parent.parent.name in splits]
        files = [f for f in files if not tasks or f.stem in tasks]
        if not files:
            sys.exit(f"{options.checkout}: no {splits[0]}/RUN/CATEGORY/TASK.json")
        with tempfile.TemporaryDirectory() as folder:
            out = options.out or Path(folder) / "rescored.jsonl"
            samples, refused = ending.run(audit(pool, files, out))
    except SettingError as error:
        sys.exit(str(error))
    finally:
        pool.close()
    print("\n".join(report(samples, refused, options.examples)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
