"""What the fix of a task scores for answers to an entry that is written here."""

import pytest

from tests.support.fixed_scores import fixed_score

CASES = []


def case(task, why, scores, answer="", question="", **metadata):
    """Add a case: scores to the answers that earn them."""
    entry = {"answer": answer, "question": question, "metadata": metadata}
    for score, answers in scores.items():
        CASES.extend(
            pytest.param(task, entry, text, score, id=f"{why}-{text:.20}")
            for text in answers
        )


# -- algebra ---------------------------------------------------------------------------

case(
    "polynomial_equations",
    "an equation without solution is answered by a text that denies one",
    {
        1.0: ["", '""', "[]", "no real solutions", "None", "There are no real roots"],
        0.0: ["I do not know", "a real root exists", "?", "x", "-"],
    },
)
case(
    "polynomial_equations",
    "only filler words stand beside solutions",
    {
        1.0: ["1.5, -2.0"],
        0.0: [
            "the solutions are, 1.5, -2.0",
            *("1.5, -2.0, I think not", "1.5, -2.0, or 4.0", "1.5, -2.0, ?"),
        ],
    },
    answer="1.5, -2.0",
    variable="x",
)
case(
    "polynomial_equations",
    "a root is rounded or cut off at four places; zero and a long exponent are none",
    {
        1.0: ["0.6667", ".6667", "0.66670", "0.6666"],
        0.5: ["0.6668", "0.66665", "0.66667", "0.667", "0.6665"],
        0.484: ["0.67"],
        0.25: ["0.6667, 0.7"],
        0.001: ["0", "1e-999999999"],
    },
    answer="0.6667",
    variable="x",
    real_solutions=[0.6667],
    polynomial_expr="3*x - 2",
)
case(
    "polynomial_equations",
    "an exact root is not cut off",
    {0.5: ["0.4999"]},
    answer="0.5",
    real_solutions=[0.5],
    polynomial_expr="2*x - 1",
    variable="x",
)
for name in "CckKD":
    case(
        "simple_integration",
        "the constant of integration has a usual name",
        {1.0: [f"x**2 + {name}"], 0.0: [f"x**2 + {name}*x", f"x**2 + {name} + y"]},
        variable="x",
        integrand="2*x",
    )
case(
    "simple_integration",
    "the absolute value of a part of a logarithm stays",
    {0.0: ["log(abs(x) + 1)"]},
    variable="x",
    integrand="1/(x + 1)",
)
for integrand, scores in {
    "-5*sin(5*x - 4)*cos(5*x - 4)": {
        1.0: ["cos(10*x - 8)/4 + C"],
        0.0: ["cos(10*x - 8)/5 + C"],
    },
    "15*sqrt(5*x + 1)": {
        1.0: ["2*(5*x + 1)**1.5 + C", "2*sqrt((5*x + 1)**3) + C"],
        0.0: ["2*(5*x + 1)**1.5 + x/10**15 + C"],
    },
    "7*x**4 - 3/5": {1.0: ["1.4*x**5 - 0.6*x + C"]},
    "10*x**5 + sin(2*x)": {0.0: ["1.66666667*x**6 + sin(x)**2 + C"]},
}.items():
    case(
        "intermediate_integration",
        "an integral that the library cannot simplify is right by its slope",
        scores,
        variable="x",
        integrand=integrand,
    )
case(
    "polynomial_multiplication",
    "a number may stand before a product that is multiplied out",
    {
        1.0: ["2*(6*z**3 - z**2 - 12*z + 2)", "12*z**3 - 2*z**2 - 24*z + 4"],
        0.0: [
            "2*(6*z**3 - z**2 - 12*z + 3)",
            *("2*(z**2 - 2)*(6*z - 1)", "-2*(6*z - 1)*(2 - z**2)"),
        ],
    },
    answer="12*z**3 - 2*z**2 - 24*z + 4",
    question="Calculate the following: (2*z**2 - 4)*(6*z - 1)",
    result="12*z**3 - 2*z**2 - 24*z + 4",
    variables=["z"],
)
case(
    "polynomial_multiplication",
    "a number before a sum of the question is not multiplied out",
    {0.0: ["8*(3*z + 2)"]},
    answer="24*z + 16",
    question="Calculate the following: 8*(3*z + 2)",
    result="24*z + 16",
    variables=["z"],
)

# -- arithmetic ------------------------------------------------------------------------

