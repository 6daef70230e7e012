"""The rule for tasks with one right answer, with stub scorers."""

import re

import pytest

from rg_env.library import datasets, registry
from rg_env.task_rules.answer_matching import CONTAINMENT_FIX, one_answer
from rg_env.task_rules.table import TABLE as RULES
from tests.support.fixed_scores import BASE_TASKS

LEGS = "How many legs have 12 ducks?"
TABLE = r"""
5 = 5.0
5 = +5
5 = 05
5 = (5)
5 = 5.
5 = 5 legs
5 = There are 5 legs in total.
5 = 5,
-5 = -5.0
-5 = - 5
1234 = 1,234
1234 = 1234.00
1234 = The answer is 1,234
True = true
True = True,
True = "True"
True = **True**
True = The answer is: True
[4] = 4
[4] = [ 4 ]
[4] = (4)
1 2↵3 4 = [[1, 2], [3, 4]]
1 2↵3 4 = [1 2]↵[3 4]
[[1,2],[3,4]] = 1 2↵3 4
[[1,2],[3,4]] = [[1.0, 2], [3, 4]]
No = No,
No = No is the answer.
No = Solution: no
A B C = a, b, c
A B C = ['A', 'B', 'C']
A B C = A↵B↵C
-3.0 + 11.0i = -3+11i
-3.0 + 11.0i = (-3 + 11.0i)
The dog is here = the dog is here
5 ~ (5
5 ~ 5)
[4] ~ ]4[
[4] ~ [4
1 2↵3 4 ~ 1 2 3 4
1 2↵3 4 ~ 1 2↵4 3
1 2↵3 4 ~ [[1, 2], [3, 4
1 2↵3 4 ~ 1↵2↵3↵4
A B C ~ C B A
The dog is here ~ is the dog here
5 ≠ -5
5 ≠ 50
5 ≠ 1/5
5 ≠ .5
5 ≠ 5.5
5 ≠ 5,5
5 ≠ 5e3
5 ≠ 5%
5 ≠ 5!
5 ≠ ~5
5 ≠ 5#
5 ≠ 5 or 6
5 ≠ 5, 6
5 ≠ five or 5
5 ≠ not 5
5 ≠ x5
5 ≠ 5_
5 ≠ 5 ducks
5 ≠ The answer isn't 5
5 ≠ 5 percent
5 ≠ \cancel{5}
5 ≠ \sqrt{5}
5 ≠ 1,5
5 ≠ 5s
5 ≠ 5,000
5 ≠ <answer>5</answer>
5 ≠ 5 5
-5 ≠ 5
-5 ≠ -(5)
-5 ≠ -5 or 5
No ≠ No solution
No ≠ No answer
No ≠ ["No result"]
True ≠ True False
True ≠ not True
True ≠ Untrue
True ≠ Truex
True ≠ false: True
True ≠ the answer
1 2↵3 4 ≠ 1 2↵3
1 2↵3 4 ≠ 1 2↵3 4↵5
1 2↵3 4 ≠ 1 2↵3 5
1e5 ≠ 1e05
1e5 ≠ 100000
1e5 ≠ 1e 5 e
The dog is here ≠ dog here
The dog is here ≠ the dog
The dog is here ≠ The dog is here is
The dog is here ≠ is not here
[] ≠ answer
[] ≠ the result is
[] ≠ [1]
"""
"""References and answers with the same tokens (=), with the same in another shape or
order (~), or with more, less or other tokens (≠)."""

ODD = {
    "=": [("-5", "\u22125"), ("1 2\n3 4", "1, 2\n\n3, 4\n"), ("", "")],
    "~": [],
    "≠": [
        *(("5", text) for text in ("", "5\u00b2", "\u0665")),
        *(("a" * 40, "a" * 41), ("9" * 40 + "1", "9" * 40 + "2")),
    ],
}


ROWS = [
    re.split(" ([=~≠]) ", line.replace("↵", "\n"), maxsplit=1)
    for line in TABLE.strip().splitlines()
]


def rows(sign):
    """Return the references and answers with a sign between them."""
    found = [(gold, answer) for gold, kind, answer in ROWS if kind == sign]
    return found + ODD[sign]


def score(answer, gold, of_library, fix=CONTAINMENT_FIX):
    entry = {"answer": gold, "question": LEGS}
    return fix.score(answer, entry, lambda text: of_library)


@pytest.mark.parametrize(("gold", "answer"), rows("="))
def test_an_answer_with_the_tokens_of_the_reference_is_right_for_any_scorer(
    gold, answer
):
    assert score(answer, gold, 0.0) == 1.0


@pytest.mark.parametrize(("gold", "answer"), rows("≠"))
def test_an_answer_with_other_tokens_scores_0_where_the_scorer_says_1(gold, answer):
    assert score(answer, gold, 1.0) == score(answer, gold, 0.9) == 0.0


@pytest.mark.parametrize(("gold", "answer"), rows("~"))
def test_another_shape_or_order_is_right_where_the_scorer_says_so(gold, answer):
    assert score(answer, gold, 0.9, one_answer()) == 0.45
    assert score(answer, gold, 1.0) == 1.0


def test_as_many_other_numbers_are_right_where_the_scorer_and_the_row_say_so():
    several = one_answer(any_number=True)
    assert score("A=7,B=1", "A=1,B=2", 1.0) == 0.0
    assert score("A=7,B=1", "A=1,B=2", 0.9, several) == 0.45
    assert score("A=7,B=1", "A=1,B=2", 1.0, several) == 1.0
    for more in ("A=7,B=1,C=2", "A=7,A=1,B=2", "A=7,B=1 or not"):
        assert score(more, "A=1,B=2", 1.0, several) == 0.0


def test_case_matters_where_the_row_says_so():
    exact = one_answer(ignore_case=False)
    assert score("ANT, bee", "ant, bee", 1.0, exact) == 0.0
    assert score("ant,bee", "ant, bee", 0.0, exact) == 1.0


def test_punctuation_inside_an_answer_counts_where_the_row_says_so():
    exact = one_answer(has_punctuation=True)
    assert score("Well, now", '"Well, now."', 0.0, exact) == 1.0
    assert score("Well now", '"Well, now."', 0.8, exact) == 0.4


def test_words_and_signs_that_mean_nothing_in_a_task_are_ignored():
    roles = one_answer(ignored="is a <")
    gold = "Zoey is a knave, Riley is a knight"
    assert score("Zoey: knave; Riley: knight", gold, 0.0, roles) == 1.0
    assert score("1 2", "1 < 2", 0.0, roles) == 1.0


def test_a_library_score_below_1_is_halved_or_0():
    assert score("x", "5", 0.8, one_answer()) == 0.4
    assert score("x", "5", 0.8) == 0.0


def test_without_a_reference_the_scorer_decides():
    assert score("x", None, 1.0) == 1.0
    assert score("x", None, 0.8, one_answer()) == 0.4


def test_tasks_with_the_base_scorer_have_the_rule_and_a_row_may_say_more():
    tasks = registry.describe().tasks
    base = {task for task in tasks if datasets.has_base_scorer(task)}
    own = {task for task in base if task in RULES and RULES[task].fix}
    assert base == {*BASE_TASKS}
    assert {
        t for t in tasks if datasets.fix_of(t) is CONTAINMENT_FIX and t in base
    } == base - own
