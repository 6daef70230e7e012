"""Functions of the library, replaced by equal ones that are faster.

One is replaced only where its source is the very text that ours was compared with;
under any other version of it the library's own stays, which is right and slower.
"""

from __future__ import annotations

import hashlib
import inspect
import pkgutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from rg_env.task_rules.rules import FasterFunction


class JsonLines(Sequence[Any]):
    """Values, a line of JSON each, that are read when they are sampled."""

    def __init__(self, lines: Iterable[bytes]) -> None:
        self._lines = list(lines)

    def __len__(self) -> int:
        return len(self._lines)

    def __getitem__(self, place: Any) -> Any:
        return msgspec.json.decode(self._lines[place])


def init_that(
    fill: Callable[[Mapping[str, Any], Any, Any], None],
) -> Callable[[Any], Callable[[Any, Any], None]]:
    """Return what makes the `__init__` of a dataset.

    It does what every dataset begins with, and calls `fill` with the names of the
    library's module, the dataset and its config.
    """

    def make(own: Any) -> Callable[[Any, Any], None]:
        def init(dataset: Any, config: Any) -> None:
            begin = own.__globals__["ProceduralDataset"].__init__
            begin(dataset, config=config, seed=config.seed, size=config.size)
            fill(own.__globals__, dataset, config)

        return init

    return make


def source_digest(function: Any) -> str:
    """Return 16 hex digits that change with a function's text; "" if it has none."""
    try:
        text = inspect.getsource(function)
    except (OSError, TypeError):
        return ""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def replace(functions: Iterable[FasterFunction]) -> list[str]:
    """Put the faster functions in their places, from then on and in this process.

    Returns:
        Module and name of each that was replaced, e.g. "cellpylib.evolve2d".
    """
    replaced = []
    for function in functions:
        holder, _, name = function.name.rpartition(".")
        try:
            place = pkgutil.resolve_name(f"{function.module}:{holder}")
            own = getattr(place, name)
        except (ImportError, AttributeError):
            continue
        if source_digest(own) != function.digest:
            continue
        faster = function.make(own)
        is_static = isinstance(inspect.getattr_static(place, name), staticmethod)
        setattr(place, name, staticmethod(faster) if is_static else faster)
        replaced.append(f"{function.module}.{function.name}")
    return replaced
