"""The guard: what it must refuse, what it must never refuse, and that it only reads."""

# ruff: noqa: RUF001 - the signs of logic are what is tested

import pytest
from jobs_for_conformance import make_asked_entry, scorers_that_evaluate

from rg_env.task_rules.rules import MAX_ANSWER_CHARS
from rg_env.task_rules.table import EVALUATED, TABLE, rejection, solution, source_task
from tests.support.hostile_texts import HOSTILE

GUARD_S = 120.0
GUARDED = sorted(task for task, rules in TABLE.items() if rules.guard)
NUM_SEEDS = 20
FORMULAS = [
    *("countdown", "puzzle24", "simple_integration", "intermediate_integration"),
    "polynomial_multiplication",
]
LISTS = ["binary_matrix", "spiral_matrix", "string_insertion", "n_queens"]
LONGEST_POLYNOMIAL = " - ".join(f"{'7' * 83}*z**{i}" for i in range(99, 35, -1))

HONEST = {
    "countdown": [
        "12*1*(21 + 37) + 41",
        "65*(-5 + (44 + 11)/5) - 34",
        "((8 - 2) * (3 + 1)) - 0",
        " 7+8 \n",
        "281*(-111 - 275 + 184 + 257*(146 - 248 + 78 - 86 + 163 + 179)/257 - 219) + 2",
        "12. * 4",
    ],
    "puzzle24": ["10*2 + 6 - 2", "(1+3)*(2+4)", "8/(3-8/3)", "-(-8)*3 + 1 - 1"],
    "simple_integration": [
        *("9*x**8/7 - 11*x**4/5 - x/2 + C", "X**2/2+C"),
        *("(1/3)*x**3 + (5/2)*x**2 - 7*x + C", "0.5*x**2 + 1.25*x**(-2) + c"),
        *("x^2 + C", "x*(x*(2*x + 3) + 4) + C"),
    ],
    "intermediate_integration": [
        "exp(x)*sin(x)/2 + exp(x)*cos(x)/2 + C",
        "-8192*x**5/5 + 7168*x**4 - 12544*x**3 + 10976*x**2 - 4802*x + C",
        "-3*x**3*sin(x) - 9*x**2*cos(x) + 18*x*sin(x) + 18*cos(x) + C",
        *("2*(5*x + 2)**(3/2)/15 + C", "sqrt(2*x + 1) + x**0.5 + C"),
        *("log(Abs(x + 1)) + ln(abs(x - 1)) + C", "atan(2*x)/2 + asin(x/3) + C"),
        *("E**(2*x)/2 + 2**x + C", "tan(x)**2/2 + sec(x) + cosh(x) + pi*x + C"),
        *("(x**2 - 2*x + 2)*exp(x) + exp(10*x**2)/20 + C", "sin(x)**4/4 + C"),
    ],
    "polynomial_multiplication": [
        "6624*y**6 + 1794*y**5 + 12327*y**4 + 6652*y**3 + 6270*y**2 + 2714*y",
        "x**2*y - 3*x*y**2*z + 4",
        "(x + 1)*(x - 2)",
        LONGEST_POLYNOMIAL,
    ],
    "binary_matrix": [
        *("0 1 2\n1 0 1", "[[0, 1], [1, 0]]", "((0,1),(1,0),)", "[0,1],[1,0]")
    ],
    "spiral_matrix": ["6 2 2 5", "[6, 2, 2, 5]", "6, 2, 2, 5", "(6,2)"],
    "string_insertion": ["ADCADBEDBBBC", "['A', 'D']", '["A","D"]', '"AD"'],
    "n_queens": [
        "_ Q _ _\n_ _ _ Q",
        "[['_', 'Q'], ['Q', '_']]",
        '[["_","Q"],\n ["Q","_"]]',
    ],
    "coin_flip": ["0.996307373", "3.051757812e-05", "5/16", " 1,000/4,096 ", "50%"],
    "propositional_logic": ["(¬P ∨ Q)", "P", "((P → Q) ∧ ¬¬R) ↔ S", "¬(P∧Q)"],
    "rubiks_cube": ["F' D' R' D L L", "U2 R2 F'", "Rw x y' M2", "R " * 500],
    "rush_hour": ["F+1 K-1 M+4", "F+1, K-1, M+4", "first F+1 and then K-1"],
    "codeio": ['{"steps": 3}', "[1, 2]", 'The answer is {"a": [1, {"b": null}]}', "7"],
    "boxnet": [
        '[{"Agent[0.5, 0.5]": "move(box_blue, square[0.5, 1.5])"}]',
        "[" + '{"Agent[0.5, 0.5]": "move(box_red, target_red)"}, ' * 90 + "{}]",
    ],
}


