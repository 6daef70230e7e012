"""Expressions in the ways that their question leaves open, and what is no such way."""

import pytest

from rg_env.scoring.scoring_rules import ScoringRules

normalizer = ScoringRules().normalizer


def _spelled(task, answer, gold="", **metadata):
    entry = {"question": "", "answer": gold, "metadata": metadata}
    return normalizer(task, entry)(answer)


@pytest.mark.parametrize(
    ("answer", "spelled"),
    [
        ("4 \u00d7 8 \u2212 6 \u00f7 2", "4 * 8 - 6 / 2"),
        (r"4 \cdot 8 - 6", "4 * 8 - 6"),
        ("4x8-6", "4 * 8-6"),
        ("[4*8]-{6+2}", "(4*8)-(6+2)"),
        ("4*8-6-2 = 24", "4*8-6-2"),
        ("24 = 4*8-6-2", "4*8-6-2"),
        ("4*8-6-2 = 25", "4*8-6-2 = 25"),
        ("4*8 = 32 = 24", "4*8 = 32 = 24"),
        ("4*8 or 5", "4*8 or 5"),
        ("4^2+8", "4^2+8"),
        ("__import__('os')", "__import__('os')"),
    ],
)
def test_a_sum_is_written_in_the_signs_of_its_scorer(answer, spelled):
    assert _spelled("puzzle24", answer) == spelled


@pytest.mark.parametrize(
    "answer",
    [
        *("2*2*3", r"2 \times 2 \times 3", "2 x 2 x 3", "2 \u00b7 2 \u00b7 3"),
        *("2, 2, 3", "[2, 2, 3]", "2^2 \u00d7 3", "2\u00b2 \u00b7 3", "2**2 * 3"),
        *(r"2^{2} \cdot 3", "12 = 2^2 * 3", "2^2 * 3 = 12"),
    ],
)
def test_factors_are_told_one_by_one(answer):
    times = "\N{MULTIPLICATION SIGN}"
    assert (
        _spelled("prime_factorization", answer, number=12) == f"2 {times} 2 {times} 3"
    )


@pytest.mark.parametrize(
    "answer",
    ["12 = 12 = 2*6", "2^2^2", "2 2 3", "2+2", "2^99*3", "-2*-6", "2.0*6", "2*a"],
)
def test_what_is_no_product_of_numbers_stays_as_it_is(answer):
    assert _spelled("prime_factorization", answer, number=12) == answer


@pytest.mark.parametrize(
    ("answer", "spelled"),
    [
        ("4i - 9", "-9 + 4i"),
        ("-9+4*i", "-9 + 4i"),
        ("-9 + 4j", "-9 + 4i"),
        (r"-9 + 4\mathrm{i}", "-9 + 4i"),
        ("(4 i - 9)", "-9 + 4i"),
        ("i", "1i"),
        ("-i + 2", "2 - 1i"),
        ("7", "7"),
        ("4i - 9 + 2", "4i - 9 + 2"),
        ("(2 + -1i)", "2 - 1i"),
        ("2 + -1i or 3", "2 + -1i or 3"),
        ("4i, 9", "4i, 9"),
        ("4i or 9", "4i or 9"),
        ("(4i)(2)", "(4i)(2)"),
    ],
)
def test_the_real_part_of_a_complex_number_is_written_first(answer, spelled):
    assert _spelled("complex_arithmetic", answer) == spelled


@pytest.mark.parametrize(
    ("answer", "spelled"),
    [
        ("(3.0 - 5.0i) - (1.0 + 2.0i) = 2.0 - 7.0i", "2.0 - 7.0i"),
        ("(3.0 - 5.0i) - (1.0+2.0i) = 2.0 - 7.0i = 9.0i", None),
        ("(4.0 - 5.0i) - (1.0 + 2.0i) = 2.0 - 7.0i", None),
        ("(3.0 - 5.0i) = 2.0 - 7.0i", None),
    ],
)
def test_the_complex_calculation_of_the_question_may_be_said_again(answer, spelled):
    asked = "Subtract the complex numbers: (3.0 - 5.0i) - (1.0 + 2.0i)"
    entry = {"question": asked, "answer": "2.0 - 7.0i", "metadata": {}}
    written = normalizer("complex_arithmetic", entry)(answer)
    assert written == (spelled or answer)


