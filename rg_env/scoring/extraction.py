"""The answer in a completion, or the reason why there is none.

    <think> ... </think> The sum is 5. <answer>5</answer>
    thinking             text          answer

Thinking is what stands between `<think>` and `</think>`, what stands before a
`</think>` that nothing opened (the chat template did), and what follows a `<think>`
that is never closed. In the rest there must be exactly one `<answer>...</answer>`.
If a completion has opened and closed a thinking block itself, the template did not open
one. Another closing tag is then a slip and does not hide an answer before it.

Some models think in tags of their own, whatever the prompt says: `<thinking>`,
`[THINK]`, the channels of gpt-oss. What one of these opens, its own closing tag ends.

One pass over the tags of the text: time is linear in its length, whatever it holds.
The tags are written as here and have no attributes. Nothing is repaired or guessed.

Source: atropos 296a0bc, _extract_final_answer(); differs: that took the last answer
of the whole text, so that a draft inside the thinking could win or stand alone.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from typing import Literal, get_args

FormatFailure = Literal[
    "no_answer",
    "several_answers",
    "nested_answer",
    "unclosed_answer",
    "stray_tag",
    "unfinished_thinking",
]
FORMAT_FAILURES = frozenset(get_args(FormatFailure))

_END_OF_CHANNEL = "<|end|>"
THINKING = {
    "<think>": "</think>",
    "<thinking>": "</thinking>",
    "[THINK]": "[/THINK]",
    "<|channel|>analysis<|message|>": _END_OF_CHANNEL,
    "<|channel|>commentary<|message|>": _END_OF_CHANNEL,
}
"""What opens the thinking of a model to what closes it."""

_CLOSING = frozenset(THINKING.values())
_TAG = re.compile("|".join(map(re.escape, (*THINKING, *_CLOSING))) + "|</?answer>")


@dataclasses.dataclass(frozen=True)
class Extraction:
    """The result for one completion; exactly one of the two is None.

    Attributes:
        answer: The content of the only answer, stripped; may be empty.
        failure: Why there is no answer.
    """

    answer: str | None
    failure: FormatFailure | None


def _thinking_ends(text: str, thinking_open: bool) -> tuple[int, bool]:
    """Find where thinking that nothing in the text opened ends.

    Returns:
        The position behind the last such `</think>` (0 where there is none), and
        whether the text is still inside the template's thinking at that position.
    """
    end, still_open, has_closed_its_own = 0, thinking_open, False
    closed_by = THINKING["<think>"] if thinking_open else None
    for match in _TAG.finditer(text):
        tag = match.group()
        if closed_by is None and tag in THINKING:
            closed_by = THINKING[tag]
        elif tag == closed_by:
            if still_open:
                end, still_open = match.end(), False
            else:
                has_closed_its_own = True
            closed_by = None
        # `<|end|>` also closes messages of gpt-oss that are no thinking.
        elif closed_by is None and tag in _CLOSING - {_END_OF_CHANNEL}:
            is_slip = has_closed_its_own and not thinking_open
            end = end if is_slip else match.end()
    return end, still_open


def _answer_tags(text: str, start: int) -> Iterator[re.Match[str]]:
    """Yield the tags from `start` that are outside thinking.

    Those are the answer tags, and those of thinking that no answer may contain.
    """
    closed_by: str | None = None
    for match in _TAG.finditer(text, start):
        tag = match.group()
        if closed_by is not None:
            closed_by = None if tag == closed_by else closed_by
        elif tag != _END_OF_CHANNEL:
            closed_by = THINKING.get(tag)
            yield match


def extract_answer(text: str, *, thinking_open: bool = False) -> Extraction:
    """Extract the final answer of a completion.

    Args:
        text: What the model wrote, of any length and content.
        thinking_open: Whether the prompt itself ended with `<think>`.

    Returns:
        The answer, or the reason: `no_answer`, `several_answers`, `nested_answer` (a
        tag inside the answer), `unclosed_answer`, `stray_tag` (a closing tag that
        closes nothing) or `unfinished_thinking` (the thinking never ended and there
        is no answer outside it).
    """
    text = text.replace("<|call|>", _END_OF_CHANNEL)  # ends a call of a tool
    start, still_open = _thinking_ends(text, thinking_open)
    if still_open:
        return Extraction(None, "unfinished_thinking")
    open_at: int | None = None
    answers: list[str] = []
    for match in _answer_tags(text, start):
        tag = match.group()
        if tag == "</answer>":
            if open_at is None:
                return Extraction(None, "stray_tag")
            answers.append(text[open_at : match.start()].strip())
            open_at = None
        elif open_at is not None:
            return Extraction(None, "nested_answer")
        elif tag == "<answer>":
            open_at = match.end()
    if open_at is not None:
        return Extraction(None, "unclosed_answer")
    if len(answers) > 1:
        return Extraction(None, "several_answers")
    if not answers:
        # The last thinking that was opened was not closed: the text is cut off in it.
        unfinished = any(text.rfind(a) > text.rfind(b) for a, b in THINKING.items())
        return Extraction(None, "unfinished_thinking" if unfinished else "no_answer")
    return Extraction(answers[0], None)
