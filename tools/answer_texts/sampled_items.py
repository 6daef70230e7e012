"""Items that the audits sample, many of each task and level, with right answers."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import itertools
import multiprocessing
import os
import signal
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import polars as pl

from rg_env.library import datasets, scales
from rg_env.stream.seeds import mix_of_seed
from rg_env.task_rules.table import solution
from tools.gold_solvers.boards import box_plan, car_moves

LEVELS = (0.0, 0.5, 1.0)

MAX_SEEDS = 400
"""Seeds tried for the items of a task."""

ParamsOf = Callable[[int], Mapping[str, Any]]
"""From the seed of an item to its parameters."""


@dataclasses.dataclass(frozen=True)
class SampledItem:
    """An item with a right answer to it."""

    task: str
    seed: int
    params: Mapping[str, Any]
    entry: Mapping[str, Any]
    right: str


def levels_of(task: str) -> Iterator[tuple[str, ParamsOf]]:
    """Yield the defaults of a task and its levels, by name; some have no levels."""
    yield "defaults", lambda seed: {}
    scale = scales.load_shipped().scales.get(task)
    for level in LEVELS if scale else ():
        yield (
            f"{level:g}",
            lambda seed, at=level: scale.step_at(at, mix_of_seed(seed)).params,
        )


def sampled_items(
    task: str, first_seed: int, params_of: ParamsOf = lambda seed: {}
) -> Iterator[SampledItem]:
    """Yield the items of a task that can be used and have a right answer."""
    for seed in range(first_seed, first_seed + MAX_SEEDS):
        params = params_of(seed)
        with contextlib.redirect_stdout(io.StringIO()):  # codeio prints
            entry = next(datasets.usable_entries(task, params, [seed]), None)
        right = entry and right_answer(task, entry)
        if right is not None:
            yield SampledItem(task, seed, params, entry, right)


def attempted(limit_s: int, job: Callable[..., Any], *args: Any) -> Any:
    """Return what foreign code returns, or its error; it prints nothing.

    In the main thread alone: an alarm ends what takes longer than the limit.
    """

    def stop(*_: object) -> None:
        raise TimeoutError

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(limit_s)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            return job(*args)
    except Exception as error:  # noqa: BLE001 - foreign code may raise anything
        return error
    finally:
        signal.alarm(0)


def rows_of_tasks(
    job: Callable[[str], Iterable[Mapping[str, Any]]], tasks: Sequence[str]
) -> pl.DataFrame:
    """Return the rows that a job has of each task, done by a process for each core.

    They work in a folder that goes with them, since programs of codeio write files.
    """
    context = multiprocessing.get_context("spawn")
    with (
        tempfile.TemporaryDirectory() as folder,
        ProcessPoolExecutor(os.cpu_count(), context, os.chdir, (folder,)) as executor,
    ):
        rows = itertools.chain.from_iterable(executor.map(job, tasks))
        return pl.DataFrame(rows, infer_schema_length=None)


def right_answer(task: str, entry: Mapping[str, Any]) -> str | None:
    """Return an answer that is right, None where none is known or found in time."""
    if task == "rush_hour":
        return car_moves(entry["metadata"]["board_config"])
    if task == "boxnet":
        return box_plan(entry["metadata"]["initial_state"])
    return solution(task, entry)
