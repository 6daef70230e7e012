"""codeio: any input with the shown output is right, and outputs are values."""

import asyncio
import functools
import json
import random
import re

import numpy as np
import pytest

from rg_env.library import datasets, registry
from rg_env.library.datasets import cached_dataset
from rg_env.reward.score import ScoringRules
from rg_env.stream.group_scorer import GroupScorer
from rg_env.stream.item import Item
from rg_env.task_rules.code import codeio
from rg_env.task_rules.rules import READABLE_SCORE
from rg_env.task_rules.table import fault_of, rejection
from tests.support import fixed_scores

INPUT = "\nCan you predict a feasible input without writing any code? {}\n"
OUTPUT = "\nCan you predict the output without writing any code? {}\n"
PROGRAM = "\n... but not copy spans of code directly.\n\n{}\n"

SORTED = "def main_solution(data):\n    return sorted(data)"
LOOP = "def main_solution(n):\n    while n:\n        pass\n    return 'done'"
DEADLINE_S = 2.0

run_score = functools.partial(fixed_scores.run_score, "codeio")


def entry(program, given, made, asked=INPUT):
    """Return an entry as the library makes it of a program."""
    gold = given if asked == INPUT else made
    return {
        "question": asked.format(made) + PROGRAM.format(program),
        "answer": json.dumps(gold),
        "metadata": {"input_data": given, "output_data": made},
    }


# -- inputs ----------------------------------------------------------------------------


INPUTS = """
1.0  {"data": [1, 2, 3]}
1.0  {'data': (2, 1, 3)}
1.0  {"data": [3.0, 2, 1]}
1.0  ```json↵{"data": [2, 3, 1]}↵```
1.0  The answer is {"data": [2, 3, 1]}
0.01 {"data": [1, 2]}
0.01 {"data": [1, 2, true]}
0.01 {"data": "123"}
0.01 {}
0.01 {"date": [1, 2, 3]}
0.01 {"data": [1, 2, 3], "more": 1}
0.01 {"data": null}
0.0  [1, 2, 3]
0.0  {"data": [1, 2, 3]} or {"data": []}
0.0  not {"data": [1, 2, 3]}
0.0  {"data": [], "data": [1, 2, 3]}
0.0  {"data": sorted([1, 2, 3])}
0.0  {"data": [1, 2, 3
"""
"""Scores, and inputs of a program that sorts."""


@pytest.mark.parametrize("row", INPUTS.strip().splitlines())
def test_any_input_with_the_shown_output_is_right(row):
    score, answer = row.replace("↵", "\n").split(maxsplit=1)
    made = entry(SORTED, {"data": [3, 2, 1]}, [1, 2, 3])
    assert run_score(made, answer) == float(score)


def test_a_number_of_another_type_is_another_input():
    made = entry(
        "def main_solution(n):\n    return list(range(n))", {"n": 3}, [0, 1, 2]
    )
    for answer in ('{"n": 3.0}', '{"n": 3.000000000000000001}', '{"n": "3"}'):
        assert run_score(made, answer) == READABLE_SCORE
    halved = entry("def main_solution(n):\n    return n / 2", {"n": 3}, 1.5)
    assert run_score(halved, '{"n": 3.0}') == run_score(halved, '{"n": 3}') == 1.0


def test_a_large_input_is_run_although_the_library_could_not_compare_it():
    data = list(range(1_000, 2_500))
    made = entry(SORTED, {"data": data[::-1]}, data)
    answer = json.dumps({"data": data})
    assert rejection("codeio", answer, made["answer"]) is not None
    assert run_score(made, answer) == 1.0
    assert run_score(made, answer, scorer_fixes=False) == 0.0


def test_an_output_is_scored_without_running_a_program(monkeypatch):
    monkeypatch.setattr(codeio, "produces", lambda *_: pytest.fail("a program was run"))
    made = entry(SORTED, {"data": [2, 1]}, [1, 2], OUTPUT)
    answers = ("[1, 2]", "[1.0, 2]", "(1, 2)", "[2, 1]", "[1, 3]", '{"data": [2, 1]}')
    assert [run_score(made, a) for a in answers] == [1, 1, 1, 0, 0, READABLE_SCORE]


# -- values ----------------------------------------------------------------------------


