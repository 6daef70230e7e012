"""`screen`: a few groups of each task, and the settings of a run that can learn."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from rg_env.atropos.setting_types import SECRET
from rg_env.cli.command import START, FilePath, Number, shown
from rg_env.cli.setting_options import SettingsCommand
from rg_env.cli.settings_command import Begun, build, command_of, write_rows
from rg_env.cli.standard_streams import print_text, rendered
from rg_env.errors import RunFailed, not_allowed
from rg_env.evaluation.screening import TITLE, TaskScreen, screen_rows, table_of
from rg_env.rollouts.json_encoding import read_groups

SUMMARY = (
    "Sample a few groups of each task with the settings of a run of serve, and write"
    " these with the tasks and levels whose groups have variance."
)

MOST_GROUPS = 100_000
SUFFIXES = (".yaml", ".yml")


def screen(env_cls: Any) -> SettingsCommand:
    """Return `screen`."""
    command = command_of("screen", SUMMARY, env_cls, {}, _screen)
    groups = "Groups of each task; by default 2 % of the run's rollouts, at least 5"
    least = "A task with a smaller share of groups with variance is left out"
    out = "The settings that are found; the groups stand beside it as .jsonl"
    for option in (
        shown("--groups", click.IntRange(1, MOST_GROUPS), None, groups),
        shown("--least-share", Number(0.01, 1.0), 0.1, least),
        shown("--out", FilePath(dir_okay=False), "data/screen.yaml", out),
        click.option("--json", is_flag=True, help="Print one JSON document instead"),
    ):
        option(command)
    return command


def _screen(begun: Begun) -> None:
    """Run a screen, and write what it found."""
    from rg_env.atropos.screen_run import ScreenRun, settings_text

    values, out = begun.values, Path(begun.values["out"])
    if out.suffix not in SUFFIXES:
        raise not_allowed("--out", str(out), "a file of settings, as screen.yaml")
    runs: list[ScreenRun] = []

    def change(config: Any) -> Any:
        runs.append(ScreenRun(config, values["groups"], str(out.with_suffix(".jsonl"))))
        return runs[0].config

    env = build(begun, change)
    env.screen, env.jsonl_writer.with_tokens = runs[0], False
    write_rows(env, quietly=values["json"])
    rows = Path(env.config.data_path_to_save_groups)
    tasks = screen_rows(read_groups(rows), env.screen.bounds, values["least_share"])
    settings = env.screen.settings(begun.given.sections(begun.start), tasks)
    path = rows.with_suffix(out.suffix)
    if has_kept := not all(task.left_out for task in tasks):
        path.write_text(settings_text(settings, tasks), encoding="utf-8")
    _show(tasks, settings, path if has_kept else None, begun)
    if not has_kept:
        raise RunFailed(
            f"no task has variance in {values['least_share']:.0%} of its groups, so no"
            " settings are written: take a smaller --least-share, other tasks or levels"
        )


def _show(
    tasks: Sequence[TaskScreen],
    settings: Mapping[str, Any],
    path: Path | None,
    begun: Begun,
) -> None:
    """Print what was found; `path` is where the settings are, if they are anywhere."""
    if begun.values["json"]:
        found = [dataclasses.asdict(task) for task in tasks]
        print_text(json.dumps({"tasks": found, "settings": settings}, indent=2))
        return
    print_text(rendered(TITLE, table_of(tasks)))
    if path is not None:
        print_text(f"settings: {path}\nrun: {START} serve --config {path}")
        parts = begun.given.openai
        servers = [parts] if isinstance(parts, Mapping) else parts
        left = {name for server in servers for name in SECRET if name in server}
        for name in sorted(left):
            print_text(f"openai.{name} is not in that file: give it as before")
