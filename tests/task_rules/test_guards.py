"""A guard rejects dangerous answers, admits honest ones, and evaluates nothing."""

# ruff: noqa: RUF001 - the signs of logic are what is tested

import pytest
from jobs_for_conformance import scorers_that_evaluate

from rg_env.task_rules.rules import MAX_ANSWER_CHARS
from rg_env.task_rules.table import (
    ANSWER_RUNNING_TASKS,
    rejection,
    solution,
    source_task,
)
from tests.support.hostile_texts import HOSTILE

FORMULAS = [
    *("countdown", "puzzle24", "simple_integration", "intermediate_integration"),
    "polynomial_multiplication",
]
LISTS = ["binary_matrix", "spiral_matrix", "string_insertion", "n_queens"]
LONGEST_POLYNOMIAL = " - ".join(f"{'7' * 83}*z**{i}" for i in range(99, 35, -1))

ADMITTED = """
countdown                12*1*(21 + 37) + 41
countdown                65*(-5 + (44 + 11)/5) - 34
countdown                ((8 - 2) * (3 + 1)) - 0
countdown 281*(-111 - 275 + 184 + 257*(146 - 248 + 78 - 86 + 163 + 179)/257 - 219) + 2
countdown                12. * 4
puzzle24                 10*2 + 6 - 2
puzzle24                 (1+3)*(2+4)
puzzle24                 8/(3-8/3)
puzzle24                 -(-8)*3 + 1 - 1
simple_integration       9*x**8/7 - 11*x**4/5 - x/2 + C
simple_integration       X**2/2+C
simple_integration       (1/3)*x**3 + (5/2)*x**2 - 7*x + C
simple_integration       0.5*x**2 + 1.25*x**(-2) + c
simple_integration       x^2 + C
simple_integration       x*(x*(2*x + 3) + 4) + C
intermediate_integration exp(x)*sin(x)/2 + exp(x)*cos(x)/2 + C
intermediate_integration -8192*x**5/5 + 7168*x**4 - 12544*x**3 + 10976*x**2 - 4802*x + C
intermediate_integration -3*x**3*sin(x) - 9*x**2*cos(x) + 18*x*sin(x) + 18*cos(x) + C
intermediate_integration 2*(5*x + 2)**(3/2)/15 + C
intermediate_integration sqrt(2*x + 1) + x**0.5 + C
intermediate_integration log(Abs(x + 1)) + ln(abs(x - 1)) + C
intermediate_integration atan(2*x)/2 + asin(x/3) + C
intermediate_integration E**(2*x)/2 + 2**x + C
intermediate_integration tan(x)**2/2 + sec(x) + cosh(x) + pi*x + C
intermediate_integration (x**2 - 2*x + 2)*exp(x) + exp(10*x**2)/20 + C
intermediate_integration sin(x)**4/4 + C
polynomial_multiplication x**2*y - 3*x*y**2*z + 4
polynomial_multiplication (x + 1)*(x - 2)
binary_matrix            0 1 2↵1 0 1
binary_matrix            [[0, 1], [1, 0]]
binary_matrix            ((0,1),(1,0),)
binary_matrix            [0,1],[1,0]
spiral_matrix            6 2 2 5
spiral_matrix            [6, 2, 2, 5]
spiral_matrix            6, 2, 2, 5
spiral_matrix            (6,2)
string_insertion         ADCADBEDBBBC
string_insertion         ['A', 'D']
string_insertion         ["A","D"]
string_insertion         "AD"
n_queens                 _ Q _ _↵_ _ _ Q
n_queens                 [['_', 'Q'], ['Q', '_']]
n_queens                 [["_","Q"],↵ ["Q","_"]]
coin_flip                0.996307373
coin_flip                3.051757812e-05
coin_flip                5/16
coin_flip                50%
propositional_logic      (¬P ∨ Q)
propositional_logic      P
propositional_logic      ((P → Q) ∧ ¬¬R) ↔ S
propositional_logic      ¬(P∧Q)
rubiks_cube              F' D' R' D L L
rubiks_cube              U2 R2 F'
rubiks_cube              Rw x y' M2
rush_hour                F+1 K-1 M+4
rush_hour                F+1, K-1, M+4
rush_hour                first F+1 and then K-1
codeio                   {"steps": 3}
codeio                   [1, 2]
codeio                   The answer is {"a": [1, {"b": null}]}
codeio                   7
boxnet                   [{"Agent[0.5, 0.5]": "move(box_blue, square[0.5, 1.5])"}]
"""
LONG = {
    "countdown": [" 7+8 \n"],
    "polynomial_multiplication": [LONGEST_POLYNOMIAL],
    "coin_flip": [" 1,000/4,096 "],
    "rubiks_cube": ["R " * 500],
    "boxnet": ["[" + '{"Agent[0.5, 0.5]": "move(box_red, target_red)"}, ' * 90 + "{}]"],
}
"""Honest answers, and long and wide ones."""