case("gsm_symbolic", "a negative answer", {1.0: ["-1"], 0.01: ["1"]}, answer="-1")
case(
    "gsm_symbolic",
    "what denies or changes the number is wrong",
    {
        1.0: ["She has 264 dogs."],
        0.0: [
            *("The answer isn't 264", "it cannot be 264", "264 percent"),
            *(r"\\cancel{264}", "264 or so", "half of 264", "264 cats", "about 264"),
        ],
    },
    answer="264",
    question="Mia has 3 cats. How many dogs does she have?",
)
QUOTIENT = (
    "Please solve this problem to a maximum of 12 significant digits, rounding up from"
    " the half.\n(7.245/9.153)*(0.845-0.001) = ?"
)
case(
    "decimal_arithmetic",
    "a decimal is paid in full in all digits that are asked for",
    {
        1.0: ["0.668062930187", "0.6680629301870"],
        0.0: ["0.668062930188", "0.66806", "0.6690629", "0.6700"],
    },
    answer="0.668062930187",
    question=QUOTIENT,
)
case(
    "decimal_arithmetic",
    "a decimal that is rounded once is right where the library rounds more",
    {1.0: ["0.668062930187", "0.668062930184"], 0.0: ["0.668062930185"]},
    answer="0.668062930184",
    question=QUOTIENT,
)
case(
    "number_format",
    "a candidate is paid as it is shown",
    {
        1.0: ["592641326.305", "592,641,326.305", "5.926413263049999e+08"],
        0.0: ["592641326.301", "592641326.306", "592641317.986"],
    },
    answer="592641326.305",
    solution=592641326.305,
    candidates=[592641317.986, 592641326.305, 592641326.301],
    formatted_candidates=["592,641,317.986", "5.926413263049999e+08", "592641326.301"],
)
case(
    "number_format",
    "noise of a candidate need not be copied",
    {
        1.0: ["123456784.563", "123,456,784.5630001"],
        0.0: ["123456784.564", "123456784.562"],
    },
    answer="123456784.5630001",
    solution=123456784.5630001,
    candidates=[123456784.5630001, 123456784.564, 123456785.0],
    size="smallest",
)

# -- algorithmic -----------------------------------------------------------------------

case(
    "pool_matrix",
    "a pooled matrix is right to two decimals",
    {
        1.0: [
            *("4.67 0.12\n9.0 1.0", "4.67 0.13\n9 1", "4.667 0.12\n9.0 1.0"),
            "4.6666667 0.125\n9.00 1.00\n",
        ],
        0.0: [
            *("4.68 0.12\n9.0 1.0", "4.66 0.12\n9.0 1.0", "4.67 0.12\n9.01 1.0"),
            *("5 0\n9 1", "4.67 0.12 9.0 1.0"),
        ],
    },
    answer="4.67 0.12\n9.0 1.0",
    solution=[[14 / 3, 0.125], [9.0, 1.0]],
)
case(
    "pool_matrix",
    "a column may be written as a row",
    {1.0: ["7 8"], 0.0: ["7 9"]},
    answer="7\n8",
    solution=[[7.0], [8.0]],
)

# -- games -----------------------------------------------------------------------------

case(
    "puzzle24",
    "only the numbers given make 24",
    {
        1.0: [" 10 * (8-5) - 6\n"],
        0.01: ["", "4*6", "8*5*10*6", "(8+5)*10/6 + 7/3", "10*(8 - 5) - 6.0", "24"],
    },
    answer="10*(8 - 5) - 6",
    numbers=[8, 5, 10, 6],
)
case(
    "rush_hour",
    "once the red car is out, what is possible costs nothing",
    {
        1.0: [
            *("B+2 A+4", "B+2 A+5", "B+2 A+6", "B+2 A+4 A+2", "B+2 A+4 C+1"),
            *("B+2 A+4 B-1", "B+2 A+3 C+2 A+1"),
        ],
        0.01: [
            *("B+2 A+7", "B+2 A+4 A+3", "B+2 A+3", "A+4", "A+6 B+2", "B+2 A+4 A-1"),
            *("B+2 A+6 A-1", "B+2 A+4 C-1", "B+2 A+4 C+9", "B+2 A+4 F+1"),
            "B+2 C+3 A+4 B+4",
        ],
    },
    board_config="ooooooooooBoAAooBoooooooooooooCCoooo",
)

# -- probability -----------------------------------------------------------------------

case(
    "coin_flip",
    "near the right probability only a rounded one is right",
    {
        1.0: ["+0.2734375", "2.734375e-01", "35/128", "0.2734", "0.27344"],
        0.0: ["-0.2734375", "0.273", "0.2734376", "0.27351"],
    },
    answer="0.2734375",
    rational={"numerator": 35, "denominator": 128},
)
case(
    "coin_flip",
    "zero is no small probability",
    {1.0: ["0.00003"], 0.0: ["0"]},
    answer="3.051757812e-05",
)


@pytest.mark.parametrize(("task", "entry", "answer", "score"), CASES)
def test_an_answer_is_paid(task, entry, answer, score):
    tolerance = 2e-3 if 0.0 < score < 1.0 else 0.0
    assert fixed_score(task, entry, answer) == pytest.approx(score, abs=tolerance)
