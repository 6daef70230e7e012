"""Which answers must not reach the library's scorer of a task.

Nine scorers of reasoning-gym execute the text of an answer and several more can be
made to run for hours by a few characters. One row below says for each such task what
the danger is, what an honest answer holds, and how a text is read to see whether it is
one. What is refused scores 0; the library would give it no more than its floor, or
would have to run it to know.

Covered: execution of text; exponent towers and huge numbers; names with repetitions;
truth tables over invented variables; comparisons that are more than linear; nesting.
Not covered: how long `sympy.simplify` takes for an ordinary wrong integral, and answers
that are right for the wrong reason, which the scorer's fixes are for. The general limit
on the length of an answer comes before this.

Pure, never raises, and evaluates nothing. All other scorers were read as well: each is
linear or close to it in at most 20,000 characters, so their tasks have no row.

Source: reasoning-gym 0.1.25, `score_answer` of every registered task.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping

from rg_env.task_rules.reading.costly_json import why_not_compared, why_not_plan
from rg_env.task_rules.reading.expressions import (
    why_not_expression,
)
from rg_env.task_rules.reading.lists import literal_guard
from rg_env.task_rules.reading.propositional_formulas import why_not_proposition
from rg_env.task_rules.reading.repeated_moves import (
    why_not_car_moves,
    why_not_cube_moves,
)
from rg_env.task_rules.reading.sums import SUM_BOUNDS
from rg_env.task_rules.reading.written_exponents import why_not_number

Reader = Callable[[str, str | None], str | None]
"""(answer, gold answer or None) to the reason of a refusal, None if admitted."""


@dataclasses.dataclass(frozen=True)
class Guard:
    """What is known of one task's scorer.

    Attributes:
        task: The registered task.
        danger: What its scorer does with text.
        honest: What an honest answer holds.
        why_not: Reads an answer.
    """

    task: str
    danger: str
    honest: str
    why_not: Reader


_PARSES = "calls sympy's parse_expr on it, which is eval; computes constants exactly"

GUARDS: Mapping[str, Guard] = {
    guard.task: guard
    for guard in (
        Guard(
            "n_queens",
            "calls eval on it",
            "rows of _ and Q, plain or as lists of strings",
            literal_guard(r"[_Q.\s]*", "").why_not,
        ),
        Guard(
            "countdown",
            _PARSES,
            "whole numbers, + - * / ( ); up to 84 characters and 15 numbers",
            lambda answer, gold: why_not_expression(answer, SUM_BOUNDS),
        ),
        Guard(
            "puzzle24",
            _PARSES,
            "four whole numbers, + - * / ( )",
            lambda answer, gold: why_not_expression(answer, SUM_BOUNDS),
        ),
        Guard(
            "coin_flip",
            "makes a Fraction of it, which computes 10**exponent",
            "a decimal such as 3.051757812e-05 or a fraction",
            lambda answer, gold: why_not_number(answer, max_exponent_digits=3),
        ),
        Guard(
            "propositional_logic",
            "2**n assignments of n names; recursive, quadratic parser",
            "one formula of the item's letters",
            lambda answer, gold: why_not_proposition(
                answer, max_chars=1_000, max_operators=100, max_depth=50
            ),
        ),
        Guard(
            "rubiks_cube",
            "R1000000 turns the cube a million times and lists the moves",
            "moves in words; the solver's own solutions have up to 200",
            lambda answer, gold: why_not_cube_moves(answer, max_turns=2_000),
        ),
        Guard(
            "rush_hour",
            "A+999999999 moves a car that often",
            "moves by at most 4",
            lambda answer, gold: why_not_car_moves(answer, max_steps=20_000),
        ),
        Guard(
            "codeio",
            "tree edit distance between two JSON values; recursive",
            "JSON; objects have up to 1,000 characters in 99 of 100 items",
            lambda answer, gold: why_not_compared(
                answer, gold, max_work=2_000_000, max_depth=8
            ),
        ),
        Guard(
            "boxnet",
            "an expression that is quadratic in a string of the plan",
            "JSON: move(box_blue, square[0.5, 1.5]) by agent",
            lambda answer, gold: why_not_plan(
                answer, safe_chars=2_000, max_string_chars=200
            ),
        ),
    )
}
"""Task to its row."""
