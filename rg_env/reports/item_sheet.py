"""One item as `show` prints it, with the score of an answer to it. Pure."""

from __future__ import annotations

import dataclasses
import itertools
import math
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from rg_env.reports.outcome_words import OUTCOMES
from rg_env.reports.terminal_text import on_one_line, visible
from rg_env.scoring.score import Score
from rg_env.tasks.library import TaskInfo
from rg_env.tasks.scales import Scale, Step

WIDTH = 80
LABEL_WIDTH = 12
MAX_ANSWER_SHOWN = 2_000


@dataclasses.dataclass(frozen=True)
class Place:
    """Where on its task's scale an item lies.

    Attributes:
        level: In [0, 1].
        step: The step that made the item, one of the scale's.
        mix: In [0, 1): what decided between the two steps beside the level.
    """

    level: float
    scale: Scale
    step: Step
    mix: float

    @property
    def number(self) -> int:
        """The step's number on the scale, from 1."""
        return 1 + next(i for i, s in enumerate(self.scale.steps) if s is self.step)


@dataclasses.dataclass(frozen=True)
class ItemSheet:
    """An item and how it came about.

    Attributes:
        library_version: Of reasoning-gym.
        seed: The library's seed of the entry.
        params: The parameters that differ from the library's defaults.
        place: Where it lies on the scale; None for the library's defaults.
        solution: An answer that scores 1.0, None where the entry holds none.
        messages: The prompt, system and user message.
    """

    task: TaskInfo
    library_version: str
    seed: int
    params: Mapping[str, Any]
    place: Place | None
    entry: Mapping[str, Any]
    solution: str | None
    messages: Sequence[Mapping[str, str]]


@dataclasses.dataclass(frozen=True)
class AnswerSheet:
    """An answer to an item and its score.

    Attributes:
        source: Where the text came from, e.g. "standard input".
        is_completion: Whether the text was read as a whole completion.
        score: The score of what was extracted, or of the text as it stands.
        reason: Why it was rejected; None where it was not.
    """

    source: str
    is_completion: bool
    score: Score
    reason: str | None


def _labelled(label: str, text: str) -> list[str]:
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=label.ljust(LABEL_WIDTH),
        subsequent_indent=" " * LABEL_WIDTH,
        break_on_hyphens=False,
    )


def _heading(text: str) -> str:
    return f"-- {text} ".ljust(WIDTH, "-")


def _level_text(sheet: ItemSheet) -> str:
    place = sheet.place
    if place is None:
        return "none given: the library's default parameters"
    level, steps = f"{place.level:g}", len(place.scale.steps)
    if steps == 1:
        return f"{level}, on a scale of one step"
    share, lower = math.modf(place.level * (steps - 1))
    if round(share, 9) in (0.0, 1.0):
        return f"{level}, which is step {place.number} of {steps}"
    return (
        f"{level}, between steps {lower + 1:g} and {lower + 2:g} of {steps}:"
        f" {100 * share:.0f} % of the seeds fall on the upper one, and seed"
        f" {sheet.seed} falls on step {place.number}"
    )


def _level_lines(sheet: ItemSheet) -> list[str]:
    lines = _labelled("level", _level_text(sheet))
    if sheet.place is not None and sheet.place.scale.is_dead:
        lines += _labelled("", sheet.place.scale.note)
    return lines


def _parameter_lines(sheet: ItemSheet) -> list[str]:
    if not sheet.params:
        return _labelled("parameters", "all as the library has them")
    width = max(map(len, sheet.params))
    lines = []
    for name, default in sheet.task.parameters.items():
        if name in sheet.params:
            text = f"{name.ljust(width)} = {sheet.params[name]!r}   (default {default})"
            lines.append(on_one_line(text, WIDTH - LABEL_WIDTH))
    if len(sheet.params) < len(sheet.task.parameters):
        lines.append("all others as the library has them")
    labels = itertools.chain(["parameters"], itertools.repeat(""))
    return [
        label.ljust(LABEL_WIDTH) + line
        for label, line in zip(labels, lines, strict=False)
    ]


