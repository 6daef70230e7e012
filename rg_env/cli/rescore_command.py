"""`rescore`: saved completions scored again under the installed library."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import itertools
import json
import os
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rg_env import ending
from rg_env.cli.command import (
    Command,
    cluster_at,
    json_option,
    option,
    rendered,
    task_modules_option,
)
from rg_env.cli.command import workers as pool_of
from rg_env.errors import SettingError, counted
from rg_env.evaluation.rescoring import (
    TRIED_AGAIN,
    RescoredFile,
    RescoreTally,
    Rescoring,
    rescored_here,
)
from rg_env.evaluation.samples import Sample
from rg_env.evaluation.sources import Sources, files_of
from rg_env.items.installed_library import read_library
from rg_env.off_loop import off_loop
from rg_env.reports.terminal import WorkProgress
from rg_env.workers.worker_pool import WorkerPool

if TYPE_CHECKING:
    from rg_env.adapters.ray import Cluster

SAMPLES_AT_ONCE = 1_500
"""So that the runs of one published task, whose items are the same, are one batch."""

SAMPLES_A_CALL = 100
CALLS_A_CORE = 4
"""Calls that wait at each core of a cluster, so that none is idle."""

Take = Callable[[Sequence[Sample]], Awaitable[None]]


async def _over_nodes(
    cluster: Cluster, samples: Sequence[Sample], take: Take, modules: Sequence[str]
) -> None:
    """Score samples again on the nodes of a cluster, as `Rescoring` does here."""

    async def one_call(part: Sequence[Sample]) -> None:
        await take(await cluster.call(rescored_here, part, tuple(modules)))

    starts = range(0, len(samples), SAMPLES_A_CALL)
    parts = (samples[start : start + SAMPLES_A_CALL] for start in starts)
    await asyncio.gather(*map(one_call, parts))


async def _rescore(
    sources: Sources,
    out: Path | None,
    tally: RescoreTally,
    pool: WorkerPool,
    cluster: Cluster | None,
    modules: Sequence[str],
) -> int:
    """Score what is not in the file yet; return how many samples it had before."""
    library = await read_library(pool)
    rescoring, at_once = Rescoring(pool, library), SAMPLES_AT_ONCE
    if cluster is not None:
        at_once = max(at_once, cluster.cpus * CALLS_A_CORE * SAMPLES_A_CALL)
    with contextlib.ExitStack() as end:
        file = await off_loop(RescoredFile, out, library.release) if out else None
        if file is not None:
            end.callback(file.close)
            await off_loop(lambda: collections.deque(map(tally.add, file.rows()), 0))
        before = len(tally)

        async def take(scored: Sequence[Sample]) -> None:
            if file is not None:
                await off_loop(file.write, scored)
            for sample in scored:
                tally.add(sample.row)
            progress.advance(_counts(tally), by=0)

        def next_batch() -> list[Sample]:
            return list(itertools.islice(samples, at_once))

        progress = end.enter_context(WorkProgress("rescore", sources.total_kb, "kB"))
        samples = sources.samples()
        while batch := await off_loop(next_batch):
            missing = file.missing(batch) if file else batch
            if cluster is not None:
                await _over_nodes(cluster, missing, take, modules)
            else:
                await rescoring.rescored(missing, take)
            progress.advance(_counts(tally), by=sources.read_kb - progress.done)
    return before


def _counts(tally: RescoreTally) -> str:
    scored = len(tally.whole.scores["ours"])
    return f"{scored} scored, {tally.whole.changed} changed"


@click.command("rescore", cls=Command, example="rescore data_dumps --out again.jsonl")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write each completion with its scores to this file; completions that are"
    " already in it are not scored again",
)
@task_modules_option()
@option("--examples", click.IntRange(0, 1000), 2, "Examples of changed scores to show")
@option("--workers", click.IntRange(1, 256), os.cpu_count() or 1, "Worker processes")
@click.option(
    "--ray",
    "address",
    metavar="ADDRESS",
    help="Score on the nodes of a Ray cluster; `auto` is the one of this machine",
)
@json_option
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
    written = out and out.resolve()
    sources = Sources([f for f in files_of(paths) if f.resolve() != written])
    tally = RescoreTally(examples)
    with cluster_at(address) as cluster, pool_of(workers, task_modules) as pool:
        work = _rescore(sources, out, tally, pool, cluster, task_modules or ())
        before = ending.run(work)
    if not len(tally):
        reasons = "; ".join(sources.reasons()) or "they are empty"
        raise SettingError(
            f"command line: no completion in {', '.join(paths)}: {reasons}"
        )
    if as_json:
        document = tally.numbers() | {"unread": dict(sources.unread)}
        print(json.dumps(document, indent=2, default=str))
        return int(not tally.whole.items)
    lines = [rendered(tally.table()), *tally.lines(), *sources.reasons()]
    if out and (again := sum(tally.whole.lost[outcome] for outcome in TRIED_AGAIN)):
        lines.append(f"{again} of these are not in {out}; run it again to retry")
    if before:
        lines.append(f"already in {out}: {counted(before, 'completion')}")
    print("\n".join(lines))
    return int(not tally.whole.items)
