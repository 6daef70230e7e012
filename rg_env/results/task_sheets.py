"""What `tasks` and `show` print: the list of tasks, one task, one item. Pure."""

from __future__ import annotations

import dataclasses
import itertools
import json
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rg_env.errors import on_one_line, visible
from rg_env.library.registry import TaskInfo
from rg_env.library.scales import Scale

ASKS: Mapping[str, str] = json.loads(
    Path(__file__).with_name("task_asks.json").read_text(encoding="utf-8")
)
"""Task to what it asks for, in at most 64 characters."""

ROW = "{:<29} {:>6} {:>8} {:>8} {:>8}"
LEGEND = """\
steps    number of steps from level 0 to level 1; * if the items do not change
default  the level of the library's defaults; off if there is none
ms at    median time to make an item, at level 0 and at level 1
`tasks NAME` shows every step of one task, and why levels are skipped."""


@dataclasses.dataclass(frozen=True)
class TaskFacts:
    """What is known of one task; without a scale, the reason says why."""

    info: TaskInfo
    scale: Scale | None
    no_scale_reason: str = ""


def _asks(info: TaskInfo) -> str:
    return ASKS.get(info.name) or on_one_line(info.asks, 64)


def _cost(cost_ms: float | None) -> str:
    return "" if cost_ms is None else f"{cost_ms:.{2 if cost_ms < 1 else 0}f}"


# -- tasks -----------------------------------------------------------------------------


def listing(tasks: Sequence[TaskFacts]) -> str:
    """Return the tasks by category."""
    lines = [ROW.format("task", "steps", "default", "ms at 0", "ms at 1")]
    ordered = sorted(tasks, key=lambda facts: (facts.info.category, facts.info.name))
    for category, of in itertools.groupby(ordered, lambda facts: facts.info.category):
        lines.append(category)
        for facts in of:
            cells, scale = ["none", "", "", ""], facts.scale
            if scale is not None:
                default = scale.default_level
                cells = [
                    f"{len(scale.steps)}{'*' * scale.is_dead}",
                    "off" if default is None else f"{default:.2f}",
                    *(_cost(scale.steps[number].item_ms) for number in (0, -1)),
                ]
            lines.append(ROW.format(f"  {facts.info.name}", *cells).rstrip())
            lines.append(f"    {_asks(facts.info)}")
    scales = [facts.scale for facts in tasks if facts.scale is not None]
    steps = sum(len(scale.steps) for scale in scales)
    total = f"{len(tasks)} tasks, {len(scales)} with a scale, {steps} steps"
    return "\n".join([*lines, LEGEND, total])


def details(facts: TaskFacts) -> str:
    """Return everything about one task."""
    info, scale = facts.info, facts.scale
    values: dict[str, Any]
    values = {"task": info.name, "category": info.category, "asks_for": _asks(info)}
    values["parameters"] = dict(info.parameters)
    if scale is None:
        return "\n".join(lines({**values, "no scale": facts.no_scale_reason}))
    values["default_level"] = scale.default_level
    values["note"] = scale.note or None
    for number, step in enumerate(scale.steps):
        name = f"level {scale.level_of(number):.4g} ({_cost(step.item_ms)} ms)"
        values[name] = dict(step.params)
    values |= {f"skipped level {of.level}": of.reason for of in scale.skipped}
    return "\n".join(lines(values))


# -- one item --------------------------------------------------------------------------

BLOCKS = ("question", "solution", "answer")
"""Foreign text."""


def lines(values: Mapping[str, Any]) -> list[str]:
    """Return names with their values, but None; foreign text is indented."""
    result = []
    for name, value in values.items():
        if value is None:
            continue
        if name in BLOCKS and value:
            result += [f"{name}:", textwrap.indent(visible(value), "  ")]
        else:
            is_text = isinstance(value, str) and value
            text = value if is_text else json.dumps(value, default=str)
            result.append(f"{name}: {visible(text)}")
    return result