VALUES = """
{"a": [1, null], "b": true} = {'b': True, 'a': [1, None]}
{"a": [1, null], "b": true} = {"a":[1,null],"b":true,}
{"a": [1, null], "b": true} ≠ {"b": true}
[1.5, "x"] = [1.50, 'x']
[1.5, "x"] = (1.5, 'x')
[1.5, "x"] = [↵ 1.5,↵ "x"↵]
"yes" = yes
"yes" = 'yes'
true = True
true = true
true ≠ 1
true ≠ 'True'
null = None
5 = 5.0
5 ≠ true
5 ≠ '5'
5 ≠ [5]
5 ≠ -5
0.30000000000000004 = 0.3
0.30000000000000004 = 0.3000000000000001
0.30000000000000004 ≠ 0.30000001
-0.0 = 0
0 ≠ false
0 ≠ null
0 ≠ ""
0 ≠ []
0 ≠ {}
{"steps": 948} = {"steps": 948.0}
{"steps": 948} ≠ {"steps": 947}
{"steps": 948} ≠ {"steps": -948}
{"a": 1} ≠ {'a': 1, 'b': 2}
{"a": 1} ≠ {'a': '1'}
{"a": 1} ≠ {'a': True}
{"a": 1} ≠ {}
{"a": 1.6e-19} ≠ {"a": 0}
{"a": 1.6e-19} ≠ {"a": 1.60001e-19}
[1, 2] ≠ [2, 1]
[1, 2] ≠ [1, 2, 2]
[1, 2] ≠ [1]
[1, 2] ≠ 1, 2
[1, 2] ≠ [1, 2] [1, 2]
1000000000000000 ≠ 1000000000000001
1000000000000000 ≠ 1000000000010000.0
"""
"""Values, as JSON writes them, and answers that are the same (=) or another (≠)."""


@pytest.mark.parametrize("line", VALUES.strip().splitlines())
def test_only_the_same_value_is_right_however_near_another_is(line):
    gold, sign, answer = re.split(" ([=≠]) ", line.replace("↵", "\n"), maxsplit=1)
    score = run_score(entry("", {}, json.loads(gold), OUTPUT), answer)
    assert score == 1.0 if sign == "=" else score <= READABLE_SCORE


# -- attacks ---------------------------------------------------------------------------


def scored(pool, made, *answers, deadline_s=DEADLINE_S):
    scorer = GroupScorer(pool, deadline_s, ScoringRules())
    found = asyncio.run(scorer.score_group(Item("codeio"), made, answers))
    return [(score.value, score.outcome) for score in found]


def test_an_endless_input_costs_only_its_own_answer(pool):
    made = entry(LOOP, {"n": 0}, "done")
    answers = ('{"n": 1}', '{"n": 0.0}', '{"m": 0}')
    assert scored(pool, made, *answers, deadline_s=0.3) == [
        (0.0, "timeout"),
        (1.0, "right"),
        (READABLE_SCORE, "wrong"),
    ]


PRELUDE = """\
import os, sys
class End(BaseException):
    @classmethod
    def fall(cls):
        raise cls
"""


@pytest.mark.parametrize(
    "fails",
    [
        *("sys.exit(n)", "[0] * 10**12", "main_solution(n)", "os.system('id')"),
        *("1 / 0", "End.fall()"),
    ],
)
def test_an_input_that_fails_in_the_program_is_wrong(pool, fails):
    program = f"def main_solution(n):\n    return {fails} if n else 'done'"
    made = entry(PRELUDE + program, {"n": 0}, "done")
    assert scored(pool, made, '{"n": 1}', '{"n": 0.0}') == [
        (READABLE_SCORE, "wrong"),
        (1.0, "right"),
    ]


@pytest.mark.parametrize(
    "number",
    [
        *("9" * 5_000, "1" + "0" * 4_000, "1e999", "NaN", "1e-999"),
        *("[" * depth + "1" + "]" * depth for depth in (30, 9_000)),
    ],
)
def test_a_huge_number_or_a_deep_list_is_wrong(pool, number):
    program = "def main_solution(n):\n    return len([0] * int(n)) - 1"
    made = entry(program, {"n": 3}, 2)
    ((value, outcome),) = scored(pool, made, f'{{"n": {number}}}')
    assert value <= READABLE_SCORE and outcome == "wrong"


def test_programs_run_in_workers_that_are_soon_replaced():
    class Pool:
        async def run(self, *call, options, **limits):
            return [options.untrusted]

    made = entry(SORTED, {"data": [1]}, [1])
    scoring = GroupScorer(Pool()).score_each(Item("codeio"), made, ["[]"])
    assert asyncio.run(scoring) == [True]


# -- entries that are not used ---------------------------------------------------------


def fault(program, given, made, asked=INPUT):
    return fault_of("codeio", entry(program, given, made, asked))


