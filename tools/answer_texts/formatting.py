r"""The right answer, formatted as language models write it, as in `**Answer:** $5$`.

Each is a pure function of the answer that returns the formatted text, or None where
nobody would write so: a heading of many lines, a second period behind a sentence.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

Formatting = Callable[[str], "str | None"]

_ENDS = (".", "!", "?", ":", ";", ",")


def _around(before: str, after: str) -> Formatting:
    return lambda right: f"{before}{right}{after}"


def _in_latex(before: str, after: str) -> Formatting:
    """Put it into LaTeX, once: one that is LaTeX already loses its own dollars."""
    return lambda right: f"{before}{right.strip('$')}{after}"


def _sentence(before: str, after: str = ".") -> Formatting:
    """Make a sentence of it, whose period it may have already."""

    def written(right: str) -> str | None:
        if "\n" in right:
            return None
        return f"{before}{right}{'' if right.endswith(_ENDS) else after}"

    return written


def _of_one_line(before: str, after: str = "") -> Formatting:
    return lambda right: None if "\n" in right else f"{before}{right}{after}"


def _spaced(right: str) -> str | None:
    """Put no-break spaces where spaces are."""
    return right.replace(" ", "\u00a0") if " " in right else None


def _bullet(right: str) -> str | None:
    """Put a dash before a word; before a number or a formula it is a minus."""
    is_word = re.match(r"[^\W\d_]{2}[^\d()*/^+=\n]*\Z", right)
    return f"- {right}" if is_word else None


def _period_after(before: str, after: str) -> Formatting:
    return lambda right: None if right.endswith(_ENDS) else f"{before}{right}{after}."


FORMATTING: Mapping[str, Mapping[str, Formatting]] = {
    "as it stands": {
        "as it stands": _around("", ""),
    },
    "marks of Markdown": {
        "**X**": _around("**", "**"),
        "*X*": _around("*", "*"),
        "***X***": _around("***", "***"),
        "__X__": _around("__", "__"),
        "`X`": _around("`", "`"),
        "``X``": _around("``", "``"),
        "**`X`**": _around("**`", "`**"),
        "- X": _bullet,
        "* X": _of_one_line("* "),
        "\u2022 X": _of_one_line("\u2022 "),
        "### X": _of_one_line("### "),
    },
    "fences": {
        "fence": _around("```\n", "\n```"),
        "fence on one line": _around("```", "```"),
        "fence text": _around("```text\n", "\n```"),
        "fence plaintext": _around("```plaintext\n", "\n```"),
        "fence json": _around("```json\n", "\n```"),
        "fence python": _around("```python\n", "\n```"),
        "fence of four": _around("````\n", "\n````"),
        "fence of tildes": _around("~~~\n", "\n~~~"),
        "Answer: and fence": _around("Answer:\n```\n", "\n```"),
        "**Answer:** and fence": _around("**Answer:**\n\n```text\n", "\n```"),
    },
    "LaTeX": {
        "$X$": _in_latex("$", "$"),
        "$$X$$": _in_latex("$$", "$$"),
        "$$ on lines": _in_latex("$$\n", "\n$$"),
        r"\(X\)": _in_latex(r"\(", r"\)"),
        r"\( X \)": _in_latex(r"\( ", r" \)"),
        r"\[X\]": _in_latex(r"\[", r"\]"),
        r"\[ on lines": _in_latex("\\[\n", "\n\\]"),
        r"\boxed{X}": _in_latex(r"\boxed{", "}"),
        r"$\boxed{X}$": _in_latex(r"$\boxed{", "}$"),
        r"$$\boxed{X}$$": _in_latex(r"$$\boxed{", "}$$"),
        r"\[\boxed{X}\]": _in_latex("\\[\n\\boxed{", "}\n\\]"),
        r"\(\boxed{X}\)": _in_latex(r"\(\boxed{", r"}\)"),
        r"\boxed{\text{X}}": _in_latex(r"\boxed{\text{", "}}"),
        r"$\boxed{\textbf{X}}$": _in_latex(r"$\boxed{\textbf{", "}}$"),
        r"\text{X}": _in_latex(r"\text{", "}"),
        r"$\text{X}$": _in_latex(r"$\text{", "}$"),
        r"$\mathbf{X}$": _in_latex(r"$\mathbf{", "}$"),
        r"$\mathrm{X}$": _in_latex(r"$\mathrm{", "}$"),
        r"**\boxed{X}**": _in_latex(r"**\boxed{", "}**"),
    },
    "quotes": {
        '"X"': _around('"', '"'),
        "'X'": _around("'", "'"),
        "curly quotes": _around("\u201c", "\u201d"),
        "single curly quotes": _around("\u2018", "\u2019"),
        "guillemets": _around("\u00ab", "\u00bb"),
        "low quotes": _around("\u201e", "\u201c"),
        '**"X"**': _around('**"', '"**'),
        '"X".': _period_after('"', '"'),
    },
    "what cannot be seen": {
        "zero-width space before": _around("\u200b", ""),
        "zero-width space behind": _around("", "\u200b"),
        "byte order mark": _around("\ufeff", ""),
        "no-break spaces around": _around("\u00a0", "\u00a0"),
        "no-break spaces inside": _spaced,
    },
    "tokens and tags": {
        "X</s>": _around("", "</s>"),
        "X<|im_end|>": _around("", "<|im_end|>"),
        "X<|endoftext|>": _around("", "<|endoftext|>"),
        "<b>X</b>": _of_one_line("<b>", "</b>"),
        "<code>X</code>": _around("<code>", "</code>"),
        "<p>X</p>": _of_one_line("<p>", "</p>"),
    },
    "a period": {
        "X.": _period_after("", ""),
        "**X**.": _period_after("**", "**"),
        "**X.**": lambda right: None if right.endswith(_ENDS) else f"**{right}.**",
        "`X`.": _period_after("`", "`"),
        "$X$.": _in_latex("$", "$."),
        r"\boxed{X}.": _in_latex(r"\boxed{", "}."),
    },
    "words before": {
        "The answer is X": _of_one_line("The answer is "),
        "The answer is X.": _sentence("The answer is "),
        "The answer is: X": _of_one_line("The answer is: "),
        "The answer is **X**.": _of_one_line("The answer is **", "**."),
        "The answer is `X`.": _of_one_line("The answer is `", "`."),
        "The answer is $X$.": lambda right: (
            None if "\n" in right else f"The answer is ${right.strip('$')}$."
        ),
        'The answer is "X".': _of_one_line('The answer is "', '".'),
        "The correct answer is **X**.": _of_one_line("The correct answer is **", "**."),
        "The final answer is X.": _sentence("The final answer is "),
        r"The final answer is $\boxed{X}$.": _in_latex(
            r"The final answer is $\boxed{", "}$."
        ),
        r"Therefore, the answer is \(\boxed{X}\).": _in_latex(
            r"Therefore, the answer is \(\boxed{", r"}\)."
        ),
        "Final Answer: The final answer is $X$. I hope it is correct.": lambda right: (
            None
            if "\n" in right
            else f"Final Answer: The final answer is ${right.strip('$')}$."
            " I hope it is correct."
        ),
        "So the answer is X.": _sentence("So the answer is "),
        "My answer is X.": _sentence("My answer is "),
        "The result is X.": _sentence("The result is "),
        "Answer: X": _around("Answer: ", ""),
        "answer: X": _around("answer: ", ""),
        "ANSWER: X": _around("ANSWER: ", ""),
        "Answer: X.": _sentence("Answer: "),
        "Answer = X": _of_one_line("Answer = "),
        "Answer: **X**": _around("Answer: **", "**"),
        "**Answer:** X": _around("**Answer:** ", ""),
        "**Answer: X**": _around("**Answer: ", "**"),
        "**Answer**: X": _around("**Answer**: ", ""),
        r"**Answer:** $\boxed{X}$.": _in_latex(r"**Answer:** $\boxed{", "}$."),
        "Answer: on a line": _around("Answer:\n", ""),
        "Final answer: X": _around("Final answer: ", ""),
        "Final Answer: X": _around("Final Answer: ", ""),
        "Final answer is: X": _around("Final answer is: ", ""),
        "**Final Answer:** on a line": _around("**Final Answer:**\n", ""),
        r"**Final Answer** and \boxed{X}": _in_latex(
            "**Final Answer**\n\n\\boxed{", "}"
        ),
        "### Answer on a line": _around("### Answer\n\n", ""),
        "### Final Answer: on a line": _around("### Final Answer:\n", ""),
        "Solution: X": _around("Solution: ", ""),
        "Result: X": _around("Result: ", ""),
        "Output: on a line": _around("Output:\n", ""),
        "Here is the answer: on a line": _around("Here is the answer:\n\n", ""),
        "The answer is: on a line": _around("The answer is:\n\n", ""),
    },
}
"""Kind of formatting to each by name, in which X is the answer."""

GENERAL: Mapping[str, Formatting] = {
    name: one for kind in FORMATTING.values() for name, one in kind.items()
}
"""Each by its name."""
