"""`export`: writes items and saved completions as files for other trainers."""

from __future__ import annotations

import itertools
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from rg_env.adapters import files
from rg_env.cli.main import (
    HELP_NAMES,
    Number,
    command,
    flag,
    option,
    paths_argument,
)
from rg_env.cli.options import (
    OF_STREAM,
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

USED = OF_STREAM | {"num_eval_samples_per_task", "eval_seed", "eval_level"}
"""Settings that affect the exported items."""

NOT_USED = ("num_shards", "scorer_fixes", "eval_preset")
"""Settings that affect the items of a run, and that an export does not support."""

COUNT = click.IntRange(1, 10_000_000)
ABOVE_0 = Number(0.0, 1.0, min_open=True)

FORMAT = "Format of the files"
out_option = click.option(
    "--out", type=click.Path(path_type=Path), required=True, help="New folder to write"
)


def _card(settings: Mapping[str, Any]) -> dict[str, Any]:
    line = f"{COMMAND} {shlex.join(sys.argv[1:])}"
    return {"command": line, "settings": dict(settings)}


@options(
    "export items --env.tasks 'gcd,*_sorting' --number 1000 --out data/items",
    fields=USED,
)
@option("--number", COUNT, 1000, "Training items")
@out_option
@option("--format form", click.Choice(["jsonl", "parquet", "verl"]), "jsonl", FORMAT)
def items(
    command: SettingsCommand,
    given: ExplicitSettings,
    number: int,
    out: Path,
    form: Any,
) -> int:
    """Write the items that `serve` would sample, as files.

    Questions are not repeated; the evaluation items are a separate split.
    """
    settings, _ = given.over(command.defaults)
    if other := {*NOT_USED} & given.env.keys():
        raise SettingError(
            f"env.{min(other)}: an export cannot follow it; leave it out"
        )
    tasks = stream_of(settings)
    card = _card({**settings.model_dump(mode="json", include=USED), "number": number})
    card["levels"] = "fixed when the files were written; training does not move them"
    each = settings.num_eval_samples_per_task
    is_verl = form == "verl"
    kind: files.Kind = "verl" if is_verl else "items"
    form = "parquet" if is_verl else form
    total = each * len(tasks.categories()) + number
    with (
        files.new_export(out, kind, form, how=card) as export,
        WorkProgress("export", total, "items") as progress,
    ):

        def counted(some: Iterable[Item]) -> Iterator[Item]:
            for item in some:
                yield item
                progress.advance()

        held_out = tasks.evaluation(each, settings.eval_seed, settings.eval_level)
        card["items_digest"] = tasks.digest(held_out)
        export.left_out["draws without an item"] = tasks.failures.total()
        new = files.new_items(tasks, held_out, export.left_out)
        train = counted(itertools.islice(new, number))
        for split, some in (("test", counted(held_out)), ("train", train)):
            rows = files.item_rows(tasks, some)
            export.write(split, files.verl_rows(split, rows) if is_verl else rows)
    print(f"{export}\ncard: {out / 'README.md'}")
    return int(export.tasks["train"].total() < number)


@command("export sft data_dumps --out data/sft")
@paths_argument
@option("--least_score", ABOVE_0, 1.0, "Minimum score of a completion")
@option("--most_per_item", COUNT, 4, "Maximum rows per item")
@flag("--with_evaluation", text="Include completions of evaluation items")
@out_option
@option("--format form", click.Choice(["jsonl", "parquet"]), "jsonl", FORMAT)
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
    card = _card(
        {
            "paths": [*paths],
            "least_score": least_score,
            "most_per_item": most_per_item,
            "with_evaluation": with_evaluation,
        }
    )
    with files.new_export(out, "sft", form, how=card) as export:
        lost = export.left_out
        read = sources.samples("export")
        samples = files.select_usable(read, lost, with_evaluation=with_evaluation)
        export.write("train", files.sft_rows(samples, least_score, most_per_item, lost))
        if not export.tasks and sources.unread:
            raise sources.no_completion_error(paths)
        lost.update({f"{why} lines": count for why, count in sources.unread.items()})
    print("\n".join([f"{export}", *sources.reasons(), f"card: {out / 'README.md'}"]))
    return 0


def export(env_cls: Any) -> click.Group:
    """Return `export` for a class of environments or a function that imports it."""
    return click.Group(
        "export",
        help="Write items or saved completions as files that trainers load.",
        epilog=f"\b\nExample:\n  {COMMAND} export items --number 1000 --out data/items",
        context_settings=HELP_NAMES,
        no_args_is_help=False,
        commands={"items": items(env_cls), "sft": sft},
    )
