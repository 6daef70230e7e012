"""Every task whose answers are written in several ways, by what they are made of."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain

from rg_env.task_rules.reading import (
    spelled_expressions,
    spelled_grids,
    spelled_logic,
    spelled_moves,
    spelled_numbers,
    spelled_objects,
    spelled_paths,
    words,
)
from rg_env.task_rules.rules import Notation as Spelling

_MODULES = (
    spelled_expressions,
    spelled_grids,
    spelled_logic,
    spelled_moves,
    spelled_numbers,
    spelled_objects,
    spelled_paths,
)

SPELLINGS: Mapping[str, Spelling] = dict(
    chain.from_iterable(module.SPELLINGS.items() for module in _MODULES)
) | {"mahjong_puzzle": words.in_any_case, "syllogism": words.as_verdict}
"""Task to its spelling; a task has one at most."""