@pytest.mark.parametrize(
    "answer",
    [
        *("a = 1.4, 2.3", "a = 1.4, a = 2.3", "a_1 = 1.4, a_2 = 2.3", "[1.4, 2.3]"),
        *("a = 1.4 or a = 2.3", "1.4 and 2.3", "1.4; 2.3", "a = 1.4\na = 2.3"),
        *("$a = 1.4$, $a = 2.3$", "a \u2208 {1.4, 2.3}", r"a \approx 1.4, 2.3"),
    ],
)
def test_solutions_are_joined_by_commas(answer):
    assert _spelled("polynomial_equations", answer, variable="a") == "1.4, 2.3"


@pytest.mark.parametrize(
    "answer", ["b = 1.4, b = 2.3", "1.4 to 2.3", "7/5, 2.3", "about 1.4"]
)
def test_what_is_no_list_of_decimals_stays_as_it_is(answer):
    assert _spelled("polynomial_equations", answer, variable="a") == answer


@pytest.mark.parametrize(
    ("kind", "answer", "spelled"),
    [
        ("orthocenter", "H = (1.5, -2)", "(1.5, -2)"),
        ("orthocenter", r"\left(1.5, -2\right)", "(1.5, -2)"),
        ("orthocenter", "x = 1.5, y = -2", "(1.5, -2)"),
        ("orthocenter", "(1.5, -2) or (3, 4)", "(1.5, -2) or (3, 4)"),
        ("orthocenter", "(3/2, -2)", "(3/2, -2)"),
        ("angle_measure", "101.07 degrees", "101.07\u00b0"),
        ("angle_measure", r"101.07^\circ", "101.07\u00b0"),
        ("angle_measure", "\u2220ABC = 101.07\u00b0", "101.07\u00b0"),
        ("angle_measure", "101.08 degrees", "101.08"),
        ("angle_measure", "101.07 radians", "101.07 radians"),
        ("incircle_radius", "r = 101.070", "101.07\u00b0"),
        ("incircle_radius", "101.07 units", "101.07\u00b0"),
    ],
)
def test_a_figure_is_written_as_the_scorer_reads_it(kind, answer, spelled):
    gold = "101.07\u00b0"
    assert _spelled("advanced_geometry", answer, gold, task_type=kind) == spelled


@pytest.mark.parametrize(
    "constant",
    [
        *("c", "K", "D", "k", "C1", "C_1", "C_{1}", "C\u2081", "constant", "const"),
        *("Constant", "constant of integration", "an arbitrary constant"),
    ],
)
def test_the_constant_of_integration_may_have_any_name(constant):
    spelled = _spelled("simple_integration", f"3*x**2 + {constant}", variable="x")
    assert spelled == "3*x**2 + C"


@pytest.mark.parametrize(
    "answer",
    ["3*x**2 + x", "3*x**2 + 2*k", "3*x**2 - c", "c*x", "3*x^2", "3*x**2 + E", "x**2"],
)
def test_what_is_no_constant_alone_stays_as_it_is(answer):
    assert _spelled("simple_integration", answer, variable="x") == answer


def test_an_inverse_function_has_the_name_that_the_scorer_knows():
    spelled = _spelled("intermediate_integration", "arctan(x) + C", variable="x")
    assert spelled == "atan(x) + C"


@pytest.mark.parametrize(
    ("answer", "spelled"),
    [
        ("-sin**2(3*x + 1) + C", "-sin(3*x + 1)**2 + C"),
        ("tan^3(2*(x - 1)) + C", "tan(2*(x - 1))**3 + C"),
        ("x*asin(x) + \u221a(1 - x**2) + C", "x*asin(x) + sqrt(1 - x**2) + C"),
        ("(3/4)*ln|1 + 4*x**2| + C", "(3/4)*ln(abs(1 + 4*x**2)) + C"),
        ("7*X**5 - 2*X + C", "7*x**5 - 2*x + C"),
        ("7*X**5 - 2*x + C", "7*X**5 - 2*x + C"),
        ("sin**x(3) + C", "sin**x(3) + C"),
    ],
)
def test_functions_are_written_as_their_scorer_reads_them(answer, spelled):
    assert _spelled("simple_integration", answer, variable="x") == spelled


def test_a_question_that_minds_its_variable_is_answered_in_it():
    asked = "Calculate ... Use same variable symbols as given in the question"
    entry = {"question": asked, "answer": "", "metadata": {"variable": "x"}}
    assert normalizer("intermediate_integration", entry)("X + C") == "X + C"