NOT_PRODUCED = "program does not produce the output of the input"
TAKES_TUPLE = "def main_solution(pair):\n    return isinstance(pair, tuple)"


@pytest.mark.parametrize("asked", [INPUT, OUTPUT])
def test_an_entry_is_used_if_its_program_produces_the_output(asked):
    assert fault(SORTED, {"data": [2, 1]}, [1, 2], asked) is None
    assert fault(SORTED, {"data": [2, 1]}, [2, 1], asked) == NOT_PRODUCED
    assert fault("no_such_name", {}, {}, asked) == NOT_PRODUCED
    # As in the library, which runs it without `annotations` from `__future__`.
    annotated = "def main_solution(n: Unknown):\n    return n"
    assert fault(annotated, {"n": 1}, 1, asked) == NOT_PRODUCED


@pytest.mark.parametrize(
    "value",
    [
        *("random.random()", "gauss()", "random.Random().random()"),
        *("np.random.normal()", "time.perf_counter()"),
    ],
)
def test_items_with_an_output_that_depends_on_chance_or_the_clock_are_not_used(value):
    imports = "import random, time\nfrom random import gauss\nimport numpy as np\n"
    program = f"{imports}def main_solution():\n    return {value}"
    names = {}
    exec(program, names)
    random.seed(5)
    np.random.seed(5)
    assert fault(program, {}, float(names["main_solution"]()), OUTPUT) == NOT_PRODUCED


def test_an_input_that_json_cannot_write_may_only_be_shown():
    assert fault(TAKES_TUPLE, {"pair": (1, 2)}, True) == NOT_PRODUCED
    assert fault(TAKES_TUPLE, {"pair": (1, 2)}, True, OUTPUT) is None
    no_json = "answer holds a number that JSON does not have"
    assert fault(SORTED, {"data": [float("nan")]}, [0]) == no_json


MIGHT_DO_MORE = """
import sympy
from sympy import solve
import math, os.path as path
n = eval(n)
exec(n)
n = compile(n, '', 'eval')
pickle.loads(n)
getattr(math, n)
open(n)
np.load(n)
globals()[n]()
import subprocess
operator.attrgetter(n)
list(map(eval, n))
n = 1; import os
if n: from os import system
import queue
from queue import Queue
time.sleep(n)
sleep(n)
"""
COMPUTES = """
import numpy as np
from collections import deque
import math, json
from typing import List, Dict
json.loads(n)
re.compile('a')
def is_open(n): pass
evaluate(n)
"""


@pytest.mark.parametrize("line", MIGHT_DO_MORE.strip().splitlines())
def test_no_input_is_asked_for_of_a_program_that_might_evaluate_or_wait(line):
    program = f"{line}\n{SORTED}"
    assert codeio.may_evaluate_or_wait(program)
    where = f"def other(n):\n    {line}\n{SORTED}"
    might = "program might do more with an input than compute"
    assert fault(where, {"data": [1]}, [1]) == might
    assert fault(where, {"data": [1]}, [1], OUTPUT) != might


@pytest.mark.parametrize("line", COMPUTES.strip().splitlines())
def test_inputs_are_asked_for_of_a_program_that_only_computes(line):
    assert not codeio.may_evaluate_or_wait(f"{line}\n{SORTED}")


# -- the list --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "seed"),
    [
        *(({"difficulty": 6}, seed) for seed in (9990001, 9990022, 9990093, 9990142)),
        ({}, 9990048),
    ],
)
def test_an_item_whose_program_is_random_is_not_used(params, seed):
    with pytest.raises(datasets.UnusableEntryError, match="its program"):
        datasets.make_entry("codeio", params, seed)


def listed(kind):
    """Return the programs of the library that are on the list."""
    registry.describe()
    digests = json.loads(codeio.UNUSED.read_text(encoding="utf-8"))[kind]
    programs = cached_dataset("codeio", {})._jsonl_data
    texts = {codeio.digest_of(p["code_sample"]): p["code_sample"] for p in programs}
    return {digest: texts.get(digest) for digest in digests}


@pytest.mark.parametrize("kind", [codeio.CHANGES, codeio.RANDOM, codeio.SLOW])
def test_every_digest_of_the_list_is_that_of_a_program_of_the_library(kind):
    found = listed(kind)
    assert [*found] == sorted(found) and all(found.values()) and found


def test_a_program_on_the_list_is_not_used_with_the_library_s_own_items_either():
    first, *_ = listed(codeio.CHANGES).values()
    made = entry(first, {}, {}, OUTPUT)
    assert fault_of("codeio", made, checked=False) == f"program has {codeio.CHANGES}"
