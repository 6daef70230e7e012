"""What the fixes of the tasks of arithmetic score."""

import pytest

from rg_env.task_rules.arithmetic.prime_factorization import TIMES
from tests.support.fixed_scores import fixed_score


def test_a_number_times_one_or_halved_is_no_factorization():
    task, number = "prime_factorization", 2 * 2 * 2 * 3 * 41
    gold = f" {TIMES} ".join(["2", "2", "2", "3", "41"])
    entry = {"answer": gold, "metadata": {"number": number}}
    assert fixed_score(task, entry, str(number)) == 0.0
    halved = f"2 {TIMES} {number // 2}"
    assert fixed_score(task, entry, halved) == pytest.approx(0.125)


def test_a_negative_gold_answer_of_gsm_symbolic_is_right():
    entry = {"answer": "-1", "metadata": {}}
    task = "gsm_symbolic"
    assert fixed_score(task, entry, "-1") == 1.0
    assert fixed_score(task, entry, "1") < 0.05


@pytest.mark.parametrize(
    ("question", "answer", "fixed"),
    [
        ("He has 4. How many more does he need?", "2 more", 1.0),
        ("He has 4. How many does he need?", "2 more", 0.0),
        ("It costs 5. What percentage is that?", "2%", 1.0),
        ("It is 5% off. How many dollars is that?", "2%", 0.0),
    ],
)
def test_a_percent_and_a_comparison_are_part_of_a_number_unless_they_are_asked_for(
    question, answer, fixed
):
    entry = {"question": question, "answer": "2", "metadata": {}}
    assert fixed_score("gsm_symbolic", entry, answer) == fixed


@pytest.mark.parametrize("answer", ["2 * 2 * 3", "abc", "", "2 \u00d7 x", "9" * 5_000])
def test_what_is_no_product_is_no_error_of_the_scorer(answer):
    entry = {"answer": f"2 {TIMES} 2 {TIMES} 3", "metadata": {"number": 12}}
    assert fixed_score("prime_factorization", entry, answer) == 0.0


QUOTIENT = {
    "question": "Please solve this problem to a maximum of 12 significant digits,"
    " rounding up from the half.\n(7.245/9.153)*(0.845-0.001) = ?",
    "answer": "0.668062930187",
    "metadata": {},
}


@pytest.mark.parametrize(
    ("answer", "fixed"),
    [
        ("0.668062930187", 1.0),
        ("0.6680629301870", 1.0),
        ("0.668062930188", 0.4),
        ("0.66806", 0.4),
        ("0.6690629", 0.4),
        ("0.6700", 0.0),
    ],
)
def test_a_decimal_is_paid_in_full_in_all_digits_that_are_asked_for(answer, fixed):
    assert fixed_score("decimal_arithmetic", QUOTIENT, answer) == fixed


def test_a_decimal_that_is_rounded_once_is_right_where_the_library_rounds_more():
    entry = {**QUOTIENT, "answer": "0.668062930184"}
    assert fixed_score("decimal_arithmetic", entry, "0.668062930187") == 1.0
    assert fixed_score("decimal_arithmetic", entry, "0.668062930184") == 1.0
    assert fixed_score("decimal_arithmetic", entry, "0.668062930185") == 0.4


CANDIDATES = {
    "answer": "592641326.305",
    "metadata": {
        "solution": 592641326.305,
        "candidates": [592641317.986, 592641326.305, 592641326.301],
        "formatted_candidates": [
            "592,641,317.986",
            "5.926413263049999e+08",
            "592641326.301",
        ],
    },
}


@pytest.mark.parametrize(
    ("answer", "fixed"),
    [
        ("592641326.305", 1.0),
        ("592,641,326.305", 1.0),
        ("5.926413263049999e+08", 1.0),
        ("592641326.301", 0.4),
        ("592641326.306", 0.4),
        ("592641317.986", 0.0),
    ],
)
def test_a_candidate_is_paid_as_it_is_shown(answer, fixed):
    assert fixed_score("number_format", CANDIDATES, answer) == fixed


@pytest.mark.parametrize(
    ("answer", "fixed"),
    [
        *(("123456784.563", 1.0), ("123,456,784.5630001", 1.0)),
        *(("123456784.564", 0.4), ("123456784.562", 0.4)),
    ],
)
def test_noise_of_a_candidate_need_not_be_copied(answer, fixed):
    candidates = [123456784.5630001, 123456784.564, 123456785.0]
    metadata = {"solution": candidates[0], "candidates": candidates, "size": "smallest"}
    entry = {"answer": str(candidates[0]), "metadata": metadata}
    assert fixed_score("number_format", entry, answer) == fixed


@pytest.mark.parametrize(
    "answer",
    [
        *("The answer isn't 264", "it cannot be 264", "264 percent", r"\\cancel{264}"),
        *("264 or so", "half of 264", "264 cats", "about 264"),
    ],
)
def test_what_denies_or_changes_the_number_of_gsm_symbolic_is_wrong(answer):
    question = "Mia has 3 cats. How many dogs does she have?"
    entry = {"question": question, "answer": "264", "metadata": {}}
    assert fixed_score("gsm_symbolic", entry, answer) == 0.0
    assert fixed_score("gsm_symbolic", entry, "She has 264 dogs.") == 1.0
