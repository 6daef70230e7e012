"""`compare`: results of evaluations side by side, paired by item."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Sequence

import click
from rich import box
from rich.text import Text

from rg_env.cli.command import Command
from rg_env.cli.standard_streams import print_text, rendered
from rg_env.errors import SettingError, on_one_line
from rg_env.evaluation.comparison import WHOLE, Comparison, Paired
from rg_env.evaluation.samples import Sample, scored
from rg_env.evaluation.sources import Sources, files_of
from rg_env.evaluation.statistics import Estimate
from rg_env.reports.fitting_table import FittingTable
from rg_env.reports.progress_bar import WorkProgress

NAME_WIDTH = 500
Results = dict[str, list[Sample]]


def _read(paths: Sequence[str], score: str | None) -> tuple[Results, list[str]]:
    """Return the samples of each path, or of each run in it, and what is unread.

    Raises:
        SettingError: A path holds none, or none with a score, or not with that one.
    """
    results: Results = {}
    by_path = [Sources(files_of([path]), with_texts=False) for path in paths]
    total = sum(sources.total_kb for sources in by_path)
    with WorkProgress("reading", total, "kB") as progress:
        for number, (path, sources) in enumerate(zip(paths, by_path, strict=True)):
            found: Results = {}
            for sample in sources.samples():
                name = sample.row.get("run") or path
                name += f" ({number + 1})" * (name in results)
                found.setdefault(name, []).append(_with_score(sample, score, path))
                if read := sources.kb_since_last():
                    progress.advance(by=read)
            if not found:
                said = "; ".join([path, *sources.unread_said()])
                raise SettingError(f"command line: no completion in {said}")
            for name in (name for name, of in found.items() if not scored(of)):
                raise SettingError(f"command line: no completion of {name} has a score")
            results |= found
    return results, [line for sources in by_path for line in sources.unread_said()]


def _with_score(sample: Sample, score: str | None, path: str) -> Sample:
    """Return a sample of `rescore` with another one of its scores."""
    if score is None or (sample.score is None and "scores" in sample.row):
        return sample
    value = (sample.row.get("scores") or {}).get(score)
    if not isinstance(value, float) or not 0 <= value <= 1:
        raise SettingError(
            f"--score {score}: {path} has a sample without it; files of rescore have it"
        )
    return dataclasses.replace(sample, score=value)


def _estimate_cells(value: Estimate | None, *others: Estimate | None) -> list[str]:
    """Return a mean and the intervals that it has."""
    spans = [each.interval() if each else "-" for each in others]
    return [f"{value.mean:.3f}" if value else "-", *spans]


def _table(title: str, first: str, others: Sequence[str]) -> FittingTable:
    left_out = ("only in one", "truncated", "by task", "score of answered")
    return FittingTable(
        [first],
        others,
        [*left_out, "completions", "answered", "no score", "by item", "items"],
        title=title,
        box=box.SIMPLE_HEAD,
        padding=0,
    )


def _pair_name(pair: tuple[int, int]) -> str:
    return f"{pair[1] + 1}-{pair[0] + 1}"


PAIR_HEADINGS = ("items", "means", "difference", "by item", "by task")


def _pair_cells(pair: Paired) -> list[str]:
    """Return how many items two results share, and their means and difference there."""
    means = pair.means and f"{pair.means[1]:.3f} vs {pair.means[0]:.3f}"
    number = str(pair.by_item.samples if pair.by_item else 0)
    return [
        number,
        means or "-",
        *_estimate_cells(pair.by_item, pair.by_item, pair.by_task),
    ]


def _part_tables(found: Comparison, kind: str) -> Iterator[FittingTable]:
    """Yield the scores of categories or tasks, and what differs on shared items."""
    parts = found.parts(kind)
    names = [Text(on_one_line(part[1], NAME_WIDTH)) for part in parts]
    headings = [str(place + 1) for place in range(len(found.names))]
    table = _table(f"Mean score by {kind}", kind, headings)
    for part, name in zip(parts, names, strict=True):
        of_part = [one.by_item if one else None for one in found.measured[part]]
        table.add_row(name, *(_estimate_cells(one)[0] for one in of_part))
    yield table
    pairs = [*map(_pair_name, found.pairs)]
    if len(pairs) > 2:
        title = f"Differences by {kind}, of the items of both, with intervals by item"
        table = _table(title, kind, pairs)
        for part, name in zip(parts, names, strict=True):
            of_part = [pair.by_item for pair in found.paired[part]]
            table.add_row(name, *(" ".join(_estimate_cells(d, d)) for d in of_part))
        yield table
        return
    for place, pair in enumerate(pairs):
        title = f"Differences by {kind}, of the items of both: {pair}"
        table = _table(title, kind, PAIR_HEADINGS)
        for part, name in zip(parts, names, strict=True):
            table.add_row(name, *_pair_cells(found.paired[part][place]))
        yield table


def tables(found: Comparison, *, with_tasks: bool) -> Iterator[FittingTable]:
    """Yield the scores of all results and of their parts, and the differences."""
    headings = ["items", "completions", "score", "by item", "by task"]
    headings += ["answered", "score of answered", "truncated", "no score"]
    scores = _table("Mean score with 95 % intervals", "", headings)
    for place, one in enumerate(found.measured[WHOLE]):
        if one is not None:
            scores.add_row(
                *map(str, (place + 1, one.items, one.completions)),
                *_estimate_cells(one.by_item, one.by_item, one.by_task),
                f"{one.answered:.1%}",
                *_estimate_cells(one.score_of_answered),
                "-" if one.truncated is None else str(one.truncated),
                str(one.failed + one.not_used),
            )
    yield scores
    headings = [*PAIR_HEADINGS, "only in one"]
    pairs = _table("Differences, of the items of both", "", headings)
    for (a, b), pair in zip(found.pairs, found.paired[WHOLE], strict=True):
        pairs.add_row(
            _pair_name((a, b)),
            *_pair_cells(pair),
            f"{a + 1}: {pair.only_first}, {b + 1}: {pair.only_second}",
        )
    if found.pairs:
        yield pairs
    for kind in ("category", "task") if with_tasks else ("category",):
        yield from _part_tables(found, kind)


@click.command("compare", cls=Command, example="compare data/evaluate data/evaluate_1")
@click.argument("paths", nargs=-1, required=True, metavar="RESULT...")
@click.option("--tasks", is_flag=True, help="Also compare each task")
@click.option(
    "--pairs", is_flag=True, help="Compare every pair, not each result with the first"
)
@click.option(
    "--score",
    type=click.Choice(["saved", "library", "fixes", "ours"]),
    help="Score to use from files of rescore; by default ours",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead")
def compare(
    paths: Sequence[str],
    tasks: bool,
    pairs: bool,
    score: str | None,
    as_json: bool,
) -> int:
    """Show results side by side, paired by item.

    A result is a file or folder of samples of evaluate or rescore, of dumps, of rows
    of process, or of published results of reasoning-gym, where each run is one.
    """
    results, unread = _read(paths, score)
    found = Comparison(results, all_pairs=pairs)
    if as_json:
        print_text(json.dumps(found.numbers() | {"unread": unread}, indent=2))
    else:
        names = [
            Text(f"{place + 1}  {on_one_line(name, NAME_WIDTH)}")
            for place, name in enumerate(found.names)
        ]
        shown = rendered(*names, *tables(found, with_tasks=tasks))
        print_text("\n".join([shown, *unread]))
    return 0
