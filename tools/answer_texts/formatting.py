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


_FORMS = r"""
    X | **X** | *X* | ***X*** | __X__ | `X` | ``X`` | **`X`** |

    ```⏎X⏎``` | ```X``` | ```text⏎X⏎``` | ```plaintext⏎X⏎``` | ```json⏎X⏎``` |
    ```python⏎X⏎``` | ````⏎X⏎```` | ~~~⏎X⏎~~~ | Answer:⏎```⏎X⏎``` |
    **Answer:**⏎⏎```text⏎X⏎``` |

    $X$ | $$X$$ | $$⏎X⏎$$ | \(X\) | \( X \) | \[X\] | \[⏎X⏎\] | \boxed{X} |
    $\boxed{X}$ | $$\boxed{X}$$ | \[⏎\boxed{X}⏎\] | \(\boxed{X}\) | \boxed{\text{X}} |
    $\boxed{\textbf{X}}$ | \text{X} | $\text{X}$ | $\mathbf{X}$ | $\mathrm{X}$ |
    **\boxed{X}** |

    "X" | 'X' | “X” | «X» | „X“ | **"X"** | "X". |
    X</s> | X<|im_end|> | X<|endoftext|> | <code>X</code> |
    X. | **X**. | **X.** | `X`. | $X$. | \boxed{X}. |

    The final answer is $\boxed{X}$. | Therefore, the answer is \(\boxed{X}\). |
    Answer: X | answer: X | ANSWER: X | Answer: **X** | **Answer:** X | **Answer: X** |
    **Answer**: X | **Answer:** $\boxed{X}$. | Answer:⏎X | Final answer: X |
    Final Answer: X | Final answer is: X | **Final Answer:**⏎X |
    **Final Answer**⏎⏎\boxed{X} | ### Answer⏎⏎X | ### Final Answer:⏎X | Solution: X |
    Result: X | Output:⏎X | Here is the answer:⏎⏎X | The answer is:⏎⏎X
"""

_FORMS_OF_ONE_LINE = """
    * X | • X | ### X | <b>X</b> | <p>X</p> |
    The answer is X | The answer is X. | The answer is: X | The answer is **X**. |
    The answer is `X`. | The answer is $X$. | The answer is "X". |
    The correct answer is **X**. | The final answer is X. |
    Final Answer: The final answer is $X$. I hope it is correct. |
    So the answer is X. | My answer is X. | The result is X. | Answer: X. | Answer = X
"""
"""Forms that no answer of several lines has."""

FORMATTING: Mapping[str, Formatting] = {
    **{form: _written(form) for form in forms_of(_FORMS)},
    **{f: _written(f, of_one_line=True) for f in forms_of(_FORMS_OF_ONE_LINE)},
    "- X": _bullet,
    "\u2018X\u2019": _written("\u2018X\u2019"),
    "zero-width space before": _written("\u200bX"),
    "zero-width space behind": _written("X\u200b"),
    "byte order mark": _written("\ufeffX"),
    "no-break spaces around": _written("\u00a0X\u00a0"),
    "no-break spaces inside": _spaced,
}
"""Each by its name."""