REFUSED = """
countdown                24 # 1 2 3 4
countdown                len('aaa')
countdown                1 + 2 = 3
countdown                2**3
countdown                7//2
countdown                3!
countdown                2.5 + 1
countdown                1_000
countdown                0x10
countdown                1e3
countdown                x + 1
countdown                (1 + 2
countdown                1 + 2)
countdown                1 2
countdown                1 +
countdown                1;2
coin_flip                1e9999999
coin_flip                1E-9,9,9,9
coin_flip                1e9_9_9
rush_hour                F+1 A+999999999
rubiks_cube              R U R1000000
propositional_logic      a ∨ b ∨ c
propositional_logic      P ∨ PP ∨ PPP
propositional_logic      P ∨ P P
propositional_logic      P ∨ P¬
propositional_logic      P(Q)
propositional_logic      (P
"""
NO_VALUES = ["[1][0]", "[1](2)", "f'1'", "'a' * 9", "[n]", "n"]
NO_VALUES += ["['\\x41']", "[[[[1]]]]", "-1"]
COSTLY = {
    "countdown": ["", "1 \u2212 2", "\uff11 + 2"],
    "rush_hour": ["A+99 " * 300, "A+\u0669\u0669\u0669"],
    "rubiks_cube": ["R99 " * 30],
    "propositional_logic": ["P∧" * 101 + "P"],
    "codeio": ['{"a": [' + "1," * 9_000 + "1]}", '{"a": ' + "[" * 20 + "]" * 20 + "}"],
    "boxnet": ['[{"a": "move(' + ", " * 5_000 + '"}]'],
    **dict.fromkeys(LISTS, NO_VALUES),
}
"""Answers that are no values or take long."""


def rows(table, more):
    """Return pairs of a task and an answer, those of a table first."""
    lines = table.strip().splitlines()
    short = [line.replace("↵", "\n").split(maxsplit=1) for line in lines]
    return short + [(task, text) for task, texts in more.items() for text in texts]


@pytest.mark.parametrize(("task", "answer"), rows(ADMITTED, LONG))
def test_an_honest_form_is_admitted(task, answer):
    assert rejection(task, answer) is None


@pytest.mark.parametrize("task", FORMULAS + LISTS)
def test_no_code_and_no_explosion_reaches_an_evaluator(task):
    admitted = [text.name for text in HOSTILE if rejection(task, text.text) is None]
    kinds = {name.partition(":")[0] for name in admitted}
    values = {"number", "character", "pattern", "json", "moves", "megabyte"}
    assert kinds - {"gamed"} <= (values if task in LISTS else set())


@pytest.mark.parametrize(("task", "answer"), rows(REFUSED, COSTLY))
def test_an_answer_that_is_costly_or_no_value_is_refused(task, answer):
    assert rejection(task, answer) is not None


def test_a_gold_answer_that_leaves_the_integral_is_no_answer():
    gold = "-3*Integral(x**3*cos(3*x), x) + C"
    assert rejection("intermediate_integration", gold, gold) is not None
    assert solution("intermediate_integration", {"answer": gold}) is None


def test_what_is_compared_may_be_larger_where_the_gold_is_small():
    answer = '{"a": "' + "x" * 1_500 + '"}'
    assert rejection("codeio", answer, '{"a": "y"}') is None
    assert rejection("codeio", answer, answer.replace("x", "y")) is not None


def test_a_mixture_is_guarded_by_the_task_that_made_the_entry():
    entry = {"metadata": {"source_dataset": "countdown"}}
    assert source_task("composite", entry) == "countdown"
    assert source_task("gcd", entry) == "gcd"


def test_a_mixture_without_a_source_is_refused():
    assert source_task("composite", {}) == "composite"
    assert rejection("composite", "1") is not None


@pytest.mark.processes
def test_every_scorer_that_evaluates_an_answer_is_known(pool):
    found = pool.call(scorers_that_evaluate, deadline_s=120.0)
    # This one evaluates the gold answer.
    assert sorted(found) == sorted({"number_sorting", *ANSWER_RUNNING_TASKS})


def test_tasks_without_a_row_take_any_text():
    texts = [t.text for t in HOSTILE if len(t.text) <= MAX_ANSWER_CHARS]
    assert {rejection("gcd", text) for text in texts} == {None}
