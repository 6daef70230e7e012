"""The rules of every task, collected from `rows.py` and from the tasks' modules."""

from __future__ import annotations

import contextlib
import importlib
import json
import pkgutil
from collections.abc import Iterator, Mapping
from types import ModuleType

from rg_env.task_rules.rows import ROWS
from rg_env.task_rules.rules import MIXTURE, Entry, TaskRules

CATEGORIES = (
    *("algebra", "algorithmic", "arc", "arithmetic", "code", "cognition", "games"),
    *("geometry", "graphs", "induction", "logic", "probability"),
)
"""Categories of reasoning-gym with tasks whose rules need functions: a module each, or
a folder of modules."""


def _modules() -> Iterator[ModuleType]:
    for category in CATEGORIES:
        outer = importlib.import_module(f"rg_env.task_rules.{category}")
        inner = pkgutil.iter_modules(getattr(outer, "__path__", ()))
        names = [f"{outer.__name__}.{module.name}" for module in inner]
        yield from map(importlib.import_module, names) if names else [outer]


def _collected() -> dict[str, TaskRules]:
    table: dict[str, TaskRules] = {}
    values = (value for module in _modules() for value in vars(module).values())
    for rules in (*ROWS, *(value for value in values if isinstance(value, TaskRules))):
        if rules.task in table:
            raise ValueError(f"two rows say something of the task {rules.task}")
        table[rules.task] = rules
    return table


TABLE: dict[str, TaskRules] = _collected()
"""Task to its rules; a task that nothing is known of has no row. A worker adds those
of a user's own tasks."""


NO_RULES = TaskRules("")


def rules_of(task: str) -> TaskRules:
    """Return the rules of a task; empty ones where nothing is known of it."""
    return TABLE.get(task, NO_RULES)


def source_task(task: str, entry: Entry) -> str:
    """Return the task whose rules the answers to an entry have.

    It is the entry's task, except in a mixture, whose entries name their source.
    """
    metadata = entry.get("metadata")
    if task == MIXTURE and isinstance(metadata, Mapping):
        return str(metadata.get("source_dataset", task))
    return task


EVALUATED = tuple(
    task for task, rules in TABLE.items() if rules.guard and rules.guard.evaluates
)
"""Tasks whose scorers run the text of an answer."""

RUNNING = (
    *EVALUATED,
    *(task for task, rules in TABLE.items() if rules.fix and rules.fix.runs_programs),
)
"""Tasks whose scorers run an answer, or a program on it."""


def rejection(task: str, answer: str, gold: str | None = None) -> str | None:
    """Say why an answer must not reach the scorer of its task, the one of its entry."""
    guard = rules_of(task).guard
    return None if guard is None else guard.why_not(answer, gold)


def fault_of(
    task: str, entry: Entry, *, checked: bool = True, published: bool = False
) -> str | None:
    """Return what is wrong with an entry, None where nothing was found.

    Nothing is found in one that cannot be read, because the library is another version.
    Unless `checked`, only those checks are made that are made always. An item of a
    published evaluation is used wherever its answer stands.
    """
    for check in rules_of(task).item_checks:
        if not (checked or check.always) or (published and check.answer_stands):
            continue
        with contextlib.suppress(AttributeError, LookupError, TypeError, ValueError):
            if check.is_faulty(entry):
                return check.fault
    return None


def solution(task: str, entry: Entry) -> str | None:
    """Return an answer that scores 1.0, None where the entry holds none."""
    solve = rules_of(source_task(task, entry)).solution
    answer = solve(entry) if solve else entry["answer"]
    if answer is None or isinstance(answer, str):
        return answer
    return json.dumps(answer)


def readings(task: str, entry: Entry) -> list[Entry]:
    """Return an entry, and those of other answers that its question admits."""
    read, entries = rules_of(task).other_readings, [entry]
    # As with checks, what cannot be read is of another version of the library.
    with contextlib.suppress(AttributeError, LookupError, TypeError, ValueError):
        for other in read(entry) if read else ():
            if other["answer"] not in ("", *(known["answer"] for known in entries)):
                entries.append(other)
    return entries


def no_scale_reason(task: str) -> str:
    """Return why a task has no scale."""
    reason = rules_of(task).fixed_level
    return reason or "the installed library has no curriculum for it"
