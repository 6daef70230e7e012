"""What `tasks` and `show` print: the list of tasks, one task, one item. Pure."""

from __future__ import annotations

import dataclasses
import itertools
import json
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rg_env.errors import on_one_line, visible
from rg_env.tasks.library import TaskInfo
from rg_env.tasks.scales import Scale

ASKS: Mapping[str, str] = json.loads(
    Path(__file__).with_name("task_asks.json").read_text(encoding="utf-8")
)
"""Task to what it asks for, in at most 64 characters."""

ROW = "{:<27} {:>7} {:>8} {:>8} {:>8}"
HEADINGS = ("task", "steps ", "default", "ms at 0", "ms at 1")
LEGEND = """\
steps    number of steps, evenly spaced from level 0 to level 1
default  the level of the library's defaults; off if there is none
ms at    median time to make an item, at level 0 and at level 1,
         """


@dataclasses.dataclass(frozen=True)
class TaskFacts:
    """What is known of one task; without a scale, the reason says why."""

    info: TaskInfo
    scale: Scale | None
    no_scale_reason: str = ""


def _cost(cost: float | None) -> str:
    if cost is None:
        return ""
    digits = 2 if cost < 1 else 1 if cost < 100 else 0
    return f"{cost:.{digits}f}"


def _asks(info: TaskInfo) -> str:
    return ASKS.get(info.name) or on_one_line(info.asks, 64)


# -- all tasks -------------------------------------------------------------------------


def _by_category(tasks: Sequence[TaskFacts]) -> Iterator[tuple[str, list[TaskFacts]]]:
    ordered = sorted(tasks, key=lambda facts: (facts.info.category, facts.info.name))
    for category, members in itertools.groupby(ordered, lambda f: f.info.category):
        yield category, list(members)


def _cells(facts: TaskFacts) -> list[str]:
    name, scale = f"  {facts.info.name}", facts.scale
    if scale is None:
        return [name, "none ", *[""] * 3]
    return [
        name,
        f"{len(scale.steps)}{'*' if scale.is_dead else ' '}",
        "off" if scale.default_level is None else f"{scale.default_level:.2f}",
        *(_cost(scale.steps[number].item_ms) for number in (0, -1)),
    ]


def _counts(tasks: Sequence[TaskFacts]) -> dict[str, int]:
    scales = [facts.scale for facts in tasks if facts.scale is not None]
    return {
        "tasks": len(tasks),
        "with_scale": len(scales),
        "steps": sum(len(scale.steps) for scale in scales),
        "levels": sum(len(s.levels) for scale in scales for s in scale.steps),
        "skipped_levels": sum(len(scale.skipped) for scale in scales),
    }


def listing(tasks: Sequence[TaskFacts], cost_from: str) -> str:
    """Return the tasks by category; `cost_from` says where the times are from."""
    lines = [ROW.format(*HEADINGS), "-" * 62]
    for category, members in _by_category(tasks):
        lines.append(f"{category} ({len(members)})")
        for facts in members:
            lines.append(ROW.format(*_cells(facts)).rstrip())
            lines += [f"    {text}" for text in [_asks(facts.info)] if text]
    lines.append(f"{LEGEND}{cost_from}")
    named = {
        "* The items do not change with the level": [
            f.info.name for f in tasks if f.scale is not None and f.scale.is_dead
        ],
        "Without a scale": [f.info.name for f in tasks if f.scale is None],
    }
    for text, names in named.items():
        if names:
            lines.append(textwrap.fill(f"{text}: {', '.join(names)}.", 80))
    lines.append(
        "`tasks NAME` shows every step of one task, and why levels are skipped."
    )
    total = (
        "{tasks} tasks, {with_scale} with a scale: {steps} steps of {levels} levels,"
        " skipped: {skipped_levels}."
    )
    return "\n".join([*lines, total.format(**_counts(tasks))])


