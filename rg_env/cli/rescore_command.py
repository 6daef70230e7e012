"""`rescore`: saved completions scored again under the installed library."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import itertools
import json
import logging
import os
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rg_env import ending
from rg_env.cli.command import (
    Command,
    cluster_at,
    option,
    task_modules_option,
)
from rg_env.cli.standard_streams import print_text, rendered
from rg_env.errors import SettingError, counted
from rg_env.evaluation.rescored_file import TRIED_AGAIN, RescoredFile
from rg_env.evaluation.rescoring import Rescoring, rescored_here
from rg_env.evaluation.samples import Sample
from rg_env.evaluation.sources import Sources, files_of
from rg_env.items import worker_jobs
from rg_env.items.installed_library import read_library
from rg_env.off_loop import off_loop
from rg_env.reports.progress_bar import WorkProgress
from rg_env.workers.worker_pool import WorkerPool

if TYPE_CHECKING:
    from rg_env.adapters.ray import Cluster
    from rg_env.evaluation.rescore_table import RescoreTally

logger = logging.getLogger(__name__)

SAMPLES_AT_ONCE = 1_500
"""So that the runs of one published task, whose items are the same, are one batch."""

SAMPLES_A_CALL = 100
CALLS_A_CORE = 4
"""Calls that wait at each core of a cluster, so that none is idle."""


class _OverNodes:
    """Scores samples again on the nodes of a cluster, as `Rescoring` does here."""

    def __init__(self, cluster: Cluster, modules: Sequence[str]) -> None:
        self._cluster, self._modules = cluster, tuple(modules)

    async def rescored(
        self,
        samples: Sequence[Sample],
        take: Callable[[Sequence[Sample]], Awaitable[None]],
    ) -> None:
        async def one_call(part: Sequence[Sample]) -> None:
            await take(await self._cluster.call(rescored_here, part, self._modules))

        starts = range(0, len(samples), SAMPLES_A_CALL)
        await asyncio.gather(
            *(one_call(samples[start : start + SAMPLES_A_CALL]) for start in starts)
        )


async def _rescore(
    sources: Sources,
    out: Path | None,
    tally: RescoreTally,
    pool: WorkerPool,
    cluster: Cluster | None,
    modules: Sequence[str],
) -> int:
    """Score what is not in the file yet; return how many samples were found there."""
    library = await read_library(pool)
    rescoring: Rescoring | _OverNodes = Rescoring(pool, library)
    at_once = SAMPLES_AT_ONCE
    if cluster is not None:
        rescoring = _OverNodes(cluster, modules)
        at_once = max(at_once, cluster.cpus * CALLS_A_CORE * SAMPLES_A_CALL)
    with contextlib.ExitStack() as end:
        file = await off_loop(RescoredFile, out, library.release) if out else None
        if file is not None:
            end.callback(file.close)
            await off_loop(lambda: collections.deque(map(tally.add, file.rows()), 0))
        found = tally.answers + tally.unscored
        samples = sources.samples()

        async def take(scored: Sequence[Sample]) -> None:
            if file is not None:
                await off_loop(file.write, scored)
            for sample in scored:
                tally.add(sample.row)
            say(len(scored))

        def next_batch() -> list[Sample]:
            return list(itertools.islice(samples, at_once))

        taken = batch_kb = said_kb = 0

        def say(number: int) -> None:
            """Count so many samples of the batch, as their share of what was read."""
            nonlocal taken, said_kb
            taken += number
            now_kb = batch_kb * min(taken, len(batch)) // len(batch)
            done = f"{tally.answers} scored, {tally.changed} changed"
            progress.advance(done, by=now_kb - said_kb)
            said_kb = now_kb

        progress = end.enter_context(WorkProgress("rescore", sources.total_kb, "kB"))
        while batch := await off_loop(next_batch):
            taken, said_kb, batch_kb = 0, 0, sources.kb_since_last()
            await rescoring.rescored(file.missing(batch) if file else batch, take)
            # Those that were in the file already have been read as well.
            say(len(batch))
    return found


@click.command("rescore", cls=Command, example="rescore data_dumps --out again.jsonl")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write each completion with its scores to this file; completions that are"
    " already in it are not scored again",
)
@task_modules_option()
@option(
    "--examples",
    click.IntRange(0, 1000),
    2,
    "Examples of changed scores to show",
)
@option("--workers", click.IntRange(1, 256), os.cpu_count() or 1, "Worker processes")
@click.option(
    "--ray",
    "address",
    metavar="ADDRESS",
    help="Score on the nodes of a Ray cluster; `auto` is the one of this machine",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead")
def rescore(
    paths: Sequence[str],
    out: Path | None,
    task_modules: Sequence[str] | None,
    examples: int,
    workers: int,
    address: str | None,
    as_json: bool,
) -> int:
    """Score saved completions again with the installed version.

    A PATH is a file or folder of dump files, rows of process, samples of evaluate,
    published results of reasoning-gym, or your own JSONL files. Each completion gets
    three scores: of the library's scorer, of the corrected scorer, and of the corrected
    scorer with normalization. Items are made again; if the library now makes another
    item, the completion gets no score. The status is 0 only if one has a score.
    """
    from rg_env.evaluation.rescore_table import RescoreTally

    written = out and out.resolve()
    sources = Sources([f for f in files_of(paths) if f.resolve() != written])
    tally = RescoreTally(examples)
    modules = task_modules or ()
    preload = worker_jobs.preload_of(task_modules)
    with (
        cluster_at(address) as cluster,
        contextlib.closing(WorkerPool(workers, preload=preload)) as pool,
    ):
        work = _rescore(sources, out, tally, pool, cluster, modules)
        found = ending.run(work)
    if not tally.answers + tally.unscored:
        said = "; ".join(sources.unread_said()) or "they are empty"
        raise SettingError(f"command line: no completion in {', '.join(paths)}: {said}")
    if as_json:
        unread = {"unread": dict(sources.unread)}
        print_text(json.dumps(tally.numbers() | unread, indent=2, default=str))
        return int(not tally.answers)
    lines = [*tally.lines(), *sources.unread_said()]
    lost = tally.numbers()["all"]["without_score"]
    if out and (again := sum(lost.get(outcome, 0) for outcome in TRIED_AGAIN)):
        lines.append(f"{again} of these are not in {out}; run it again to retry")
    if found:
        lines.append(f"already in {out}: {counted(found, 'completion')}")
    print_text("\n".join([rendered(tally.table()), *lines]))
    return int(not tally.answers)