NO_VALUES = ["[1][0]", "[1](2)", "f'1'", "'a' * 9", "[n]", "n"]
NO_VALUES += ["['\\x41']", "[[[[1]]]]", "-1"]

REFUSED = {
    "countdown": [
        *("24 # 1 2 3 4", "len('aaa')", "1 + 2 = 3", "2**3", "7//2", "3!", "2.5 + 1"),
        *("1_000", "0x10", "1e3", "x + 1", "(1 + 2", "1 + 2)", "1 2", "", "1 +"),
        *("1 \u2212 2", "\uff11 + 2", "1;2"),
    ],
    "coin_flip": ["1e9999999", "1E-9,9,9,9", "1e9_9_9"],
    "rush_hour": ["F+1 A+999999999", "A+99 " * 300, "A+\u0669\u0669\u0669"],
    "rubiks_cube": ["R U R1000000", "R99 " * 30],
    "propositional_logic": [
        *("a ∨ b ∨ c", "P ∨ PP ∨ PPP", "P ∨ P P", "P ∨ P¬", "P(Q)", "(P"),
        "P∧" * 101 + "P",
    ],
    "codeio": [
        '{"a": [' + "1," * 9_000 + "1]}",
        '{"a": ' + "[" * 20 + "]" * 20 + "}",
    ],
    "boxnet": ['[{"a": "move(' + ", " * 5_000 + '"}]'],
    **dict.fromkeys(LISTS, NO_VALUES),
}


def rows(table):
    return [(task, text) for task, texts in table.items() for text in texts]


def entries(pool, task):
    """Make entries as in a run: codeio's code prints and writes files."""
    return [
        pool.call(make_asked_entry, task, {}, seed, deadline_s=GUARD_S)
        for seed in range(5_000, 5_000 + NUM_SEEDS)
    ]


@pytest.mark.processes
@pytest.mark.parametrize("task", sorted({*GUARDED} - {"composite"}))
def test_solutions_of_the_library_are_admitted(pool, task):
    made = entries(pool, task)
    pairs = [(solution(task, entry), entry["answer"]) for entry in made]
    refused = {text: rejection(task, text, gold) for text, gold in pairs if text}
    assert not {text: why for text, why in refused.items() if why}


@pytest.mark.parametrize(("task", "answer"), rows(HONEST))
def test_an_honest_form_is_admitted(task, answer):
    assert rejection(task, answer) is None


@pytest.mark.parametrize("task", FORMULAS + LISTS)
def test_no_code_reaches_an_evaluator(task):
    kinds = ("code", "python", "sympy", "alike")
    texts = [t for t in HOSTILE if t.name.startswith(kinds)]
    assert [t.name for t in texts if rejection(task, t.text) is None] == []


@pytest.mark.parametrize("task", FORMULAS)
@pytest.mark.parametrize(
    "name",
    [
        *("power:tower", "power:tower_caret", "power:tower_signs"),
        *("power:tower_by_logarithm", "power:tower_by_tangent", "power:tower_by_E"),
        *("power:tower_by_root", "power:power_by_cancelling"),
        *("power:product_of_powers", "power:root", "number:exponent"),
        *("nesting:parentheses_90", "nesting:calls_60", "nesting:sum_distinct"),
    ],
)
def test_no_explosion_reaches_sympy(task, name):
    text = next(t.text for t in HOSTILE if t.name == name)
    assert rejection(task, text) is not None


@pytest.mark.parametrize(("task", "answer"), rows(REFUSED))
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
    found = pool.call(scorers_that_evaluate, deadline_s=GUARD_S)
    # This one evaluates the gold answer.
    assert sorted(found) == sorted({"number_sorting", *EVALUATED})


def test_tasks_without_a_row_take_any_text():
    texts = [t.text for t in HOSTILE if len(t.text) <= MAX_ANSWER_CHARS]
    assert {rejection("gcd", text) for text in texts} == {None}
