"""Scores of answers by the rules of their task, as in a run.

A right answer may be written in several ways, and no wrong one becomes right.
"""

import pytest

from rg_env.library import datasets
from tests.support.fixed_scores import run_score

CASES = []


def case(task, scores, answer="", question="", **metadata):
    """Add answers by their scores, to an entry that is written here."""
    entry = {"answer": answer, "question": question, "metadata": metadata}
    for score, texts in scores.items():
        for text in texts:
            name = f"{task}-{text:.20}"
            CASES.append(pytest.param(task, entry, text, score, id=name))


@pytest.mark.parametrize(("task", "entry", "answer", "score"), CASES)
def test_an_answer_has_its_score(task, entry, answer, score):
    tolerance = 2e-3 if 0.0 < score < 1.0 else 0.0
    assert run_score(task, entry, answer) == pytest.approx(score, abs=tolerance)


# -- algebra ---------------------------------------------------------------------------

# An equation without solution is answered by a text that denies one.
case(
    "polynomial_equations",
    {
        1.0: ["", '""', "[]", "no real solutions", "None", "There are no real roots"],
        0.0: ["I do not know", "a real root exists", "?", "x", "-", "1"],
    },
)
# Only filler words stand beside solutions.
case(
    "polynomial_equations",
    {
        1.0: ["1.5, -2.0"],
        0.0: [
            *("the solutions are, 1.5, -2.0", "1.5, -2.0, I think not", ""),
            *("1.5, -2.0, or 4.0", "1.5, -2.0, ?"),
        ],
    },
    answer="1.5, -2.0",
    variable="x",
)
# A root is rounded or cut off at four places; zero and a long exponent are none.
case(
    "polynomial_equations",
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
# An exact root is not cut off.
case(
    "polynomial_equations",
    {0.5: ["0.4999"]},
    answer="0.5",
    real_solutions=[0.5],
    polynomial_expr="2*x - 1",
    variable="x",
)
# Any antiderivative, with a constant of a usual name.
ANTIDERIVATIVES = """
2*x                              | 1.0 | x**2
2*x                              | 1.0 | x**2 + C + 5 - 5
2*x                              | 1.0 | x**2 + C
2*x                              | 1.0 | x**2 + c
2*x                              | 1.0 | x**2 + k
2*x                              | 1.0 | x**2 + K
2*x                              | 1.0 | x**2 + D
2*x                              | 0.0 | x**3 + C
2*x                              | 0.0 | x**2 +
2*x                              | 0.0 |
2*x                              | 0.0 | x**2 + C*x
2*x                              | 0.0 | x**2 + C + y
3*X**2 - 5                       | 1.0 | X**3 - 5*X + C
3*X**2 - 5                       | 0.0 | X**3 - 5 + C
1/x                              | 1.0 | ln(x) + C
1/x                              | 1.0 | log(abs(x)) + C
1/x                              | 0.0 | log(x
exp(2*x)                         | 1.0 | e**(2*x)/2 + C
exp(2*x)                         | 1.0 | E**(2*x)/2
exp(2*x)                         | 0.0 | E**(2*x)
tan(x)                           | 1.0 | -log(cos(x)) + C
1/(x**2*sqrt(1 - 1/x**2))        | 1.0 | asec(x)
atan(3*x)                        | 1.0 | x*atan(3*x) - log(Abs((3*x)**2 + 1))/6 + C
1/(x + 1)                        | 0.0 | log(abs(x) + 1)
-5*sin(5*x - 4)*cos(5*x - 4)     | 1.0 | cos(10*x - 8)/4 + C
-5*sin(5*x - 4)*cos(5*x - 4)     | 0.0 | cos(10*x - 8)/5 + C
15*sqrt(5*x + 1)                 | 1.0 | 2*(5*x + 1)**1.5 + C
15*sqrt(5*x + 1)                 | 1.0 | 2*sqrt((5*x + 1)**3) + C
15*sqrt(5*x + 1)                 | 0.0 | 2*(5*x + 1)**1.5 + x/10**15 + C
7*x**4 - 3/5                     | 1.0 | 1.4*x**5 - 0.6*x + C
10*x**5 + sin(2*x)               | 0.0 | 1.66666667*x**6 + sin(x)**2 + C
"""
"""Integrands, scores and answers; some slopes the library cannot simplify. The absolute
value of a part of a logarithm stays."""

for row in ANTIDERIVATIVES.strip().splitlines():
    integrand, score, answer = map(str.strip, row.split("|"))
    variable = "X" if "X" in integrand else "x"
    for task in ("simple_integration", "intermediate_integration"):
        metadata = {"variable": variable, "integrand": integrand}
        case(task, {float(score): [answer]}, **metadata)
# A number may stand before a product that is multiplied out.
case(
    "polynomial_multiplication",
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
# One before a sum of the question is not multiplied out.
case(
    "polynomial_multiplication",
    {0.0: ["8*(3*z + 2)"]},
    answer="24*z + 16",
    question="Calculate the following: 8*(3*z + 2)",
    result="24*z + 16",
    variables=["z"],
)
case(
    "complex_arithmetic",
    {1.0: ["((3.0 + 2.0i ) )"], 2e-5: ["10 + 10i"], 0.0: ["inf + 2i"]},
    answer="3.0 + 2.0i",
    result=(3.0, 2.0),
)

# -- arithmetic ------------------------------------------------------------------------

case("gsm_symbolic", {1.0: ["-1"], 0.01: ["1"]}, answer="-1")
# What denies or changes the number is wrong.
case(
    "gsm_symbolic",
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
# A decimal scores 1.0 in all digits that are asked for.
case(
    "decimal_arithmetic",
    {
        1.0: ["0.668062930187", "0.6680629301870"],
        0.0: ["0.668062930188", "0.66806"],
    },
    answer="0.668062930187",
    question=QUOTIENT,
)
# One that is rounded once is right where the library rounds more.
case(
    "decimal_arithmetic",
    {1.0: ["0.668062930187", "0.668062930184"], 0.0: ["0.668062930185"]},
    answer="0.668062930184",
    question=QUOTIENT,
)
# A candidate scores 1.0 as it is shown.
case(
    "number_format",
    {
        1.0: ["592641326.305", "592,641,326.305", "5.926413263049999e+08"],
        0.0: ["592641326.301", "592641326.306", "592641317.986", "test"],
    },
    answer="592641326.305",
    solution=592641326.305,
    candidates=[592641317.986, 592641326.305, 592641326.301],
    formatted_candidates=["592,641,317.986", "5.926413263049999e+08", "592641326.301"],
)
# Its noise need not be copied.
case(
    "number_format",
    {
        1.0: ["123456784.563", "123,456,784.5630001"],
        0.0: ["123456784.564", "123456784.562"],
    },
    answer="123456784.5630001",
    solution=123456784.5630001,
    candidates=[123456784.5630001, 123456784.564, 123456785.0],
    size="smallest",
)
case(
    "prime_factorization",
    {1.0: ["2\u00d72\u00d73", "2 \u00d7 3 \u00d7 2"], 0.0: ["2 \u00d7 6"]},
    answer="2 \u00d7 2 \u00d7 3",
    number=12,
    factors=[2, 2, 3],
)


# -- algorithmic -----------------------------------------------------------------------

# A pooled matrix is right to two decimals.
case(
    "pool_matrix",
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
# A column may be written as a row.
case(
    "pool_matrix",
    {1.0: ["7 8"], 0.0: ["7 9"]},
    answer="7\n8",
    solution=[[7.0], [8.0]],
)
case(
    "manipulate_matrix",
    {1.0: ["1   2 3\n4 5 6   \n7 8 9  "], 0.0: ["1 2 3\n4 5 6\n7 8 8"]},
    answer="1 2 3\n4 5 6\n7 8 9",
)
case(
    "word_sorting",
    {1.0: ["apple,banana,        cherry"], 0.0: ["gibberish"]},
    answer="apple, banana, cherry",
    sorted_words=["apple", "banana", "cherry"],
)

# -- logic -----------------------------------------------------------------------------

case(
    "knights_knaves",
    {
        1.0: ["(Zoey, fool), (Riley, sage)", "(Riley,sage), (Zoey,fool)"],
        0.0: ["Zoey sage Riley fool"],
    },
    answer="Zoey is a fool, and Riley is a sage.",
    names=["Zoey", "Riley"],
    knight_knave_terms={"knight": "sage", "knave": "fool"},
)

# -- games -----------------------------------------------------------------------------

# Only the numbers given make the result.
case(
    "puzzle24",
    {
        1.0: [" 10 * (8-5) - 6\n"],
        0.01: ["4*6", "8*5*10*6", "(8+5)*10/6 + 7/3", "24"],
        0.0: ["", "10*(8 - 5) - 6.0"],
    },
    answer="10*(8 - 5) - 6",
    numbers=[8, 5, 10, 6],
)
case("countdown", {1.0: ["44 + 3"], 0.05: ["45+2"]}, numbers=[44, 3], target=47)
# Once the red car is out, what is possible costs nothing.
case(
    "rush_hour",
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
# Each filling with the given numbers and sums scores 1.0.
case(
    "survo",
    {
        1.0: ["2 3 5\n3 2 5\n5 5 10", "3 2 5\n2 3 5\n5 5 10"],
        0.0: [
            *("1 4 5\n4 1 5\n5 5 10", "3 2 5\n3 2 5\n5 5 10", "3 2 5\n2 3 5\n5 5 11"),
            *("3 2 5\n2 3 5", "3 2 5\n2 3 5\n5 5 10\n0 0 0", "3 2 5 1\n2 3 5\n5 5 10"),
            *("3 2 5\n2 3 5\n5 5 10 or 7.5", "3 2 5\n2 3 5\n5 5 " + "9" * 5_000, ""),
        ],
    },
    answer="2 3 5\n3 2 5\n5 5 10",
    puzzle=[[0, 0, 5], [0, 0, 5], [5, 5, 10]],
    candidate_numbers=[2, 3, 3, 2],
)

# -- probability and geometry ----------------------------------------------------------

# Near the right probability only a rounded one is right.
case(
    "coin_flip",
    {
        1.0: ["+0.2734375", "2.734375e-01", "35/128", "0.2734", "0.27344"],
        0.0: ["-0.2734375", "0.273", "0.2734376", "0.27351"],
    },
    answer="0.2734375",
    rational={"numerator": 35, "denominator": 128},
)
# Zero is no small probability.
case("coin_flip", {1.0: ["0.00003"], 0.0: ["0"]}, answer="3.051757812e-05")
# A figure is right at the three decimals that are asked for.
for kind, scores in {
    "orthocenter": {1.0: ["(1.063, -2)"], 0.01: ["(1.064, -2)"]},
    "incircle_radius": {1.0: ["3.368"], 0.0: ["3.368\u00b0"]},
    "angle_measure": {1.0: ["63.435"]},
}.items():
    case(
        "advanced_geometry",
        scores,
        answer="63.43\u00b0",
        task_type=kind,
        orthocenter_approx=(1.0625, -2.0),
        ortho=("17/16", "-2"),
        incircle_radius_approx=3.3675,
        incircle_radius_exact="3.3675",
        angle_ABC_degrees=63.4349,
    )


# -- items of the library --------------------------------------------------------------

ITEMS = r"""
acre 0                       1.0   GOLD
acre 0                       0.0   on will be GOLD
acre 0                       0.0   on is GOLD
advanced_geometry 92100002   1.0   GOLD
advanced_geometry 92100002   1.0   108.435°
advanced_geometry 92100002   0.05  108.436°
aiw 7000                     1.0   GOLD
aiw 7000                     0.0   brothers: GOLD
codeio 42                    0.01  {}
coin_flip 611202             0.0   \boxed{\frac{1}{256}}
color_cube_rotation 7000     1.0   The color of the left side is GOLD
complex_arithmetic 611201    1.0   16.0i + 9.0
count_bits 7000              1.0   The number of 1 bits is GOLD
count_primes 7000            1.0   There are GOLD primes
course_schedule 611201       1.0   GOLD,
dice 7000                    1.0   The odds are GOLD
dice 611201                  0.0   3358/5120
figlet_font 42               0.3   STENTO
fraction_simplification 611201 0.05  9163/17171
gcd 7000                     1.0   GCD = GOLD
gcd 7000                     1.0   The GCD of 46 and 348 is GOLD
gcd 7000                     1.0   **GCD:** GOLD
gcd 7000                     1.0   gcd(46, 348) = GOLD
gcd 7000                     1.0   The greatest common divisor of 46 and 348 = GOLD
gcd 7000                     0.0   LCM = GOLD
gcd 7000                     0.0   46 = GOLD
gcd 7000                     0.0   46: GOLD
gcd 7000                     0.0   348 is GOLD
gcd 7000                     0.0   at least GOLD
gcd 7000                     0.0   The GCD of 46 and 349 is GOLD
gsm_symbolic 119             1.0   GOLD
gsm_symbolic 119             0.0   GOLD dollars
intermediate_integration 89000011 1.0   x*cos(x) - sin(x)
intermediate_integration 89000011 0.0   -Integral(x*sin(x), x) + C
largest_island 7000          1.0   The maximum area of an island is GOLD
lcm 7000                     1.0   The least common multiple of these numbers is GOLD.
lcm 7000                     0.0   GCD: GOLD
leg_counting 7000            1.0   GOLD
leg_counting 7000            0.0   ducks: GOLD
leg_counting 95805393        1.0   GOLD
leg_counting 95805393        1.0   136
leg_counting 95805393        0.0   137
manipulate_matrix 95805395   1.0   GOLD
manipulate_matrix 95805395   1.0   0
manipulate_matrix 95805395   0.0   2
maze 7000                    1.0   GOLD
maze 7000                    0.0   The maximum number of steps is GOLD
number_filtering 7000        1.0   New list: GOLD
pool_matrix 95805398         1.0   GOLD
pool_matrix 95805398         1.0   9 8
pool_matrix 95805398         0.0   9 8\n5 4
power_function 7006          1.0   GOLD
power_function 7006          1.0   -1.00e+0
power_function 7006          0.01  1.1
power_function 611201        0.01  -5.28e-11
prime_factorization 7000     1.0   The prime factorization is GOLD
products 7000                1.0   The result of the multiplication is GOLD.
propositional_logic 611210   0.0   R = P ∨ ¬Q
rearc 42                     0.0   [[invalid
shortest_path 0              0.0   left will be GOLD
shortest_path 0              0.0   right is GOLD
sokoban 611201               1.0   llluuldllulduurdrulurddrdldrr
string_synthesis 7008        1.0   GOLD
string_synthesis 7008        1.0   0 2 0 0 1 0 1 1 0
string_synthesis 7008        0.0   0 2 0 0 0 1 0 1 1
syllogism 611201             1.0   GOLD,
"""  # noqa: RUF001 - the library's own signs
"""Task, seed, score and answer: GOLD is the right one, \\n ends a line."""


@pytest.mark.parametrize("row", ITEMS.strip().splitlines())
def test_an_answer_to_an_item_of_the_library_has_its_score(row):
    task, seed, score, answer = row.split(maxsplit=3)
    entry = datasets.make_entry(task, {}, int(seed), checked=False)
    answer = answer.replace("GOLD", str(entry["answer"])).replace("\\n", "\n")
    assert run_score(task, entry, answer) == pytest.approx(float(score))
