"""What the fixes of the tasks of algebra score."""

import pytest

from rg_env.task_rules.table import rejection
from tests.support.fixed_scores import fixed_score


@pytest.mark.parametrize(
    "answer", ["", '""', "[]", "no real solutions", "None", "There are no real roots"]
)
def test_an_equation_without_solution_is_answered_by_saying_so(answer):
    entry = {"answer": "", "metadata": {}}
    assert fixed_score("polynomial_equations", entry, answer) == 1.0


@pytest.mark.parametrize(
    "answer", ["I do not know", "a real root exists", "?", "x", "-"]
)
def test_a_text_that_denies_nothing_says_of_no_equation_that_it_has_no_solution(answer):
    entry = {"answer": "", "metadata": {}}
    assert fixed_score("polynomial_equations", entry, answer) == 0.0


@pytest.mark.parametrize("constant", ["C", "c", "k", "K", "D"])
def test_the_constant_of_integration_has_one_of_the_usual_names(constant):
    entry = {"metadata": {"variable": "x", "integrand": "2*x"}}
    task = "simple_integration"
    assert fixed_score(task, entry, f"x**2 + {constant}") == 1.0
    assert fixed_score(task, entry, f"x**2 + {constant}*x") == 0.0
    assert fixed_score(task, entry, f"x**2 + {constant} + y") == 0.0


@pytest.mark.parametrize(
    ("answer", "fixed"),
    [
        ("1.5, -2.0", 1.0),
        ("the solutions are, 1.5, -2.0", 0.0),
        ("1.5, -2.0, I think not", 0.0),
        ("1.5, -2.0, or 4.0", 0.0),
        ("1.5, -2.0, ?", 0.0),
    ],
)
def test_nothing_but_filler_words_stand_beside_solutions(answer, fixed):
    entry = {"answer": "1.5, -2.0", "metadata": {"variable": "x"}}
    assert fixed_score("polynomial_equations", entry, answer) == fixed


ROOT = {
    "answer": "0.6667",
    "metadata": {
        "variable": "x",
        "real_solutions": [0.6667],
        "polynomial_expr": "3*x - 2",
    },
}


@pytest.mark.parametrize("answer", ["0.6667", ".6667", "0.66670", "0.6666"])
def test_a_root_is_rounded_to_four_places_or_cut_off_there(answer):
    assert fixed_score("polynomial_equations", ROOT, answer) == 1.0


@pytest.mark.parametrize(
    "answer", ["0.6668", "0.66665", "0.66667", "0.667", "0.6665", "0.6667, 0.7", "0.67"]
)
def test_another_number_is_no_root_and_earns_half_at_most(answer):
    assert 0.0 < fixed_score("polynomial_equations", ROOT, answer) <= 0.5


def test_a_root_that_is_exact_is_not_cut_off():
    exact = {"real_solutions": [0.5], "polynomial_expr": "2*x - 1", "variable": "x"}
    entry = {"answer": "0.5", "metadata": exact}
    assert fixed_score("polynomial_equations", entry, "0.4999") <= 0.5


def test_zero_earns_nothing_where_it_is_no_root():
    assert fixed_score("polynomial_equations", ROOT, "0") == 0.0


def test_a_long_exponent_is_no_root_and_is_not_worked_out():
    assert fixed_score("polynomial_equations", ROOT, "1e-999999999") == 0.0


@pytest.mark.parametrize(
    ("answer", "integrand"),
    [
        ("sin(x) + C", "cos(x)"),
        ("-log(cos(x)) + C", "tan(x)"),
        ("ln(x) + C", "1/x"),
        ("e**(2*x)/2 + C", "exp(2*x)"),
        ("E**x", "exp(x)"),
        ("asec(x)", "1/(x**2*sqrt(1 - 1/x**2))"),
        ("log(abs(x)) + C", "1/x"),
        ("x*atan(3*x) - log(Abs((3*x)**2 + 1))/6 + C", "atan(3*x)"),
    ],
)
@pytest.mark.parametrize("task", ["simple_integration", "intermediate_integration"])
def test_an_antiderivative_of_elementary_functions_is_right(task, answer, integrand):
    entry = {"metadata": {"variable": "x", "integrand": integrand}}
    assert rejection(task, answer) is None
    assert fixed_score(task, entry, answer) == 1.0


def test_the_absolute_value_of_a_part_of_a_logarithm_stays():
    entry = {"metadata": {"variable": "x", "integrand": "1/(x + 1)"}}
    assert fixed_score("simple_integration", entry, "log(abs(x) + 1)") == 0.0


@pytest.mark.parametrize(
    ("answer", "fixed"),
    [
        ("2*(6*z**3 - z**2 - 12*z + 2)", 1.0),
        ("12*z**3 - 2*z**2 - 24*z + 4", 1.0),
        ("2*(6*z**3 - z**2 - 12*z + 3)", 0.0),
        ("2*(z**2 - 2)*(6*z - 1)", 0.0),
        ("-2*(6*z - 1)*(2 - z**2)", 0.0),
    ],
)
def test_a_number_may_stand_before_a_product_that_is_multiplied_out(answer, fixed):
    product = "12*z**3 - 2*z**2 - 24*z + 4"
    question = "Calculate the following: (2*z**2 - 4)*(6*z - 1)"
    entry = {
        "question": question,
        "answer": product,
        "metadata": {"result": product, "variables": ["z"]},
    }
    assert fixed_score("polynomial_multiplication", entry, answer) == fixed


def test_a_number_before_a_sum_of_the_question_is_not_multiplied_out():
    question = "Calculate the following: 8*(3*z + 2)"
    entry = {
        "question": question,
        "answer": "24*z + 16",
        "metadata": {"result": "24*z + 16", "variables": ["z"]},
    }
    assert fixed_score("polynomial_multiplication", entry, "8*(3*z + 2)") == 0.0


@pytest.mark.parametrize(
    ("answer", "integrand", "fixed"),
    [
        ("cos(10*x - 8)/4 + C", "-5*sin(5*x - 4)*cos(5*x - 4)", 1.0),
        ("2*(5*x + 1)**1.5 + C", "15*sqrt(5*x + 1)", 1.0),
        ("2*sqrt((5*x + 1)**3) + C", "15*sqrt(5*x + 1)", 1.0),
        ("1.4*x**5 - 0.6*x + C", "7*x**4 - 3/5", 1.0),
        ("1.66666667*x**6 + sin(x)**2 + C", "10*x**5 + sin(2*x)", 0.0),
        ("cos(10*x - 8)/5 + C", "-5*sin(5*x - 4)*cos(5*x - 4)", 0.0),
        ("2*(5*x + 1)**1.5 + x/10**15 + C", "15*sqrt(5*x + 1)", 0.0),
    ],
)
def test_an_integral_that_the_library_cannot_simplify_is_right_by_its_slope(
    answer, integrand, fixed
):
    entry = {"metadata": {"variable": "x", "integrand": integrand}}
    assert fixed_score("intermediate_integration", entry, answer) == fixed
