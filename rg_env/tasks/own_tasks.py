"""Which tasks are a user's own, in the processes that make and score items.

They are loaded before any worker is forked (task_modules.py), and nobody knows them
anywhere else. What they raise is blamed on them, with the line.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import math
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from rg_env.errors import shown
from rg_env.task_rules.table import rules_of
from rg_env.tasks.library_import import PACKAGE, said_of

CATEGORY = "own"

TASKS: set[str] = set()
"""A user's own tasks, as far as this process was told of them."""

DIGESTS: dict[str, str] = {}
"""Module to the digest of its source."""

ROUNDING = 1e-6
"""By so much a sum of parts may miss 0 or 1."""


def is_own(task: str) -> bool:
    """Say whether a task is a user's own, in a process that was told of them."""
    return task in TASKS


def names() -> list[str]:
    """Return a user's own tasks, sorted."""
    return sorted(TASKS)


class OwnTaskError(RuntimeError):
    """What a user's task has raised, in a few words, with the place in their file."""


def cause_of(error: BaseException) -> str:
    """Return an exception in a few words, with the place in a user's file."""
    files = (Path(__file__).parent, sys.modules[PACKAGE].__file__, importlib.__file__)
    not_theirs = ("<", *(f"{Path(file or '').parent}/" for file in files))
    frames = [
        (os.path.split(frame.filename), frame.lineno)
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith(not_theirs)
    ]
    # A syntax error names file and line itself.
    if not frames or isinstance(error, SyntaxError):
        return said_of(error)
    (folder, _), _ = frames[0]
    file, line = [(name, at) for (of, name), at in frames if of == folder][-1]
    return f"{said_of(error)}, at {file}:{line}"


@contextlib.contextmanager
def blaming(*passing: type[Exception]) -> Iterator[None]:
    """Turn what a user's code raises inside into `OwnTaskError`, with its place.

    `passing` is what ours raises there.
    """
    try:
        yield
    except (Exception, SystemExit) as error:
        if isinstance(error, (MemoryError, *passing)):
            raise
        raise OwnTaskError(cause_of(error)) from error


def check_entry(entry: object) -> None:
    """Check an entry of a user's data set.

    Raises:
        TypeError: It is not what a data set makes.
        UnicodeEncodeError: A text in it has a lone surrogate, which no tokenizer takes.
    """
    found = entry if isinstance(entry, dict) else {}
    if not isinstance(found.get("question"), str) or "answer" not in found:
        raise TypeError(
            f"an entry is a dict with question and answer, found {shown(entry)}"
        )
    json.dumps(entry, ensure_ascii=False, skipkeys=True, default=str).encode()


def checked_scorer(scorer: Callable[..., Any]) -> Callable[..., Any]:
    """Return a user's `score_answer` that raises TypeError where it gives no score."""

    def score(answer: Any, entry: Mapping[str, Any]) -> Any:
        value, number = scorer(answer, entry), math.nan
        with contextlib.suppress(TypeError, ValueError, OverflowError):
            number = math.nan if isinstance(value, str) else float(value)
        if not -ROUNDING <= number <= 1 + ROUNDING:
            raise _returned(scorer, value, "a number from 0 to 1")
        return value

    return score


def _returned(function: Any, value: object, expected: str) -> TypeError:
    name = getattr(function, "__qualname__", type(function).__name__)
    return TypeError(f"{name} returned {shown(value)}; expected {expected}")


def reading_fault(
    task: str, gold: str, entry: Mapping[str, Any], score: Callable[[str], float]
) -> str:
    """Return how the guard or the notation of a task misreads its reference answer.

    Both are passed over where an answer is the reference answer. Returns "" if they
    read it right; raises whatever the user's functions raise.
    """
    guard, notation = rules_of(task).guard, rules_of(task).notation
    if guard is not None and (reason := guard.why_not(gold, gold)) is not None:
        return f"the guard rejects it: {reason}"
    if notation is not None:
        written = notation(gold, entry)
        if not isinstance(written, str):
            raise _returned(notation, written, "a text")
        if (value := score(written)) != 1.0:
            return f"the notation makes it {shown(written)}, which scores {value:.2f}"
    return ""
