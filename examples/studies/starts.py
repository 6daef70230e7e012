"""Warm starts that several cells of a study share."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

from examples.studies.cells import FOLDER
from examples.train_small.policy import Policy


def kept(
    name: str,
    make: Callable[[], Policy],
    load: Callable[[Path], Policy] = Policy.load,
) -> Policy:
    """Return the policy of a name, which is made once."""
    path = FOLDER / "starts" / f"{name}.pt"
    if not path.is_file():
        policy = make()
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(f".{random.SystemRandom().getrandbits(32)}")
        policy.save(part)
        part.replace(path)
    return load(path)
