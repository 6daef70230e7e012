"""The answers in the completions of a group, found without holding up an event loop."""

from __future__ import annotations

from collections.abc import Sequence

from rg_env.off_loop import off_loop
from rg_env.scoring.extraction import Extraction, extract_answer

FEW_CHARS, FEW_TAGS = 2**18, 2**9
"""A group with so much text and so many tags is searched in place, in half a
millisecond."""


def extract_answers(
    texts: Sequence[str], thinking_open: Sequence[bool]
) -> list[Extraction]:
    """Return the answer of each completion, or why there is none; see `extract_answer`.

    Args:
        texts: The completions, shape (G,).
        thinking_open: Whether the prompt of each has ended with `<think>`, shape (G,).
    """
    return [
        extract_answer(text, thinking_open=is_open)
        for text, is_open in zip(texts, thinking_open, strict=True)
    ]


async def extract_in_time(
    texts: Sequence[str], thinking_open: Sequence[bool]
) -> list[Extraction]:
    """As `extract_answers`, in a thread where it takes long."""
    is_short = sum(map(len, texts)) <= FEW_CHARS
    if is_short and sum(text.count("<") for text in texts) <= FEW_TAGS:
        return extract_answers(texts, thinking_open)
    return await off_loop(extract_answers, texts, thinking_open)
