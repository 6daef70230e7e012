"""list_functions: a rule that maps a list to another list.

Four examples show the rule. Two of the library's rules have a parameter that the
examples may leave open: the sum of the elements below 30, and the count of 5.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from rg_env.task_rules.rules import Entry, ItemCheck, TaskRules

_LISTS = re.compile(r"^(In|Out)put.*: (\[.*\])$", re.MULTILINE)


def _results(numbers: list[int]) -> Iterator[list[int]]:
    """Yield the result of each rule for a list."""
    for limit in range(15, 46):
        yield [sum(number for number in set(numbers) if number < limit)]
    yield from ([numbers.count(5)], [int(5 in numbers)])


def _leaves_parameter_open(entry: Entry) -> bool:
    """Return whether the rules that fit all examples disagree about the answer."""
    lists = _LISTS.findall(f"{entry['question']}\nOutput: {entry['answer']}")
    inputs = [json.loads(text) for side, text in lists if side == "In"]
    *outputs, right = [json.loads(text) for side, text in lists if side == "Out"]
    by_rule = zip(*map(_results, inputs), strict=True)
    verdicts = {last == right for *fitted, last in by_rule if fitted == outputs}
    return len(verdicts) > 1


LIST_FUNCTIONS = TaskRules(
    "list_functions",
    item_checks=(
        ItemCheck("examples leave a number of the rule open", _leaves_parameter_open),
    ),
    fixed_level="the library has no curriculum and no parameter for it",
    is_rebuilt=True,
)
