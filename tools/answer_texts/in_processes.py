"""The tasks of a benchmark, each in one of a few processes."""

from __future__ import annotations

import multiprocessing
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import TypeVar

Result = TypeVar("Result")


def for_each_task(
    job: Callable[[str], Result], tasks: Sequence[str], processes: int
) -> dict[str, Result]:
    """Do a job for each task; say on stderr how far it is.

    Args:
        job: Travels to other processes, so a function of a module.
        tasks: Registered tasks.
        processes: At least 1.

    Returns:
        Task to result, in the order of the tasks.
    """
    found: dict[str, Result] = {}
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=context) as executor:
        waiting = {executor.submit(job, task): task for task in tasks}
        for future in as_completed(waiting):
            found[waiting[future]] = future.result()
            done = f"{len(found)}/{len(tasks)} {waiting[future]}"
            print(f"\r{done:45}", end="", file=sys.stderr)
    print(file=sys.stderr)
    return {task: found[task] for task in tasks}
