"""`compare`, `report` and `rescore`: commands for saved completions."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import logging
import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rg_env import shutdown
from rg_env.cli.main import (
    command,
    flag,
    json_option,
    option,
    paths_argument,
    task_modules_option,
    worker_pool,
)
from rg_env.errors import SettingError, counted, on_one_line
from rg_env.executor import in_thread
from rg_env.places import check_writable
from rg_env.results.samples import SCORES, Sample, batched
from rg_env.results.sources import Sources, find_files
from rg_env.results.terminal import WorkProgress, rendered
from rg_env.run.group import Group
from rg_env.run.group_loop import Part
from rg_env.workers.worker_pool import WorkerPool

if TYPE_CHECKING:
    import polars as pl

    from rg_env.results.score_tables import Comparison

logger = logging.getLogger(__name__)

# A batch can hold all runs of a published task, which have the same items.
SAMPLES_PER_BATCH = 1_500


# -- compare ---------------------------------------------------------------------------


@command("compare data/evaluate data/evaluate_1")
@paths_argument
@flag("--tasks", text="Also compare each task")
@flag("--pairs", text="Compare every pair, not each result with the first")
@option(
    "--score",
    click.Choice(SCORES),
    None,
    "Score to use from files of rescore; by default ours",
)
@json_option
def compare(
    paths: Sequence[str], tasks: bool, pairs: bool, score: str | None, as_json: bool
) -> int:
    """Show results side by side, paired by item.

    A result is a PATH: a file or folder of samples of evaluate or rescore, of dumps, of
    rows of process, or of published results of reasoning-gym, where each run is one.
    """
    from rg_env.results.score_tables import Comparison

    names, table, unread = _read_results(paths, score)
    comparison = Comparison(names, table, all_pairs=pairs)
    _print(comparison, unread, with_tasks=tasks, as_json=as_json)
    return 0


def _print(
    comparison: Comparison, remarks: Sequence[str], *, with_tasks: bool, as_json: bool
) -> None:
    if as_json:
        print(json.dumps(comparison.as_json() | {"remarks": remarks}, indent=2))
        return
    print(rendered(*comparison.tables(with_tasks=with_tasks)), *remarks, sep="\n")


def _read_results(
    paths: Sequence[str], score: str | None
) -> tuple[list[str], pl.DataFrame, list[str]]:
    """Return the names of results, their samples, and remarks about unread lines.

    A result is a path, or a run in it.

    Raises:
        SettingError: A path has no samples, a sample without that score, or a result
            without any score.
    """
    from rg_env.results.estimates import HAS_SCORE, row_of, table_of

    by_path = {path: Sources(find_files([path])) for path in paths}
    results: dict[str, int] = {}

    def rows() -> Iterator[Sequence[Any]]:
        for path, sources in by_path.items():
            results_before = len(results)
            for sample in sources.samples(f"reading {path}"):
                scores = sample.row.get("scores", ())
                if score and sample.score is not None and score not in scores:
                    raise SettingError(
                        f"--score {score}: {path} has a sample without it; files of"
                        " rescore have it"
                    )
                run = sample.row.get("run")
                name = f"{path}: {run}" if run else path
                number = results.setdefault(name, len(results))
                yield row_of(sample, number, score or "")
            if len(results) == results_before:
                raise sources.no_completion_error([path])

    table = table_of(rows())
    scored = {*table.filter(HAS_SCORE)["result"]}
    for name, number in results.items():
        if number not in scored:
            raise SettingError(f"{name}: no completion has a score; `rescore` gives it")
    unread = [line for sources in by_path.values() for line in sources.reasons()]
    return list(results), table, unread


# -- report ----------------------------------------------------------------------------


@command("report data_dumps --out report")
@paths_argument
@option(
    "--out", click.Path(file_okay=False, path_type=Path), "report", "Folder to write"
)
@option("--title", str, "", "Heading of the page; by default Report")
def report(paths: Sequence[str], out: Path, title: str) -> int:
    """Write a page about rollouts, results and metrics that opens without a network.

    A PATH is a file or folder of dump files (even of a running serve), rows of process,
    samples of evaluate or rescore, published results of reasoning-gym, or metrics. An
    existing report in the folder is replaced; other files in it stay.
    """
    from rg_env.results.report import write_report

    samples = write_report(paths, out, title=title)
    print(f"{counted(samples, 'rollout')}: {out / 'index.html'}")
    return 0


# -- rescore ---------------------------------------------------------------------------


@command("rescore data_dumps --out again.jsonl")
@paths_argument
@option(
    "--out",
    click.Path(dir_okay=False, path_type=Path),
    None,
    "Write each completion with its scores to this file; completions that are"
    " already in it are not scored again",
)
@task_modules_option
@option("--workers", click.IntRange(1, 256), os.cpu_count() or 1, "Worker processes")
@click.option(
    "--ray",
    metavar="ADDRESS",
    help="Score on the nodes of a Ray cluster; `auto` is the one of this machine",
)
@json_option
def rescore(
    paths: Sequence[str],
    out: Path | None,
    task_modules: Sequence[str],
    workers: int,
    ray: str | None,
    as_json: bool,
) -> int:
    """Score saved completions again with the installed version.

    A PATH is a file or folder of dump files, rows of process, samples of evaluate,
    published results of reasoning-gym, or your own JSONL files. Each completion gets
    three scores: of the library's scorer, of the corrected scorer, and of the corrected
    scorer with normalization. Items are made again; if the library now makes another
    item, the completion gets no score. The status is 0 only if one has a score.
    """
    from rg_env.results.estimates import HAS_SCORE, table_of
    from rg_env.results.score_tables import Comparison

    if out is not None:
        check_writable("--out", out)
    output = out and out.resolve()
    sources = Sources([file for file in find_files(paths) if file.resolve() != output])
    modules = tuple(task_modules)
    with contextlib.ExitStack() as stack:
        cluster = _connect_to_cluster(ray, stack) if ray else None
        pool = stack.enter_context(worker_pool(workers, modules))
        rows = shutdown.run(_rescore(sources, out, pool, cluster, modules))
    if not rows:
        raise sources.no_completion_error(paths)
    table = table_of(rows)
    ours = table.filter(result=SCORES.index("ours"))
    unscored = Counter(ours.filter(~HAS_SCORE)["outcome"])
    remarks = sources.reasons()
    if unscored:
        counts = ", ".join(f"{name} {count}" for name, count in unscored.most_common())
        remarks = [f"without a score, and so not in the means: {counts}", *remarks]
    _print(Comparison(SCORES, table), remarks, with_tasks=True, as_json=as_json)
    return int(unscored.total() == len(ours))


def _connect_to_cluster(address: str, stack: contextlib.ExitStack) -> Any:
    """Return a connection to a Ray cluster, which the stack closes."""
    if importlib.util.find_spec("ray") is None:
        raise SettingError("--ray: ray is not installed; run `pip install ray`")
    from rg_env.adapters.ray import Cluster

    # Ray prints messages about nodes, which must not mix with the result.
    stack.enter_context(contextlib.redirect_stdout(sys.stderr))
    return stack.enter_context(contextlib.closing(Cluster(address)))


async def _rescore(
    sources: Sources,
    out: Path | None,
    pool: WorkerPool,
    cluster: Any,
    modules: tuple[str, ...],
) -> list[Sequence[Any]]:
    """Score the completions that are not in the file yet; return the rows of all."""
    from rg_env.library.installed_library import read_library
    from rg_env.results.estimates import row_of
    from rg_env.results.rescoring import (
        RescoredFile,
        Rescoring,
        group_by_item,
        rescore,
        rescore_here,
    )

    library = await read_library(pool)
    rows: list[Sequence[Any]] = []
    logged_outcomes = set[str]()
    samples = sources.samples()
    sinks: list[Part] = []

    def add(samples: Iterable[Sample]) -> None:
        for sample in samples:
            rows.extend(row_of(sample, n, name) for n, name in enumerate(SCORES))

    async def show(group: Group) -> None:
        """Add the samples of a group; log the first outcome of each kind."""
        add(group.data)
        for sample in group.data:
            if sample.score is None and sample.outcome not in logged_outcomes:
                logged_outcomes.add(sample.outcome)
                reason = on_one_line(sample.row["reason"], 200)
                logger.warning("the first without a score: %s", reason)
        new_kb = sources.read_kb - progress.done
        progress.advance(f"{len(rows) // len(SCORES)} scored", new_kb)

    with contextlib.ExitStack() as stack:
        if out is not None:
            file = stack.enter_context(contextlib.closing(RescoredFile(out)))
            await in_thread(add, file.samples(library.release))
            samples = file.missing(samples)
            sinks.append(file.take)
        progress = stack.enter_context(WorkProgress("rescore", sources.total_kb, "kB"))
        sinks.append(show)
        if cluster is None:
            batches = batched(samples, SAMPLES_PER_BATCH)
            items = (item for batch in batches for item in group_by_item(batch))
            await rescore(items, Rescoring(pool, library).score_item, sinks)
        else:
            await rescore(
                batched(samples, cluster.samples_per_call),
                lambda batch: cluster.call(rescore_here, batch, modules),
                sinks,
                cluster.max_calls,
            )
    return rows
