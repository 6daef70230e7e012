"""What another spelling of an answer is.

Where a question leaves open how its answer is written, people and language models
write it in several ways: `Yes` and `yes`, `U-U-L` and `UUL`, `5.0` and `5`. A task's
spelling is the function that writes an answer as the task's scorer reads it.

It changes no meaning: what it returns says the same to everybody who has read the
question, and what it does not know it returns as it stands. It never chooses between
two readings, and never computes what the question asks for. It looks at the text a
bounded number of times, in time linear in the text, and evaluates nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Spelling = Callable[[str, Mapping[str, Any]], str]
"""(answer without its dress, entry) to the answer as the task's scorer reads it."""

SHORT = 400
"""Characters of an answer that is one number or a sentence, with room to spare."""


def of_short_text(spelling: Spelling) -> Spelling:
    """Return a spelling that leaves long answers alone and sees no run of spaces.

    Its patterns may then look for spaces in more than one place, at no cost.
    """

    def spelled(answer: str, entry: Mapping[str, Any]) -> str:
        if len(answer) > SHORT:
            return answer
        text = " ".join(answer.split())
        found = spelling(text, entry)
        return answer if found == text else found

    return spelled
