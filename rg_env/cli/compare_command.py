"""`compare`: results of evaluations side by side, paired by item."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click
from rich.text import Text

from rg_env.cli.command import Command, flag, json_option, rendered
from rg_env.errors import SettingError, printable
from rg_env.evaluation.samples import Sample
from rg_env.evaluation.sources import Sources, files_of
from rg_env.reports.terminal import WorkProgress

if TYPE_CHECKING:
    import polars as pl


def _read(
    paths: Sequence[str], score: str | None
) -> tuple[list[str], pl.DataFrame, list[str]]:
    """Return names of results, each a path or a run in it, their samples, the unread.

    Raises:
        SettingError: A path holds none, or none with a score, or not with that one.
    """
    from rg_env.evaluation.numbers import row_of, table_of

    by_path = [Sources(files_of([path])) for path in paths]
    scored = dict[str, int]()

    def rows(progress: WorkProgress) -> Iterator[Sequence[Any]]:
        for number, (path, sources) in enumerate(zip(paths, by_path, strict=True)):
            before = [*scored]
            for sample in sources.samples(progress):
                name = sample.row.get("run") or path
                name += f" ({number + 1})" * (name in before)
                value = _score(sample, score, path)
                scored[name] = scored.get(name, 0) + (value is not None)
                sample = dataclasses.replace(sample, score=value)
                yield row_of(sample, [*scored].index(name))
            if len(scored) == len(before):
                reasons = "; ".join([path, *sources.reasons()])
                raise SettingError(f"command line: no completion in {reasons}")

    total = sum(sources.total_kb for sources in by_path)
    with WorkProgress("reading", total, "kB") as progress:
        table = table_of(rows(progress))
    if lacking := [name for name, known in scored.items() if not known]:
        raise SettingError(f"command line: no completion of {lacking[0]} has a score")
    return [*scored], table, [line for of in by_path for line in of.reasons()]


def _score(sample: Sample, score: str | None, path: str) -> float | None:
    """Return the score of a sample, or another one that `rescore` gave it."""
    if score is None or (sample.score is None and "scores" in sample.row):
        return sample.score
    value = (sample.row.get("scores") or {}).get(score)
    if not isinstance(value, float) or not 0 <= value <= 1:
        raise SettingError(
            f"--score {score}: {path} has a sample without it; files of rescore have it"
        )
    return value


@click.command("compare", cls=Command, example="compare data/evaluate data/evaluate_1")
@click.argument("paths", nargs=-1, required=True, metavar="RESULT...")
@flag("--tasks", text="Also compare each task")
@flag("--pairs", text="Compare every pair, not each result with the first")
@click.option(
    "--score",
    type=click.Choice(["saved", "library", "fixes", "ours"]),
    help="Score to use from files of rescore; by default ours",
)
@json_option
def compare(
    paths: Sequence[str], tasks: bool, pairs: bool, score: str | None, as_json: bool
) -> int:
    """Show results side by side, paired by item.

    A result is a file or folder of samples of evaluate or rescore, of dumps, of rows
    of process, or of published results of reasoning-gym, where each run is one.
    """
    from rg_env.evaluation.summary import Comparison

    names, table, unread = _read(paths, score)
    comparison = Comparison(names, table, all_pairs=pairs)
    if as_json:
        print(json.dumps(comparison.numbers() | {"unread": unread}, indent=2))
        return 0
    numbered = [Text(f"{n}  {printable(name)}") for n, name in enumerate(names, 1)]
    tables = rendered(*numbered, *comparison.tables(with_tasks=tasks))
    print("\n".join([tables, *unread]))
    return 0
