"""What a report calls a run: the end of its path that no other run has."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from rg_env.evaluation.sources import LAUNCHED, METRICS
from rg_env.rollouts.run_dumps import METRICS_FOLDER

RUN_ID = re.compile("(^|rollouts_)([0-9a-f-]{36})_")
"""Begins the name of a run's metrics, and is in the names of its dump files."""

Place = tuple[str, ...]
"""The parts of the path of a run, or the first letters of its id."""


def is_dumped(source: str) -> bool:
    """Return whether a file holds those groups of a run that were kept."""
    found = RUN_ID.search(Path(source).name)
    return found is not None and bool(found[1])


def metrics_of(dump: Path) -> Path:
    """Return the path of the metrics of the run that wrote a dump file."""
    found = RUN_ID.search(dump.name)
    return dump.parent / METRICS_FOLDER / f"{found and found[2]}_{METRICS}"


@functools.lru_cache(maxsize=4096)
def place_of(source: str, run: str | None = None) -> Place:
    """Return the place of the run that a file belongs to.

    Args:
        source: A file of samples or of metrics.
        run: The folder of a published run; "" or None for other files.
    """
    path = Path(source).resolve()
    if run:
        return path.parts[:-2] if path.parts[-3:-2] == (run,) else (run,)
    for folder in path.parents:
        if all((folder / name).is_file() for name in LAUNCHED):
            return folder.parts
    if found := RUN_ID.search(path.name):
        return (found[2][:8],)
    if path.name.startswith("samples.") or path.name == METRICS:
        return path.parts[:-1]
    return *path.parts[:-1], path.name.removesuffix(f"_{METRICS}").split(".json")[0]


def names_of(places: Iterable[Place]) -> Mapping[Place, str]:
    """Return the shortest end of each place that no other one has."""
    found: dict[Place, str] = {}
    left, length = set(places), 0
    while left:
        length += 1
        by_end: dict[Place, list[Place]] = {}
        for place in left:
            by_end.setdefault(place[-length:], []).append(place)
        found |= {of[0]: "/".join(end) for end, of in by_end.items() if len(of) == 1}
        left -= found.keys()
    return found
