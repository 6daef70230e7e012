"""Functions of the library, replaced by equal ones that are faster.

One is replaced only where its source is the very text that ours was compared with;
under any other version of it the library's own stays, which is right and slower.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import pkgutil
from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any

import msgspec

from rg_env.task_rules.rules import FasterFunction


class JsonLines(Sequence[Any]):
    """Values that are read from their JSON when they are sampled, and not kept.

    Args:
        lines: One JSON value each.
    """

    def __init__(self, lines: Iterable[bytes]) -> None:
        self._lines = list(lines)

    def __len__(self) -> int:
        return len(self._lines)

    def __getitem__(self, place: Any) -> Any:
        """Return the value at a place."""
        return msgspec.json.decode(self._lines[place])


def begin_dataset(library: Mapping[str, Any], dataset: Any, config: Any) -> None:
    """Do what every dataset of the library begins with, given its module's names."""
    begin = library["ProceduralDataset"].__init__
    begin(dataset, config=config, seed=config.seed, size=config.size)


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
        Module and name of each that was replaced, e.g. "bfi.execute".
    """
    replaced = []
    for function in functions:
        *holders, name = function.name.split(".")
        try:
            place = importlib.import_module(function.module)
            for holder in holders:
                place = getattr(place, holder)
            own = attrgetter(name)(place)
            is_known = source_digest(own) == function.digest and all(
                source_digest(pkgutil.resolve_name(name)) == digest
                for name, digest in function.stands_on.items()
            )
        except (ImportError, AttributeError):
            continue
        if not is_known:
            continue
        kept = inspect.getattr_static(place, name)
        faster = function.make(own)
        is_static = isinstance(kept, staticmethod)
        setattr(place, name, staticmethod(faster) if is_static else faster)
        replaced.append(f"{function.module}.{function.name}")
    return replaced
