"""`screen`: a few groups of each task, and the settings of a run that can learn."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from rg_env.cli.command import START, rendered
from rg_env.cli.given_settings import GivenSettings, Start
from rg_env.cli.settings_command import SettingsCommand, build, write_rows
from rg_env.errors import RunError, SettingError, not_allowed, shown
from rg_env.rollouts.json_encoding import read_groups
from rg_env.settings.setting_types import SECRET
from rg_env.tasks.baselines import guessing_notes

logger = logging.getLogger(__name__)

SUMMARY = (
    "Sample a few groups of each task with the settings for serve, and write a settings"
    " file that selects the tasks and levels whose groups have reward variance."
)

OWN = (
    click.Option(
        ["--groups"],
        type=click.IntRange(1, 100_000),
        help="Number of groups for each task; by default 2 % of the run, at least 5",
    ),
    click.Option(
        ["--least_share"],
        type=click.FloatRange(0.01, 1.0),
        default=0.1,
        show_default=True,
        help="Leave out tasks with a smaller share of groups that have variance",
    ),
    click.Option(
        ["--out"],
        type=click.Path(dir_okay=False, path_type=Path),
        default="data/screen.yaml",
        show_default=True,
        help="Settings file to write (.yaml); the groups go beside it (.jsonl)",
    ),
)


def screen(env_cls: Any) -> SettingsCommand:
    """Return `screen`."""

    def run(given: GivenSettings, **own: Any) -> int:
        if "data_path_to_save_groups" in given.env:
            logger.warning(
                "env.data_path_to_save_groups has no effect: `screen` writes its groups"
                " beside --out"
            )
        _screen(command, given, **own)
        return 0

    example = "--config settings.yaml --groups 20"
    command = SettingsCommand("screen", SUMMARY, env_cls, run, example=example, own=OWN)
    return command


def _sections(given: GivenSettings, start: Start) -> dict[str, Any]:
    """Return what was set as a file for `--config` has it, without keys of servers."""
    servers = given.build_servers(start)
    openai = [
        server.model_dump(mode="json", include={*part} - {*SECRET})
        for server, part in zip(servers, given.parts(servers), strict=True)
    ]
    is_one = isinstance(given.openai, Mapping)
    env = given.build_env(start).model_dump(mode="json", include={*given.env})
    flags = {"slurm": True} if given.slurm else {}
    return {"env": env, "openai": openai[0] if is_one else openai, **flags}


def _screen(
    command: SettingsCommand,
    given: GivenSettings,
    groups: int | None,
    least_share: float,
    out: Path,
) -> None:
    """Run a screen, and write the settings that follow from it."""
    from rg_env.atropos.screen_run import ScreenRun, is_other, settings_text
    from rg_env.evaluation.screening import TITLE, screen_rows, table_for

    if out.suffix != ".yaml":
        raise not_allowed("--out", str(out), "*.yaml")
    if is_other(out):
        raise SettingError(
            f"--out: {shown(str(out))} was not written by `screen`; choose another file"
        )
    runs: list[ScreenRun] = []

    def change(config: Any) -> Any:
        runs.append(ScreenRun(config, groups, str(out.with_suffix(".jsonl"))))
        return runs[0].config

    env = build("screen", command.env_cls, given, change=change)
    env.screen, env.jsonl_writer.with_tokens = runs[0], False
    write_rows(env)
    rows = Path(env.config.data_path_to_save_groups)
    tasks = screen_rows(read_groups(rows), runs[0].bounds, least_share)
    print(rendered(TITLE, table_for(tasks)))
    for note in guessing_notes({task.task for task in tasks if not task.left_out}):
        print(f"warning: {note}")
    if all(task.left_out for task in tasks):
        raise RunError(
            f"no task has variance in {least_share:.0%} of its groups, so no"
            " settings are written: take a smaller --least_share, other tasks or levels"
        )
    sections = runs[0].settings(_sections(given, command.start), tasks)
    path = rows.with_suffix(".yaml")
    path.write_text(settings_text(sections, tasks), encoding="utf-8")
    print(f"settings: {path}\nrun: {START} serve --config {path}")
