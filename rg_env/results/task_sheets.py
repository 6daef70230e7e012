"""What `tasks` and `show` print: the list of tasks, one task, one item. Pure."""

from __future__ import annotations

import dataclasses
import itertools
import json
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from rg_env.errors import on_one_line, visible
from rg_env.library.registry import TaskInfo
from rg_env.library.scales import Scale
from rg_env.results.terminal import PIPE_WIDTH

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
    task["scale"] = {
        "default_level": scale.default_level,
        "items_change": not scale.is_dead,
        "note": scale.note,
        "steps": steps,
        "skipped": [{"rg_level": s.level, "reason": s.reason} for s in scale.skipped],
    }
    return task


def details(facts: TaskFacts) -> str:
    """Return everything about one task."""
    task = json.loads(json.dumps(_task_json(facts), default=str))
    how: Any = {"sort_keys": False, "default_flow_style": None, "width": PIPE_WIDTH}
    return str(yaml.safe_dump(task, **how)).rstrip()


# -- one item --------------------------------------------------------------------------

Values = dict[str, Any]
"""Names to what JSON can hold, in the order in which they are printed."""

BLOCKS = ("question", "solution", "answer")
"""Foreign text."""


def lines(values: Values) -> list[str]:
    """Return what is known of an item or an answer; foreign text is indented."""
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
