"""`rescore`: saved completions scored again under the installed library."""

from __future__ import annotations

import collections
import contextlib
import itertools
import json
import logging
import os
from collections.abc import Sequence
from pathlib import Path

import click

from rg_env import ending, logs
from rg_env.cli.command import Command, FilePathType, shown, task_modules_option
from rg_env.cli.standard_streams import print_text, rendered
from rg_env.errors import SettingError
from rg_env.evaluation.rescore_table import RescoreTally
from rg_env.evaluation.rescored_file import TRIED_AGAIN, RescoredFile
from rg_env.evaluation.rescoring import Rescoring
from rg_env.evaluation.samples import Sample
from rg_env.evaluation.sources import Sources, files_of
from rg_env.items import worker_jobs
from rg_env.items.installed_library import read_library
from rg_env.off_loop import off_loop
from rg_env.reports.progress_bar import LINE_EVERY_S, WorkProgress, said_every
from rg_env.workers.worker_pool import WorkerPool

logger = logging.getLogger(__name__)

SAMPLES_AT_ONCE = 1_500
"""So that the runs of one published task, whose items are the same, are one batch."""


async def _rescore(
    sources: Sources, out: Path | None, tally: RescoreTally, pool: WorkerPool
) -> int:
    """Score what is not in the file yet; return how many samples were found there."""
    library = await read_library(pool)
    rescoring = Rescoring(pool, library)
    with contextlib.ExitStack() as end:
        file = await off_loop(RescoredFile, out, library.release) if out else None
        if file is not None:
            end.callback(file.close)
            await off_loop(lambda: collections.deque(map(tally.add, file.rows()), 0))
        found = tally.all.answers + tally.all.unscored.total()
        samples = sources.samples()

        async def take(scored: Sequence[Sample]) -> None:
            if file is not None:
                await off_loop(file.write, scored)
            for sample in scored:
                tally.add(sample.row)

        def next_batch() -> list[Sample]:
            return list(itertools.islice(samples, SAMPLES_AT_ONCE))

        def say(by: int = 0) -> None:
            done = f"{tally.all.answers} scored, {tally.all.changed} changed"
            progress.advance(done, by=by)

        progress = end.enter_context(WorkProgress("rescore", sources.total_kb, "kB"))
        async with said_every(LINE_EVERY_S, say):  # an item may take a minute
            while batch := await off_loop(next_batch):
                await rescoring.rescored(file.missing(batch) if file else batch, take)
                say(sources.kb_since_last())
    return found


@click.command("rescore", cls=Command, example="rescore data_dumps --out again.jsonl")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option(
    "--out",
    type=FilePathType(dir_okay=False, path_type=Path),
    help="Write each sample with its scores to this file; what it holds is not scored"
    " once more",
)
@task_modules_option()
@shown("--examples", click.IntRange(0, 1000), 2, "Changed samples shown of each cause")
@shown("--workers", click.IntRange(1, 256), os.cpu_count() or 1, "Worker processes")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead")
def rescore(
    paths: Sequence[str],
    out: Path | None,
    task_modules: Sequence[str] | None,
    examples: int,
    workers: int,
    as_json: bool,
) -> int:
    """Score saved completions again under the installed library.

    A PATH is a file or folder of dumps, rows of process, samples of evaluate, published
    results of reasoning-gym, or lines of your own. Scores are those of the library
    alone, with the fixes of its scorers, and with normalization as well. Items are made
    again; a completion whose item is not the same has no score.
    """
    logs.set_levels(False, quiet_framework=True)  # lines of progress
    written = out and out.resolve()
    sources = Sources([f for f in files_of(paths) if f.resolve() != written])
    tally = RescoreTally(examples)
    pool = WorkerPool(workers, preload=worker_jobs.preload_of(task_modules))
    try:
        found = ending.run(_rescore(sources, out, tally, pool))
    finally:
        pool.close()
    if not tally.by_task:
        said = "; ".join(sources.unread_said()) or "they are empty"
        raise SettingError(f"command line: no completion in {', '.join(paths)}: {said}")
    if as_json:
        unread = {"unread": dict(sources.unread)}
        print_text(json.dumps(tally.numbers() | unread, indent=2, default=str))
        return 0
    lines = [*tally.lines(), *sources.unread_said()]
    if out and (again := sum(map(tally.all.outcomes.__getitem__, TRIED_AGAIN))):
        lines.append(f"{again} of these are not in {out}: the command tries them again")
    if found:
        lines.append(f"{found} of these completions were in {out} already")
    print_text("\n".join([rendered(tally.table()), *lines]))
    return 0
