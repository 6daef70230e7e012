"""Items that the audits sample, many of each task and level, and how they do it."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import multiprocessing
import os
import signal
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any

from rg_env.library import datasets, scales
from rg_env.library.datasets import UnusableEntryError
from rg_env.stream.sampler import mix_of_seed
from tools.answer_texts.right_answers import right_answer

DEFAULTS = -1.0
"""Stands for the library's own parameters in a list of levels."""

ATTEMPTS = 20
"""Seeds tried for an item; a task whose items are all unusable has none."""


@dataclasses.dataclass(frozen=True)
class SampledItem:
    """An item with a right answer to it."""

    task: str
    level: float
    seed: int
    params: Mapping[str, Any]
    entry: Mapping[str, Any]
    right: str


def read_level(text: str) -> float:
    """Read a level of the command line: a number in [0, 1] or `defaults`."""
    return DEFAULTS if text == "defaults" else float(text)


def sampled_items(
    task: str, levels: Sequence[float], items: int, first_seed: int
) -> list[SampledItem]:
    """Make items of a task, as many of each level.

    A task without a scale has only its defaults.
    """
    scale = scales.load_shipped().scales.get(task)
    found = []
    for place, level in enumerate(levels):
        if scale is None and level != DEFAULTS:
            continue
        seed = first_seed + 1_000_003 * place
        for _ in range(items):
            for _ in range(ATTEMPTS):
                seed += 1
                item = _item(task, level, seed, scale)
                if item is not None:
                    found.append(item)
                    break
    return found


def _item(
    task: str, level: float, seed: int, scale: scales.Scale | None
) -> SampledItem | None:
    params: Mapping[str, Any] = {}
    if scale is not None and level != DEFAULTS:
        params = scale.step_at(level, mix_of_seed(seed)).params
    try:
        with contextlib.redirect_stdout(io.StringIO()):  # codeio prints
            entry = datasets.make_entry(task, params, seed)
        right = right_answer(task, entry)
    except UnusableEntryError:
        return None
    if right is None:
        return None
    return SampledItem(task, level, seed, params, entry, right)


@contextlib.contextmanager
def time_limit(seconds: int) -> Iterator[None]:
    """Raise `TimeoutError` after some seconds, in the main thread."""

    def stop(*_: object) -> None:
        raise TimeoutError

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)


def for_each_task(job: Callable[[str], Any], tasks: Sequence[str]) -> dict[str, Any]:
    """Do a job for each task, in as many processes as there are cores.

    They work in a folder that goes with them, since programs of codeio write files.
    """
    context = multiprocessing.get_context("spawn")
    with (
        tempfile.TemporaryDirectory() as folder,
        ProcessPoolExecutor(os.cpu_count(), context, os.chdir, (folder,)) as executor,
    ):
        return dict(zip(tasks, executor.map(job, tasks), strict=True))
