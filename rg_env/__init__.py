"""The tasks and the scores of this environment, for any program.

    from rg_env import Tasks, score

    tasks = Tasks("gcd", "*_sorting", levels="curriculum", seed=0)
    item = next(tasks)
    results = score(item, completions)
    tasks.feedback(item, results)

A name is imported when it is first used. See docs/library.md.
"""

from typing import TYPE_CHECKING

from rg_env import installation

if TYPE_CHECKING:
    from rg_env.run.metrics import GroupLog
    from rg_env.stream.completion_scores import (
        Result,
        outcome_counts,
        score,
        score_async,
    )
    from rg_env.stream.item import Item
    from rg_env.stream.reward_sandbox import guard
    from rg_env.stream.tasks import Tasks

__all__ = [
    "GroupLog",
    "Item",
    "Result",
    "Tasks",
    "guard",
    "outcome_counts",
    "score",
    "score_async",
]

__version__ = installation.VERSION

_MODULES = {
    "GroupLog": "run.metrics",
    "Item": "stream.item",
    "Tasks": "stream.tasks",
    "guard": "stream.reward_sandbox",
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    module_name = _MODULES.get(name, "stream.completion_scores")
    module = import_module(f"{__name__}.{module_name}")
    value = globals()[name] = getattr(module, name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
