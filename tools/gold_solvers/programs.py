"""Solvers of tasks that show a program: they run it."""

from __future__ import annotations

import ast
import contextlib
import json
import os
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rg_env.task_rules.code.codeio import is_same
from tools.gold_solvers.reading import Solver, Verdict, found, right_if

_PARTS = (
    r"\nGiven the following (input|output):\n\n(.*)\n\nCan you predict (?:the|a) .*"
    r"not copy spans of code directly\.\n\n(.*)"
)


def _made(program: str, given: Mapping[str, Any], state: int) -> Any:
    """Return what a program makes of an input, as JSON has it.

    The global random generators are in one of several states.
    """
    names: dict[str, Any] = {"Random": random.Random}
    random.seed(state)
    with (
        Path(os.devnull).open("w", encoding="utf-8") as nowhere,
        contextlib.redirect_stdout(nowhere),
    ):
        exec(program, names)  # noqa: S102 - the library's
        if "np" in names:
            names["np"].random.seed(state)
        return json.loads(json.dumps(names["main_solution"](**given)))


def codeio(question: str, gold: str) -> Verdict:
    """Run the program on the input shown, or on that of the answer."""
    shows, text, program = found(_PARTS, question)
    answer = json.loads(gold)
    given = ast.literal_eval(text) if shows == "input" else answer
    try:
        made, again = (_made(program, given, state) for state in (1, 2))
    except (Exception, SystemExit):  # noqa: BLE001 - a program may raise anything
        return "refuted"
    if not is_same(made, again):
        return "not knowable"
    if shows == "input":
        return right_if(is_same(made, answer))
    # Text is shown without quotes.
    is_text = isinstance(made, str)
    return right_if(made == text if is_text else is_same(made, ast.literal_eval(text)))


SOLVERS: dict[str, Solver] = {"codeio": codeio}
