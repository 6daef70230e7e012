r"""The right answer, formatted as language models write it, as in `**Answer:** $5$`.

Each formatting is a form with X in the place of the answer and ⏎ for the end of a line.
It is a pure function of the answer, None where nobody would write so: a heading of many
lines, a second period behind a sentence.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

Formatting = Callable[[str], "str | None"]

_ENDS = (".", "!", "?", ":", ";", ",")


def forms_of(text: str) -> list[str]:
    """Return the forms that ` | ` separates."""
    parts = re.split(r"\s+\|\s+", text.strip())
    return [part.replace("⏎", "\n") for part in parts if part]


def _written(form: str, *, of_one_line: bool = False) -> Formatting:
    is_latex = "$" in form or "\\" in form
    has_period = re.search(r"X\S*\.", form) is not None

    def write(right: str) -> str | None:
        if of_one_line and "\n" in right:
            return None
        if has_period and right.endswith(_ENDS):
            return None
        # An answer that is LaTeX already loses its own dollars.
        return form.replace("X", right.strip("$") if is_latex else right)

    return write


def _bullet(right: str) -> str | None:
    """Put a dash before a word; before a number or a formula it is a minus."""
    is_word = re.match(r"[^\W\d_]{2}[^\d()*/^+=\n]*\Z", right)
    return f"- {right}" if is_word else None


def _spaced(right: str) -> str | None:
    """Put no-break spaces where spaces are."""
    return right.replace(" ", "\u00a0") if " " in right else None


_FORMS: Mapping[str, str] = {
    "as it stands": "X",
    "marks of Markdown": "**X** | *X* | ***X*** | __X__ | `X` | ``X`` | **`X`**",
    "fences": """
        ```⏎X⏎``` | ```X``` | ```text⏎X⏎``` | ```plaintext⏎X⏎``` | ```json⏎X⏎``` |
        ```python⏎X⏎``` | ````⏎X⏎```` | ~~~⏎X⏎~~~ | Answer:⏎```⏎X⏎``` |
        **Answer:**⏎⏎```text⏎X⏎```
    """,
    "LaTeX": r"""
        $X$ | $$X$$ | $$⏎X⏎$$ | \(X\) | \( X \) | \[X\] | \[⏎X⏎\] | \boxed{X} |
        $\boxed{X}$ | $$\boxed{X}$$ | \[⏎\boxed{X}⏎\] | \(\boxed{X}\) |
        \boxed{\text{X}} | $\boxed{\textbf{X}}$ | \text{X} | $\text{X}$ |
        $\mathbf{X}$ | $\mathrm{X}$ | **\boxed{X}**
    """,
    "quotes": """
        "X" | 'X' | \u201cX\u201d | \u2018X\u2019 | \u00abX\u00bb | \u201eX\u201c |
        **"X"** | "X".
    """,
    "tokens and tags": "X</s> | X<|im_end|> | X<|endoftext|> | <code>X</code>",
    "a period": r"X. | **X**. | **X.** | `X`. | $X$. | \boxed{X}.",
    "words before": r"""
        The final answer is $\boxed{X}$. | Therefore, the answer is \(\boxed{X}\). |
        Answer: X | answer: X | ANSWER: X | Answer: **X** | **Answer:** X |
        **Answer: X** | **Answer**: X | **Answer:** $\boxed{X}$. | Answer:⏎X |
        Final answer: X | Final Answer: X | Final answer is: X | **Final Answer:**⏎X |
        **Final Answer**⏎⏎\boxed{X} | ### Answer⏎⏎X | ### Final Answer:⏎X |
        Solution: X | Result: X | Output:⏎X | Here is the answer:⏎⏎X |
        The answer is:⏎⏎X
    """,
}
"""Kind of formatting to its forms."""

_FORMS_OF_ONE_LINE: Mapping[str, str] = {
    "marks of Markdown": "* X | \u2022 X | ### X",
    "tokens and tags": "<b>X</b> | <p>X</p>",
    "words before": """
        The answer is X | The answer is X. | The answer is: X | The answer is **X**. |
        The answer is `X`. | The answer is $X$. | The answer is "X". |
        The correct answer is **X**. | The final answer is X. |
        Final Answer: The final answer is $X$. I hope it is correct. |
        So the answer is X. | My answer is X. | The result is X. | Answer: X. |
        Answer = X
    """,
}
"""Kind of formatting to forms that no answer of several lines has."""


def _of_kind(kind: str) -> dict[str, Formatting]:
    short = forms_of(_FORMS_OF_ONE_LINE.get(kind, ""))
    return {
        form: _written(form, of_one_line=form in short)
        for form in (*forms_of(_FORMS[kind]), *short)
    }


FORMATTING: Mapping[str, Mapping[str, Formatting]] = {
    **{kind: _of_kind(kind) for kind in _FORMS},
    "a bullet, and what cannot be seen": {
        "- X": _bullet,
        "zero-width space before": _written("\u200bX"),
        "zero-width space behind": _written("X\u200b"),
        "byte order mark": _written("\ufeffX"),
        "no-break spaces around": _written("\u00a0X\u00a0"),
        "no-break spaces inside": _spaced,
    },
}
"""Kind of formatting to each by its name."""

GENERAL: Mapping[str, Formatting] = {
    name: one for kind in FORMATTING.values() for name, one in kind.items()
}
