"""What both audits of answers share: options, processes, and tables."""

from __future__ import annotations

import argparse
import functools
import multiprocessing
import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any, TypeVar

from rg_env.tasks import library
from tools.answer_texts.four_scorers import load_cascade
from tools.answer_texts.sampled_items import DEFAULTS, read_level

Result = TypeVar("Result")


def build_parser(description: str, first_seed: int) -> argparse.ArgumentParser:
    """Return a parser of the options that both have."""
    parser = argparse.ArgumentParser(description=description)
    add = parser.add_argument
    add("--tasks", nargs="+", help="only these")
    add("--items", type=int, default=10, help="of a task and level")
    levels = [DEFAULTS, 0.0, 0.5, 1.0]
    add("--levels", nargs="+", type=read_level, default=levels, help="or defaults")
    add("--seed", type=int, default=first_seed, help="of the first item")
    add("--cascade", type=Path, metavar="FILE", help="with cascade_score")
    add("--processes", type=int, default=os.cpu_count() or 1)
    add("--markdown", action="store_true", help="tables for a page")
    add("--json", type=Path, metavar="FILE")
    return parser


def audit(
    measure: Callable[..., Result], options: argparse.Namespace
) -> dict[str, Result]:
    """Measure each task with these options.

    Args:
        measure: Takes a task, levels, items of each, the first seed and the file of
            `cascade_score`. It travels to other processes, so a function of a module.
        options: Of the command.
    """
    if load_cascade(options.cascade) is None:
        print("without cascade_score: --cascade names a file that has it")
    job: Callable[[str], Result] = functools.partial(
        measure,
        levels=options.levels,
        items=options.items,
        seed=options.seed,
        cascade=options.cascade and options.cascade.resolve(),
    )
    tasks = options.tasks or list(library.describe().tasks)
    return for_each_task(job, tasks, options.processes)


def table(
    head: Sequence[str], rows: Mapping[str, Sequence[str]], markdown: bool
) -> list[str]:
    """Return the lines of a table; each row is a name and its cells."""
    first, *columns = head
    if not markdown:
        cells = {first: columns, **rows}.items()
        return [f"{n:42}" + "".join(f"{cell:>18}" for cell in row) for n, row in cells]
    lines = [f"| {' | '.join(head)} |", "|---|" + "--:|" * len(columns)]
    return lines + [f"| {_code(n)} | {' | '.join(row)} |" for n, row in rows.items()]


def _code(name: str) -> str:
    escaped = name.replace("|", "\\|")
    return f"`` {escaped} ``" if "`" in name else f"`{escaped}`"


def for_each_task(
    job: Callable[[str], Any], tasks: Sequence[str], processes: int
) -> dict[str, Any]:
    """Do a job for each task in processes; say on stderr how far it is.

    They work in a folder that goes with them: programs of codeio write files.
    """
    found: dict[str, Any] = {}
    context = multiprocessing.get_context("spawn")
    with (
        tempfile.TemporaryDirectory() as folder,
        ProcessPoolExecutor(processes, context, os.chdir, (folder,)) as executor,
    ):
        waiting = {executor.submit(job, task): task for task in tasks}
        for future in as_completed(waiting):
            found[waiting[future]] = future.result()
            done = f"{len(found)}/{len(tasks)} {waiting[future]}"
            print(f"\r{done:45}", end="", file=sys.stderr)
    print(file=sys.stderr)
    return {task: found[task] for task in tasks}