def _gold_lines(sheet: ItemSheet) -> list[str]:
    if sheet.solution is None:
        return [
            _heading("gold answer"),
            "(the library keeps none: whatever its scorer accepts is right)",
        ]
    from_metadata = sheet.entry["answer"] is None
    title = "one right answer of many" if from_metadata else "gold answer"
    return [_heading(title), visible(sheet.solution) or "(an empty text)"]


def item_lines(sheet: ItemSheet, *, with_prompt: bool) -> list[str]:
    """Return the lines of an item, with the whole messages or the question alone.

    Returns:
        Lines of at most 80 columns, but for those of the question, the answer and the
        messages, which are as they are; a line may hold line breaks.
    """
    task = sheet.task
    name = f"{task.name} ({task.category}), reasoning-gym {sheet.library_version}"
    lines = [
        *_labelled("task", name),
        *_level_lines(sheet),
        *_parameter_lines(sheet),
        *_labelled("seed", f"{sheet.seed}, the library's own"),
    ]
    if with_prompt:
        for message in sheet.messages:
            lines += [_heading(message["role"]), visible(message["content"])]
    else:
        prompt = "this project's system prompt (--prompt prints it), then the question"
        lines += _labelled("prompt", prompt)
        lines += [_heading("question"), visible(sheet.entry["question"])]
    return [*lines, *_gold_lines(sheet)]


def answer_lines(answer: AnswerSheet) -> list[str]:
    """Return the lines of an answer and its score; a line may hold line breaks."""
    score = answer.score
    read = (
        "a whole completion, because it holds tags; what counts is inside <answer>"
        if answer.is_completion
        else "the bare answer"
    )
    lines = [_heading("answer"), *_labelled("read", f"from {answer.source}, as {read}")]
    if score.answer is not None:
        shown = visible(score.answer[:MAX_ANSWER_SHOWN])
        if len(score.answer) > MAX_ANSWER_SHOWN:
            shown += f"\n... ({len(score.answer)} characters in all)"
        joint = "\n" if "\n" in shown else ""
        lines.append("answer".ljust(LABEL_WIDTH) + joint + shown)
    meaning = OUTCOMES[score.outcome]
    if answer.reason is not None:
        meaning += f": {answer.reason}"
    formats = "" if score.formats is None else f" ({score.formats})"
    if score.normalized:
        formats += " normalized"
    lines += _labelled("score", f"{score.value:.3f}{formats}")
    return [*lines, *_labelled("outcome", f"{score.outcome}: {meaning}")]


def _place_json(place: Place | None) -> dict[str, Any] | None:
    if place is None:
        return None
    return {
        "number": place.number,
        "of": len(place.scale.steps),
        "position": place.scale.level_of(place.number - 1),
        "rg_levels": list(place.step.levels),
        "mix": place.mix,
    }


def _answer_json(answer: AnswerSheet | None) -> dict[str, Any] | None:
    if answer is None:
        return None
    score = answer.score
    return {
        "source": answer.source,
        "read_as": "completion" if answer.is_completion else "answer",
        "answer": score.answer,
        "score": score.value,
        "bare": score.formats.bare if score.formats else None,
        "tagged": score.formats.tagged if score.formats else None,
        "normalized": score.normalized,
        "outcome": score.outcome,
        "meaning": OUTCOMES[score.outcome],
        "reason": answer.reason,
    }


def as_json(sheet: ItemSheet, answer: AnswerSheet | None) -> dict[str, Any]:
    """Return an item, and an answer to it where there is one, as plain values."""
    return {
        "task": sheet.task.name,
        "category": sheet.task.category,
        "reasoning_gym": sheet.library_version,
        "level": None if sheet.place is None else sheet.place.level,
        "step": _place_json(sheet.place),
        "params": dict(sheet.params),
        "seed": sheet.seed,
        "messages": [dict(message) for message in sheet.messages],
        "question": sheet.entry["question"],
        "gold_answer": sheet.entry["answer"],
        "solution": sheet.solution,
        "metadata": sheet.entry["metadata"],
        "answer": _answer_json(answer),
    }
