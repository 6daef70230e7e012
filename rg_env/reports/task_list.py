"""What `tasks` prints: a table of tasks, one task in full, both as JSON. Pure."""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.box import Box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from rg_env.errors import on_one_line, visible
from rg_env.reports.fitting_table import FittingTable
from rg_env.tasks.library import TaskInfo
from rg_env.tasks.scales import Scale

WIDTH = 80

ASKS: Mapping[str, str] = json.loads(
    Path(__file__).with_name("task_asks.json").read_text(encoding="utf-8")
)
"""Task to what it asks for, in at most 64 characters."""

LONGEST_ASKS = 64

RULED_HEAD = Box("\n".join(["    "] * 2 + [" -- "] + ["    "] * 5), ascii=True)
"""Nothing but a rule of dashes under the headings."""

BARE: dict[str, Any] = {
    "box": RULED_HEAD,
    "show_edge": False,
    "padding": (0, 1, 0, 0),
    "pad_edge": False,
}

COLUMNS = (
    "steps    number of steps, evenly spaced from level 0 to level 1",
    "levels   the levels of the library's curriculum that are used",
    "skipped  the levels that are not used, as they make no usable items",
    "default  the level of the library's defaults; off if there is none",
    "ms at    median time to make an item, at level 0 and at level 1,",
)


@dataclasses.dataclass(frozen=True)
class TaskFacts:
    """What is known of one task.

    Attributes:
        scale: Its scale of difficulty, None where it has none.
        no_scale_reason: Why it has none, "" where it has one.
    """

    info: TaskInfo
    scale: Scale | None
    no_scale_reason: str = ""


def _ranges(numbers: Sequence[int]) -> str:
    """Return ascending numbers as text, neighbours joined: 0-2,4."""
    parts = []
    for _, run in itertools.groupby(enumerate(numbers), lambda pair: pair[1] - pair[0]):
        first, *others = (number for _, number in run)
        parts.append(f"{first}-{others[-1]}" if others else str(first))
    return ",".join(parts)


def _cost(cost: float | None) -> str:
    if cost is None:
        return ""
    digits = 2 if cost < 1 else 1 if cost < 100 else 0
    return f"{cost:.{digits}f}"


def _row(facts: TaskFacts) -> list[str]:
    name, scale = f"  {facts.info.name}", facts.scale
    if scale is None:
        return [name, "none "]
    return [
        name,
        f"{len(scale.steps)}{'*' if scale.is_dead else ' '}",
        _ranges(sorted(level for step in scale.steps for level in step.levels)),
        _ranges([skip.level for skip in scale.skipped]),
        "off" if scale.default_level is None else f"{scale.default_level:.2f}",
        *(_cost(scale.steps[number].item_ms) for number in (0, -1)),
    ]


def by_category(tasks: Sequence[TaskFacts]) -> Iterator[tuple[str, list[TaskFacts]]]:
    """Yield each category with its tasks, both in order of the alphabet."""
    ordered = sorted(tasks, key=lambda facts: (facts.info.category, facts.info.name))
    for category, members in itertools.groupby(ordered, lambda f: f.info.category):
        yield category, list(members)


def table(tasks: Sequence[TaskFacts]) -> FittingTable:
    """Return the tasks as a table of at most 80 columns, by category."""
    result = FittingTable(
        ["task"],
        ["steps", "levels", "skipped", "default", "ms at 0", "ms at 1"],
        ["ms at 0", "ms at 1", "skipped", "default"],
        **BARE,
    )
    # The longest name of the library with its indent: 25 + 2.
    result.columns[0].min_width = 27
    for category, members in by_category(tasks):
        result.add_row(Text(f"{category} ({len(members)})", style="bold"))
        for facts in members:
            result.add_row(*map(Text, _row(facts)))
    return result


def asks(info: TaskInfo) -> str:
    """Return what a task asks for, "" where nothing says it."""
    return ASKS.get(info.name) or on_one_line(info.asks, LONGEST_ASKS)


def with_asks(listing: str, tasks: Sequence[TaskFacts]) -> str:
    """Return a printed table with what a task asks for below its row."""
    by_name = {facts.info.name: asks(facts.info) for facts in tasks}
    lines = []
    for line in listing.splitlines():
        lines.append(line)
        words = line.split()
        if line.startswith("  ") and words and by_name.get(words[0]):
            lines.append(f"    {by_name[words[0]]}")
    return "\n".join(lines)


