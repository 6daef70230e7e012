"""`report`: a page of everything that was sampled, in a folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from rg_env.cli.command import Command, option
from rg_env.errors import counted

FOLDER: click.Path = click.Path(file_okay=False, path_type=Path)


@click.command("report", cls=Command, example="report data_dumps --out report")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@option("--out", FOLDER, "report", "Folder to write")
@option("--title", click.STRING, "", "Heading of the page; by default Report")
def report(paths: Sequence[str], out: Path, title: str) -> int:
    """Write a page about rollouts, results and metrics that opens without a network.

    A PATH is a file or folder of dump files (even of a running serve), rows of process,
    samples of evaluate or rescore, published results of reasoning-gym, or metrics. An
    existing report in the folder is replaced.
    """
    from rg_env.pages.report import write_report

    samples = write_report(paths, out, title=title, shows_progress=True)
    print(f"{counted(samples, 'rollout')}: {out / 'index.html'}")
    return 0
