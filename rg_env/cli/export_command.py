"""`export`: writes items and saved completions as files for other trainers."""

from __future__ import annotations

import itertools
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from rg_env.adapters import dataset_export
from rg_env.cli.main import (
    CONTEXT_SETTINGS,
    Number,
    command,
    flag,
    option,
    paths_argument,
)
from rg_env.cli.options import (
    STREAM_SETTINGS,
    ExplicitSettings,
    SettingsCommand,
    options,
    stream_of,
)
from rg_env.errors import SettingError
from rg_env.installation import COMMAND
from rg_env.results.sources import Sources, find_files
from rg_env.results.terminal import WorkProgress
from rg_env.stream.item import Item

USED = STREAM_SETTINGS | {"num_eval_samples_per_task", "eval_seed", "eval_level"}
"""Settings that affect the exported items."""

UNSUPPORTED = ("num_shards", "scorer_fixes", "eval_preset")
"""Settings that affect the items of a run, and that an export does not support."""

COUNT = click.IntRange(1, 10_000_000)
POSITIVE_SCORE = Number(0.0, 1.0, min_open=True)

FORMAT_HELP = "Format of the files"
out_option = click.option(
    "--out", type=click.Path(path_type=Path), required=True, help="New folder to write"
)


def _origin(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return how the files were made, for their card."""
    line = f"{COMMAND} {shlex.join(sys.argv[1:])}"
    return {"command": line, "settings": dict(settings)}


@options(
    "export items --env.tasks 'gcd,*_sorting' --number 1000 --out data/items",
    fields=USED,
)
@option("--number", COUNT, 1000, "Number of training items")
@out_option
@option(
    "--format form", click.Choice(["jsonl", "parquet", "verl"]), "jsonl", FORMAT_HELP
)
def items(
    command: SettingsCommand,
    explicit: ExplicitSettings,
    number: int,
    out: Path,
    form: Any,
) -> int:
    """Write the items that `serve` would sample, as files.

    Questions are not repeated; the evaluation items are a separate split.
    """
    settings, _ = explicit.merged_with(command.defaults)
    if unsupported := {*UNSUPPORTED} & explicit.env.keys():
        raise SettingError(
            f"env.{min(unsupported)}: an export cannot follow it; leave it out"
        )
    tasks = stream_of(settings)
    used = settings.model_dump(mode="json", include=USED)
    origin = _origin({**used, "number": number})
    origin["levels"] = "fixed when the files were written; training does not move them"
    for_each_task = settings.num_eval_samples_per_task
    is_verl = form == "verl"
    kind: dataset_export.Kind = "verl" if is_verl else "items"
    file_format: dataset_export.Form = "parquet" if is_verl else form
    total = for_each_task * len(tasks.categories()) + number
    with (
        dataset_export.new_export(out, kind, file_format, how=origin) as export,
        WorkProgress("export", total, "items") as progress,
    ):

        def write(split: str, items: Iterable[Item]) -> None:
            rows = dataset_export.item_rows(tasks, _with_progress(items, progress))
            export.write(
                split, dataset_export.verl_rows(split, rows) if is_verl else rows
            )

        held_out = tasks.evaluation(
            for_each_task, settings.eval_seed, settings.eval_level
        )
        # The card is written when the export ends.
        origin["items_digest"] = tasks.digest(held_out)
        export.left_out["draws without an item"] = tasks.failures.total()
        write("test", held_out)
        new_items = dataset_export.new_items(tasks, held_out, export.left_out)
        write("train", itertools.islice(new_items, number))
    print(f"{export}\ncard: {out / 'README.md'}")
    return int(export.tasks["train"].total() < number)


def _with_progress(items: Iterable[Item], progress: WorkProgress) -> Iterator[Item]:
    for item in items:
        yield item
        progress.advance()


@command("export sft data_dumps --out data/sft")
@paths_argument
@option("--least_score", POSITIVE_SCORE, 1.0, "Minimum score of a completion")
@option("--most_per_item", COUNT, 4, "Maximum rows per item")
@flag("--with_evaluation", text="Include completions of evaluation items")
@out_option
@option("--format form", click.Choice(["jsonl", "parquet"]), "jsonl", FORMAT_HELP)
def sft(
    paths: Sequence[str],
    least_score: float,
    most_per_item: int,
    with_evaluation: bool,
    out: Path,
    form: Any,
) -> int:
    """Write the best completions of each item as conversations (`messages`).

    A PATH is a file or folder of dump files, of rows of process, or of your own JSONL.
    Completions are left out if they have no score, were cut off, or repeat another one
    of the same item. Completions of evaluation items are an error.
    """
    sources = Sources(find_files(paths))
    origin = _origin(
        {
            "paths": [*paths],
            "least_score": least_score,
            "most_per_item": most_per_item,
            "with_evaluation": with_evaluation,
        }
    )
    with dataset_export.new_export(out, "sft", form, how=origin) as export:
        left_out = export.left_out
        samples = dataset_export.select_usable(
            sources.samples("export"), left_out, with_evaluation=with_evaluation
        )
        rows = dataset_export.sft_rows(samples, least_score, most_per_item, left_out)
        export.write("train", rows)
        if not export.tasks and sources.unread:
            raise sources.no_completion_error(paths)
        unread = {f"{why} lines": count for why, count in sources.unread.items()}
        left_out.update(unread)
    print("\n".join([f"{export}", *sources.reasons(), f"card: {out / 'README.md'}"]))
    return 0


def export(env_cls: Any) -> click.Group:
    """Return the command `export` for a class of environments, or for its importer."""
    return click.Group(
        "export",
        help="Write items or saved completions as files that trainers load.",
        epilog=f"\b\nExample:\n  {COMMAND} export items --number 1000 --out data/items",
        context_settings=CONTEXT_SETTINGS,
        no_args_is_help=False,
        commands={"items": items(env_cls), "sft": sft},
    )