def numbers(tasks: Sequence[TaskFacts]) -> dict[str, int]:
    """Return how many tasks, scales, steps and levels there are."""
    scales = [facts.scale for facts in tasks if facts.scale is not None]
    return {
        "tasks": len(tasks),
        "with_scale": len(scales),
        "steps": sum(len(scale.steps) for scale in scales),
        "levels": sum(len(s.levels) for scale in scales for s in scale.steps),
        "skipped_levels": sum(len(scale.skipped) for scale in scales),
    }


def legend(tasks: Sequence[TaskFacts], cost_from: str) -> list[str]:
    """Return what stands under the table; `cost_from` says where costs are from."""
    scales = [facts.scale for facts in tasks if facts.scale is not None]
    lines = [*COLUMNS, f"         {cost_from}"]
    dead = [scale.task for scale in scales if scale.is_dead]
    if dead:
        lines.append(f"* The items do not change with the level: {', '.join(dead)}.")
    lacking = [facts.info.name for facts in tasks if facts.scale is None]
    if lacking:
        lines.append(f"Without a scale: {', '.join(lacking)}.")
    found = numbers(tasks)
    total = (
        f"{found['tasks']} tasks, {found['with_scale']} with a scale: {found['steps']}"
        f" steps of {found['levels']} levels, skipped: {found['skipped_levels']}."
    )
    steps = "`tasks NAME` shows every step of one task, and why levels are skipped."
    return [*lines, steps, total]


def _steps_table(info: TaskInfo, scale: Scale) -> FittingTable:
    result = FittingTable([], ["step", "at", "levels", "ms"], **BARE)
    result.add_column("parameters that differ from the library's", overflow="fold")
    for number, step in enumerate(scale.steps):
        ordered = [name for name in info.parameters if name in step.params]
        values = [f"{name}={step.params[name]!r}" for name in ordered]
        result.add_row(
            str(number + 1),
            f"{scale.level_of(number):.2f}",
            _ranges(step.levels),
            _cost(step.item_ms),
            Text(", ".join(values) or "(the library's defaults)"),
        )
    return result


def _scale_text(facts: TaskFacts) -> str:
    scale = facts.scale
    if scale is None:
        return f"none: {facts.no_scale_reason}"
    steps = "1 step" if len(scale.steps) == 1 else f"{len(scale.steps)} steps"
    if scale.default_level is None:
        return steps
    return f"{steps}; the library's defaults are at {scale.default_level:.2f}"


def _skipped_texts(scale: Scale) -> list[str]:
    """Return the skipped levels, those with the same reason together."""
    by_reason: dict[str, list[int]] = {}
    for skip in scale.skipped:
        by_reason.setdefault(skip.reason, []).append(skip.level)
    return [
        f"level{'s' if len(levels) > 1 else ''} {_ranges(levels)}: {reason}"
        for reason, levels in by_reason.items()
    ]


def details(facts: TaskFacts, version: str, cost_from: str) -> list[RenderableType]:
    """Return everything about one task, to be printed one below the other."""
    info, scale = facts.info, facts.scale
    rows = [
        ("task", f"{info.name} ({info.category})"),
        ("asks for", asks(info)),
        ("curriculum", "yes" if info.has_curriculum else "no"),
        ("scale", _scale_text(facts)),
    ]
    if scale is not None:
        rows += [("note", scale.note)] if scale.note else []
        rows += [("skipped", text) for text in _skipped_texts(scale)]
    head = Table.grid(padding=(0, 2, 0, 0))
    for label, text in rows:
        head.add_row(label, Text(text))
    parts: list[RenderableType] = [head]
    if scale is not None:
        steps = _steps_table(info, scale)
        parts += ["", steps, Text(f"ms: median time to make an item, {cost_from}")]
    title = f"dataset parameters and their defaults in reasoning-gym {version}"
    lines = [f"  {name} = {default}" for name, default in info.parameters.items()]
    shown = [Text(visible(line)) for line in lines or ["  (none)"]]
    return [*parts, "", Text(title), *shown]


def _task_json(facts: TaskFacts) -> dict[str, Any]:
    info, scale = facts.info, facts.scale
    task: dict[str, Any] = {
        "task": info.name,
        "category": info.category,
        "asks_for": asks(info) or None,
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


def as_json(tasks: Sequence[TaskFacts], version: str) -> dict[str, Any]:
    """Return everything about the tasks as plain values, by category and name."""
    ordered = [facts for _, members in by_category(tasks) for facts in members]
    summary, each = numbers(tasks), [*map(_task_json, ordered)]
    return {"reasoning_gym": version, "summary": summary, "tasks": each}
