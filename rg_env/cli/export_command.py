"""`export`: items and saved completions as files that other trainers load."""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click

from rg_env.adapters import files
from rg_env.adapters.files import Form
from rg_env.cli.command import HELP_NAMES, START, WORDS, Command, cluster_at
from rg_env.cli.given_settings import GivenSettings
from rg_env.cli.setting_options import OF_STREAM, stream_of
from rg_env.cli.settings_command import SettingsCommand
from rg_env.errors import SettingError
from rg_env.evaluation.sources import Sources, files_of
from rg_env.items.item import Item
from rg_env.reports.terminal import WorkProgress

ITEMS = (
    "Write the items that `serve` would sample, without repeated questions, and the"
    " evaluation items as a separate split."
)
SFT = "Write the best completions of each item as conversations (`messages`)."
PREFERENCES = (
    "Write preference pairs (`prompt`, `chosen`, `rejected`) of completions of an item:"
    " the best with the worst, the second best with the second worst, and so on."
)
READ = """
A PATH is a file or folder of dump files, of rows of process, or of your own JSONL.
Completions are left out if they have no score, were cut off, or repeat another one of
the same item. Completions of evaluation items are an error.
"""

USED = OF_STREAM | {"num_eval_samples_per_task", "eval_seed", "eval_level"}
"""Settings that items are exported with."""

NOT_USED = ("mixture", "num_shards", "scorer_fixes", "eval_preset")
"""Settings with which a run has other items."""

COUNT = click.IntRange(1, 10_000_000)
ABOVE_0 = click.FloatRange(0.0, 1.0, min_open=True)


def _option(names: str, kind: Any, default: Any, text: str) -> click.Option:
    how = {"type": kind, "default": default, "show_default": True}
    return click.Option(names.split(), help=text, **how)


def _files(*forms: str) -> list[click.Option]:
    path = click.Path(path_type=Path)
    return [
        click.Option(["--out"], type=path, required=True, help="New folder to write"),
        _option("--format form", click.Choice(forms), forms[0], "Format of the files"),
    ]


def _card(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content of the card: the command line and all settings."""
    context = click.get_current_context()
    words = [*context.command_path.split()[1:], *context.meta[WORDS]]
    return {"command": f"{START} {shlex.join(words)}", "settings": dict(settings)}


# -- items -----------------------------------------------------------------------------


def _items(env_cls: Any) -> SettingsCommand:
    def run(given: GivenSettings, **own: Any) -> int:
        return _write_items(given.build_env(command.start), **own)

    text = "Make training items on a Ray cluster; `auto` is the one of this machine"
    own = [
        _option("--number", COUNT, 1000, "Training items"),
        *_files("jsonl", "parquet", "verl"),
        click.Option(["--ray", "address"], metavar="ADDRESS", help=text),
    ]
    example = "--env.tasks 'gcd,*_sorting' --number 1000 --out data/items"
    how: dict[str, Any] = {"example": example, "own": own, "fields": USED}
    command = SettingsCommand("export items", ITEMS, env_cls, run, **how)
    return command


def _write_items(
    settings: Any, number: int, out: Path, form: Any, address: str | None
) -> int:
    for name in NOT_USED:
        field = type(settings).model_fields[name]
        if getattr(settings, name) != field.get_default(call_default_factory=True):
            raise SettingError(f"env.{name}: an export cannot follow it; leave it out")
    tasks = stream_of(settings)
    card = _card({**settings.model_dump(mode="json", include=USED), "number": number})
    each, seed = settings.num_eval_samples_per_task, settings.eval_seed
    is_verl = form == "verl"
    form = "parquet" if is_verl else form
    with (
        cluster_at(address) as cluster,
        files.new_export(out, "verl" if is_verl else "items", form, card) as export,
    ):
        chosen = tasks.evaluation_items(each, seed, settings.eval_level)
        held_out = list(_counted("test", chosen, each * len(tasks.categories())))
        export.left_out["draws without an item"] = tasks.failures.total()
        new = files.new_items(tasks, held_out, export.left_out, cluster)
        train = _counted("train", itertools.islice(new, number), number)
        for split, items in (("test", held_out), ("train", train)):
            rows = files.item_rows(tasks, items)
            export.write(split, files.verl_rows(split, rows) if is_verl else rows)
    print(f"{export}\ncard: {out / 'README.md'}")
    return int(export.tasks["train"].total() < number)


def _counted(split: str, items: Iterable[Item], number: int) -> Iterator[Item]:
    with WorkProgress(f"export of {split}", number, "items") as progress:
        for item in items:
            yield item
            progress.advance()


# -- saved completions -----------------------------------------------------------------


def _completions(
    kind: Any, build: Any, paths: Sequence[str], out: Path, form: Form, **how: Any
) -> int:
    """Write the rows that are built of saved completions."""
    sources = Sources(files_of(paths))
    card = _card({"paths": list(paths), **how})
    is_free = how["with_evaluation"]
    with (
        files.new_export(out, kind, form, card) as export,
        WorkProgress("export", sources.total_kb, "kB") as progress,
    ):
        read = sources.samples(progress)
        samples = files.usable(read, export.left_out, with_evaluation=is_free)
        least, most = how["least"], how["most_per_item"]
        export.write("train", build(samples, least, most, export.left_out))
        lost = {f"{why} lines": count for why, count in sources.unread.items()}
        export.left_out.update(lost)
    print(f"{export}\ncard: {out / 'README.md'}")
    return 0


def _command(kind: str, summary: str, build: Any, least: click.Option) -> Command:
    text = "Include completions of evaluation items"
    return Command(
        kind,
        params=[
            click.Argument(["paths"], nargs=-1, required=True, metavar="PATH..."),
            least,
            _option("--most_per_item", COUNT, 4, "Maximum rows per item"),
            click.Option(["--with_evaluation"], is_flag=True, help=text),
            *_files("jsonl", "parquet"),
        ],
        callback=partial(_completions, kind, build),
        help=f"{summary}\n{READ}",
        example=f"export {kind} data_dumps --out data/{kind}",
    )


def export(env_cls: Any) -> click.Group:
    """Return `export` for a class of environments, or what imports it later."""
    group = click.Group(
        "export",
        help="Write items or saved completions as files that trainers load.",
        epilog=f"\b\nExample:\n  {START} export items --number 1000 --out data/items",
        context_settings=HELP_NAMES,
        no_args_is_help=False,
    )
    text = "Minimum score of a completion"
    least = _option("--least_score least", ABOVE_0, 1.0, text)
    text = "Minimum difference between the scores of a pair"
    margin = _option("--least_margin least", ABOVE_0, 0.5, text)
    pairs = files.preference_rows
    group.add_command(_items(env_cls), "items")
    group.add_command(_command("sft", SFT, files.sft_rows, least))
    group.add_command(_command("preferences", PREFERENCES, pairs, margin))
    return group
