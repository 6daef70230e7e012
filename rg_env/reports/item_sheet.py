"""One item and the score of an answer to it, as `show` prints them. Pure."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from rg_env.errors import visible
from rg_env.scoring.score import OUTCOMES, Score
from rg_env.tasks.scales import Scale, Step

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


def step_values(scale: Scale, step: Step, mix: float) -> Values:
    """Return where on its task's scale an item lies.

    Args:
        scale: Of its task.
        step: One of the scale's, which made the item.
        mix: In [0, 1): decides between the two steps beside a level.
    """
    number = next(i for i, other in enumerate(scale.steps) if other is step)
    return {
        "number": number + 1,
        "of": len(scale.steps),
        "position": scale.level_of(number),
        "rg_levels": list(step.levels),
        "mix": mix,
        **({"note": scale.note} if scale.is_dead else {}),
    }


def answer_values(
    source: str, is_completion: bool, score: Score, reason: str | None
) -> Values:
    """Return an answer and its score.

    Args:
        source: Where the text came from, e.g. "standard input".
        is_completion: Whether the text was read as a whole completion.
        score: The score of what was extracted, or of the text as it stands.
        reason: Why it was rejected; None where it was not.
    """
    return {
        "answer": score.answer,
        "source": source,
        "read_as": "completion" if is_completion else "answer",
        "score": score.value,
        "bare": score.formats.bare if score.formats else None,
        "tagged": score.formats.tagged if score.formats else None,
        "normalized": score.normalized,
        "outcome": score.outcome,
        "meaning": OUTCOMES[score.outcome],
        "reason": reason,
    }


def lines(values: Values) -> list[str]:
    """Return an item or an answer as text: the values that `--json` prints, for people.

    Foreign text is below its name, indented and unwrapped: a grid keeps its form.
    """
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
