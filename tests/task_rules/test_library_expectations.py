"""What the library's own tests expect of its scorers, asked of ours."""

import itertools

import pytest

from rg_env.library import datasets, worker_jobs
from rg_env.reward.score import ScoringRules

EXACT = ScoringRules(normalize_answers=False)


def paid(task, entry, answer, rules=EXACT):
    """Score as in a run, guards and corrections included."""
    return worker_jobs.score_answers(task, {}, entry, [answer], rules)[0][0]


def entry_of(task, **params):
    return next(datasets.usable_entries(task, params, itertools.count(42)))


@pytest.mark.parametrize("task", ["simple_integration", "intermediate_integration"])
@pytest.mark.parametrize(
    ("answer", "variable", "integrand", "expected"),
    [
        ("x**2 + C", "x", "2*x", 1.0),
        ("X**3 - 5*X + C", "X", "3*X**2 - 5", 1.0),
        ("sin(x) + C", "x", "cos(x)", 1.0),
        ("x**2", "x", "2*x", 1.0),
        ("log(x)", "x", "1/x", 1.0),
        ("-log(cos(x)) + C", "x", "tan(x)", 1.0),
        ("ln(x) + C", "x", "1/x", 1.0),
        ("e**(2*x)/2 + C", "x", "exp(2*x)", 1.0),
        ("E**x", "x", "exp(x)", 1.0),
        ("asec(x)", "x", "1/(x**2*sqrt(1 - 1/x**2))", 1.0),
        ("log(abs(x)) + C", "x", "1/x", 1.0),
        ("x*atan(3*x) - log(Abs((3*x)**2 + 1))/6 + C", "x", "atan(3*x)", 1.0),
        ("x**2 + K", "x", "2*x", 1.0),
        ("sin(x) + D", "x", "cos(x)", 1.0),
        ("x**2 + C + 5 - 5", "x", "2*x", 1.0),
        ("(x**3)/3 - 2*x + C", "x", "x**2 - 2", 1.0),
        ("x**3 + C", "x", "2*x", 0.0),
        ("cos(X)", "X", "sin(X)", 0.0),
        ("x**2 +", "x", "2*x", 0.0),
        ("sin(x", "x", "cos(x)", 0.0),
        ("", "x", "2*x", 0.0),
        ("x**2 + C", "X", "2*X", 0.0),
        ("X**2 + C", "x", "2*x", 0.0),
    ],
)
def test_any_antiderivative_is_paid_and_nothing_else(
    task, answer, variable, integrand, expected
):
    entry = {"metadata": {"variable": variable, "integrand": integrand}}
    assert paid(task, entry, answer) == expected


COUNTDOWN = {"metadata": {"numbers": [44, 3], "target": 47}}
PUZZLE24 = {"metadata": {"numbers": [4, 5, 7, 8]}}
FACTORS = {
    "answer": "2 \N{MULTIPLICATION SIGN} 2 \N{MULTIPLICATION SIGN} 3",
    "metadata": {"number": 12, "factors": [2, 2, 3]},
}
ROLES = {
    "answer": "Zoey is a fool, and Riley is a sage.",
    "metadata": {
        "names": ["Zoey", "Riley"],
        "knight_knave_terms": {"knight": "sage", "knave": "fool"},
    },
}
CANDIDATE = {"metadata": {"solution": 54245.32}}
MATRIX = {"answer": "1 2 3\n4 5 6\n7 8 9"}
WORDS = {"metadata": {"sorted_words": ["apple", "banana", "cherry"]}}


@pytest.mark.parametrize(
    ("task", "entry", "scores"),
    [
        ("countdown", COUNTDOWN, {1.0: ["44 + 3"], 0.05: ["45+2"]}),
        ("puzzle24", PUZZLE24, {1.0: ["4 + 5 + 7 + 8"], 0.01: ["1+2+3", "4*5*7*8"]}),
        (
            "prime_factorization",
            FACTORS,
            {
                1.0: ["2\u00d72\u00d73", "2 \u00d7 3 \u00d7 2"],
                0.0: ["2 \u00d7 6", "2 \u00d7 5"],
            },
        ),
        (
            "knights_knaves",
            ROLES,
            {
                1.0: ["(Zoey, fool), (Riley, sage)", "(Riley,sage), (Zoey,fool)"],
                0.0: ["Zoey sage Riley fool"],
            },
        ),
        (
            "number_format",
            CANDIDATE,
            {
                1.0: ["54245.32", "54,245.32", "5.424532e+04"],
                0.0: ["54245.9", "test"],
            },
        ),
        ("polynomial_equations", {"answer": "4,-4.12"}, {1.0: ["4,-4.12"]}),
        ("polynomial_equations", {"answer": ""}, {0.0: ["1"]}),
        ("polynomial_equations", {"answer": "1"}, {0.0: [""]}),
        (
            "manipulate_matrix",
            MATRIX,
            {1.0: ["1   2 3\n4 5 6   \n7 8 9  "], 0.0: ["1 2 3\n4 5 6\n7 8 8"]},
        ),
        (
            "word_sorting",
            WORDS,
            {1.0: ["apple,banana,        cherry"], 0.0: ["gibberish"]},
        ),
    ],
)
def test_an_answer_is_paid_as_the_library_expects(task, entry, scores):
    found = {score: [paid(task, entry, a) for a in scores[score]] for score in scores}
    assert found == {score: [score] * len(scores[score]) for score in scores}


@pytest.mark.parametrize(
    ("answer", "least", "most"),
    [("((3.0 + 2.0i ) )", 1.0, 1.0), ("10 + 10i", 0.0, 0.01), ("inf + 2i", 0.0, 0.0)],
)
def test_a_complex_number_is_paid_by_its_distance_as_the_library_expects(
    answer, least, most
):
    entry = {"metadata": {"result": (3.0, 2.0)}}
    assert least <= paid("complex_arithmetic", entry, answer) <= most


def test_what_is_not_right_in_a_made_entry_is_paid_as_the_library_expects():
    assert paid("codeio", entry_of("codeio"), "{}") == 0.01
    assert paid("rearc", entry_of("rearc"), "[[invalid") == 0.0
    assert paid("rush_hour", entry_of("rush_hour"), "A+1 B-2") == 0.01
    word = entry_of("figlet_font", static_word="TESTY")
    assert 0.0 < paid("figlet_font", word, "WESTY") < 0.5
