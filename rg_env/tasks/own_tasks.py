"""Which tasks are a user's own, in the processes that make and score items.

They are loaded before any worker is forked (task_modules.py), and nobody knows them
anywhere else. A data set of theirs is built for each item. What they raise is blamed on
them, with the line.
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

NO_FILES = (
    "; a worker reads no file beside a module: read it while the module is imported, or"
    " make a package of the module"
)

_tasks: set[str] = set()
_digests: dict[str, str] = {}


def know(task: str) -> None:
    """Take a registered task for a user's own, from now on and in this process."""
    _tasks.add(task)


def note_digests(digests: Mapping[str, str]) -> None:
    """Keep the digests of the sources of a user's modules, by module."""
    _digests.update(digests)


def is_own(task: str) -> bool:
    """Say whether a task is a user's own, in a process that was told of them."""
    return task in _tasks


def names() -> list[str]:
    """Return a user's own tasks, sorted."""
    return sorted(_tasks)


def digests() -> dict[str, str]:
    """Return the digests of their modules' sources, by module."""
    return dict(_digests)


# -- what they raise -------------------------------------------------------------------


class OwnTaskError(RuntimeError):
    """What a user's task has raised, in a few words, with the place in their file."""


def cause_of(error: BaseException) -> str:
    """Return an exception in a few words, with the place in a user's file."""
    said = said_of(error)
    frames = [
        (os.path.split(frame.filename), frame.lineno)
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith(_not_of_users())
    ]
    # A syntax error names file and line itself.
    if frames and not isinstance(error, SyntaxError):
        (folder, _), _ = frames[0]
        file, line = [(name, at) for (of, name), at in frames if of == folder][-1]
        said += f", at {file}:{line}"
    return said + NO_FILES * isinstance(error, PermissionError)


def _not_of_users() -> tuple[str, ...]:
    """Return what the names of files begin with that are ours, or the library's."""
    files = (Path(__file__).parent, sys.modules[PACKAGE].__file__, importlib.__file__)
    return "<", *(f"{Path(file or '').parent}/" for file in files)


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


# -- their scorers, guards and notations -----------------------------------------------

ROUNDING = 1e-6
"""By so much a sum of parts may miss 0 or 1."""


def checked_scorer(scorer: Callable[..., Any]) -> Callable[..., Any]:
    """Return a user's `score_answer` that raises TypeError where it gives no score."""

    def score(answer: Any, entry: Mapping[str, Any]) -> Any:
        value = scorer(answer, entry)
        try:
            number = math.nan if isinstance(value, str) else float(value)
        except (TypeError, ValueError, OverflowError):
            number = math.nan
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

    Both are passed over where an answer is the reference answer, so that only the same
    answer in other words would show it.

    Args:
        task: A user's own task.
        gold: The reference answer.
        entry: The entry that it belongs to.
        score: Returns the score of a text, in [0, 1].

    Returns:
        The fault in the words of a sentence, "" if there is none.

    Raises:
        Exception: Whatever the user's functions raise.
    """
    guard, notation = rules_of(task).guard, rules_of(task).notation
    if guard is not None:
        reason = guard.why_not(gold, gold)
        if reason is not None:
            return f"the guard rejects it: {reason}"
    if notation is not None:
        written = notation(gold, entry)
        if not isinstance(written, str):
            raise _returned(notation, written, "a text")
        value = score(written)
        if value != 1.0:
            return f"the notation makes it {shown(written)}, which scores {value:.2f}"
    return ""
