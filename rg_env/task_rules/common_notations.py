"""Tasks of which nothing but a common notation is known.

What else is known of a task needs a module of its own; see `rg_env.task_rules.rules`.
"""

from __future__ import annotations

from collections.abc import Mapping

from rg_env.task_rules.reading.lists import WORD, list_of, nodes
from rg_env.task_rules.reading.numbers import (
    DEGREES,
    as_fraction,
    as_number,
    with_unit,
    written_plainly,
)
from rg_env.task_rules.reading.words import as_verdict
from rg_env.task_rules.rules import Notation

_COUNTED = (
    "binary_alternation circuit_logic count_bits count_primes gcd lcm leg_counting"
    " simple_equations"
)
_VERDICTS = "course_schedule isomorphic_strings ransom_note"

COMMON_NOTATIONS: Mapping[str, Notation] = {
    **dict.fromkeys(_COUNTED.split(), as_number),
    **dict.fromkeys(_VERDICTS.split(), as_verdict),
    "decimal_chain_sum": written_plainly,
    "dice": as_fraction,
    "path_star": nodes,
    "power_function": written_plainly,
    "simple_geometry": with_unit(DEGREES),
    "word_sequence_reversal": list_of(WORD, ", ".join),
}
"""Task to how its answers are written as its scorer reads them."""
