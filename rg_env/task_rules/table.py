"""Collects the rules of every task from `rows.py` and the modules of the tasks."""

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
    "algebra",
    "algorithmic",
    "arc",
    "arithmetic",
    "code",
    "cognition",
    "games",
    "geometry",
    "graphs",
    "induction",
    "logic",
    "probability",
)
"""Categories of reasoning-gym with a module, or a folder of modules, here."""


def _modules() -> Iterator[ModuleType]:
    for category in CATEGORIES:
        outer = importlib.import_module(f"rg_env.task_rules.{category}")
        inner = pkgutil.iter_modules(getattr(outer, "__path__", ()))
        names = [f"{outer.__name__}.{module.name}" for module in inner]
        yield from map(importlib.import_module, names) if names else [outer]


def _collect_rules() -> dict[str, TaskRules]:
    table: dict[str, TaskRules] = {}
    values = (value for module in _modules() for value in vars(module).values())
    for rules in (*ROWS, *(value for value in values if isinstance(value, TaskRules))):
        if rules.task in table:
            raise ValueError(f"the task {rules.task} has two rows")
        table[rules.task] = rules
    return table


TABLE: dict[str, TaskRules] = _collect_rules()
"""Task to its rules; not every task has a row. A worker adds a user's own tasks."""

NO_RULES = TaskRules("")

RENAMED = {"number_sequences": "number_sequence", "syllogisms": "syllogism"}
"""Name of a task in the library's multilingual version to its usual name."""


def rules_of(task: str) -> TaskRules:
    """Return the rules of a task; empty rules if it has no row."""
    return TABLE.get(RENAMED.get(task, task), NO_RULES)


def source_task(task: str, entry: Entry) -> str:
    """Return the task that made an entry: `task`, or its source in a mixture."""
    metadata = entry.get("metadata")
    if task == MIXTURE and isinstance(metadata, Mapping):
        return str(metadata.get("source_dataset", task))
    return task


ANSWER_RUNNING_TASKS = tuple(
    task for task, rules in TABLE.items() if rules.guard and rules.guard.evaluates
)
"""Tasks with a scorer that runs the text of an answer."""

CODE_RUNNING_TASKS = (
    *ANSWER_RUNNING_TASKS,
    *(task for task, rules in TABLE.items() if rules.fix and rules.fix.runs_programs),
)
"""Tasks with a scorer that runs an answer, or a program on the answer."""


def rejection(task: str, answer: str, gold: str | None = None) -> str | None:
    """Return why the guard of a task rejects an answer, None if it is admitted."""
    guard = rules_of(task).guard
    return None if guard is None else guard.why_not(answer, gold)


def fault_of(
    task: str, entry: Entry, *, checked: bool = True, published: bool = False
) -> str | None:
    """Return the fault of an entry, None if no check finds one.

    No check finds a fault in an entry of another shape, as of another version of the
    library. If `checked` is false, only the checks with `always` are made. If
    `published` is true, an entry with a right reference answer has no fault.
    """
    for check in rules_of(task).item_checks:
        if not (checked or check.always) or (published and check.answer_stands):
            continue
        with contextlib.suppress(AttributeError, LookupError, TypeError, ValueError):
            if check.is_faulty(entry):
                return check.fault
    return None


def solution(task: str, entry: Entry) -> str | None:
    """Return an answer that scores 1.0, None if the entry has none.

    Example:
        >>> solution("gcd", {"answer": "12"})
        '12'
    """
    solve = rules_of(source_task(task, entry)).solution
    answer = solve(entry) if solve else entry["answer"]
    if answer is None or isinstance(answer, str):
        return answer
    return json.dumps(answer)


def interpretations(task: str, entry: Entry) -> list[Entry]:
    """Return an entry, and one for each other answer that its question admits."""
    others = rules_of(task).other_interpretations
    entries = [entry]
    # An entry of another version of the library may have another shape.
    with contextlib.suppress(AttributeError, LookupError, TypeError, ValueError):
        for other in others(entry) if others else ():
            if other["answer"] not in ("", *(known["answer"] for known in entries)):
                entries.append(other)
    return entries


def no_scale_reason(task: str) -> str:
    """Return why a task has no scale."""
    reason = rules_of(task).fixed_level
    return reason or "the installed library has no curriculum for it"