def as_json(tasks: Sequence[TaskFacts], version: str) -> dict[str, Any]:
    """Return everything about the tasks as plain values, by category and name."""
    ordered = [facts for _, members in _by_category(tasks) for facts in members]
    each = [*map(_task_json, ordered)]
    return {"reasoning_gym": version, "summary": _counts(tasks), "tasks": each}


def _task_json(facts: TaskFacts) -> dict[str, Any]:
    info, scale = facts.info, facts.scale
    task: dict[str, Any] = {
        "task": info.name,
        "category": info.category,
        "asks_for": _asks(info) or None,
        "has_curriculum": info.has_curriculum,
        "parameters": dict(info.parameters),
    }
    if scale is None:
        return {**task, "scale": None, "no_scale_reason": facts.no_scale_reason}
    steps = [
        {
            "level": scale.level_of(number),
            "rg_levels": list(step.levels),
            "params": dict(step.params),
            "item_ms": step.item_ms,
        }
        for number, step in enumerate(scale.steps)
    ]
    skipped = [{"rg_level": s.level, "reason": s.reason} for s in scale.skipped]
    task["scale"] = {
        "default_level": scale.default_level,
        "items_change": not scale.is_dead,
        "note": scale.note,
        "steps": steps,
        "skipped": skipped,
    }
    return task


# -- one task --------------------------------------------------------------------------


def details(facts: TaskFacts, version: str, cost_from: str) -> str:
    """Return everything about one task; `cost_from` says where the times are from."""
    task = _task_json(facts)
    parameters = task.pop("parameters")
    scale = task.pop("scale") or {}
    steps, skipped = scale.pop("steps", []), scale.pop("skipped", [])
    result = lines({name: of for name, of in {**task, **scale}.items() if of != ""})
    result += [f"skipped: level {s['rg_level']}: {s['reason']}" for s in skipped]
    if steps:
        result.append(f"steps: level, levels of the library, ms an item {cost_from}:")
    for step in steps:
        values = [
            f"{k}={step['params'][k]!r}" for k in parameters if k in step["params"]
        ]
        place = f"{step['level']:.2f}  {', '.join(map(str, step['rg_levels'])):>5}"
        params_text = visible(", ".join(values)) or "(the library's defaults)"
        result.append(f"  {place}  {_cost(step['item_ms']):>5}  {params_text}")
    result.append(f"dataset parameters and their defaults in reasoning-gym {version}:")
    defaults = [f"  {name} = {visible(of)}" for name, of in parameters.items()]
    return "\n".join([*result, *(defaults or ["  (none)"])])


# -- one item --------------------------------------------------------------------------

Values = dict[str, Any]
"""Names to what JSON can hold, in the order in which they are printed."""

BLOCKS = ("question", "solution", "answer", "system", "user")
"""Foreign text, and the messages of a prompt by their roles."""

JSON_ONLY = ("messages", "gold_answer", "metadata")
"""Left out of the text: `solution` is the gold answer, or a right one of many."""

MISSING = {
    "level": "none given: the library's default parameters",
    "solution": "the library keeps none: whatever its scorer accepts is right",
    "answer": "none was found",
}
"""What the text says of a value that is None; any other is left out."""


def lines(values: Values) -> list[str]:
    """Return an item or an answer as text; foreign text is indented and unwrapped."""
    result = []
    for name, value in values.items():
        if name in JSON_ONLY or (value is None and name not in MISSING):
            continue
        if value is None:
            result.append(f"{name}: {MISSING[name]}")
        elif name in BLOCKS and value:
            result += [f"{name}:", textwrap.indent(visible(value), "  ")]
        else:
            is_text = isinstance(value, str) and value
            text = value if is_text else json.dumps(value, default=str)
            result.append(f"{name}: {visible(text)}")
    return result


def message_lines(messages: Sequence[Mapping[str, str]]) -> list[str]:
    """Return the messages of a prompt, each below its role."""
    return [line for m in messages for line in lines({m["role"]: m["content"]})]
