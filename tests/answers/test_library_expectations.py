"""What the library's own tests expect of its scorers, asked of the corrected ones."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from rg_env.answers.fixes.library_expectations import OTHER_SCORES
from rg_env.items.installed_fixes import corrected
from rg_env.tasks import library


def paid(task: str, entry: dict[str, Any], answer: Any) -> float:
    """Score as the library's tests do: the dataset's own method, corrected."""
    scorer = library.scoring_dataset(task, {}).score_answer
    return float(corrected(task, scorer)(answer, entry))


def entry_of(task: str, **params: Any) -> dict[str, Any]:
    return next(library.usable_entries(task, params, itertools.count(42)))


@pytest.mark.parametrize("task", ["simple_integration", "intermediate_integration"])
@pytest.mark.parametrize(
    ("answer", "variable", "integrand", "expected"),
    [
        ("x**2 + C", "x", "2*x", 1.0),
        ("X**3 - 5*X + C", "X", "3*X**2 - 5", 1.0),
        ("sin(x) + C", "x", "cos(x)", 1.0),
        ("x**2", "x", "2*x", 1.0),
        ("log(x)", "x", "1/x", 1.0),
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
def test_an_antiderivative_is_paid_as_the_library_expects(
    task: str, answer: str, variable: str, integrand: str, expected: float
) -> None:
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
    ("task", "entry", "answer", "expected"),
    [
        ("countdown", COUNTDOWN, "44 + 3", 1.0),
        ("countdown", COUNTDOWN, "45+2", 0.05),
        ("countdown", COUNTDOWN, "a wrong solution", 0.01),
        ("countdown", COUNTDOWN, "", 0.01),
        ("countdown", COUNTDOWN, None, 0.01),
        ("puzzle24", PUZZLE24, "4 + 5 + 7 + 8", 1.0),
        ("puzzle24", PUZZLE24, "1+2+3", 0.01),
        ("puzzle24", PUZZLE24, "4*5*7*8", 0.01),
        ("puzzle24", PUZZLE24, "not a valid expression", 0.01),
        ("puzzle24", PUZZLE24, None, 0.01),
        ("prime_factorization", FACTORS, "2\u00d72\u00d73", 1.0),
        ("prime_factorization", FACTORS, "2 \u00d7 3 \u00d7 2", 1.0),
        ("prime_factorization", FACTORS, "2 \u00d7 6", 0.5),
        ("prime_factorization", FACTORS, "2 \u00d7 5", 0.01),
        ("prime_factorization", FACTORS, None, 0.0),
        ("knights_knaves", ROLES, "(Zoey, fool), (Riley, sage)", 1.0),
        ("knights_knaves", ROLES, "(Riley,sage), (Zoey,fool)", 1.0),
        ("knights_knaves", ROLES, "Zoey sage Riley fool", 0.0),
        ("number_format", CANDIDATE, "54245.32", 1.0),
        ("number_format", CANDIDATE, "54,245.32", 1.0),
        ("number_format", CANDIDATE, "5.424532e+04", 1.0),
        ("number_format", CANDIDATE, "54245.9", 0.0),
        ("number_format", CANDIDATE, "test", 0.0),
        ("polynomial_equations", {"answer": "4,-4.12"}, "4,-4.12", 1.0),
        ("polynomial_equations", {"answer": ""}, "1", 0.0),
        ("polynomial_equations", {"answer": "1"}, "", 0.0),
        ("manipulate_matrix", MATRIX, "1   2 3\n4 5 6   \n7 8 9  ", 1.0),
        ("manipulate_matrix", MATRIX, "1 2 3\n4 5 6\n7 8 8", 0.0),
        ("word_sorting", WORDS, "apple,banana,        cherry", 1.0),
        ("word_sorting", WORDS, "banana, cherry, apple", 0.2),
        ("word_sorting", WORDS, "gibberish", 0.0),
    ],
)
def test_an_answer_is_paid_as_the_library_expects(
    task: str, entry: dict[str, Any], answer: str | None, expected: float
) -> None:
    assert paid(task, entry, answer) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("answer", "least", "most"),
    [
        ("((3.0 + 2.0i ) )", 1.0, 1.0),
        ("3.1 + 2i", 0.9, 0.999),
        ("4 + 2i", 0.3, 0.4),
        ("10 + 10i", 0.0, 0.01),
        ("inf + 2i", 0.0, 0.0),
        (None, 0.0, 0.0),
    ],
)
def test_a_complex_number_is_paid_by_its_distance_as_the_library_expects(
    answer: str | None, least: float, most: float
) -> None:
    entry = {"metadata": {"result": (3.0, 2.0)}}
    assert least <= paid("complex_arithmetic", entry, answer) <= most


def test_what_is_not_right_in_a_made_entry_is_paid_as_the_library_expects() -> None:
    assert paid("codeio", entry_of("codeio"), "{}") == 0.01
    assert paid("rearc", entry_of("rearc"), "[[invalid") == 0.0
    assert paid("rush_hour", entry_of("rush_hour"), "A+1 B-2") == 0.01
    word = entry_of("figlet_font", static_word="TESTY")
    assert paid("figlet_font", word, "WESTY") == pytest.approx(0.4)
    board = entry_of("game_of_life", grid_size_x=5, grid_size_y=5, filled_cells=9)
    rows = json.loads(board["answer"])
    rows[0][0] = 1 - rows[0][0]
    assert 0.1 < paid("game_of_life", board, json.dumps(rows)) < 1.0


def _futoshiki() -> tuple[dict[str, Any], str]:
    entry = entry_of("futoshiki", min_board_size=4, max_board_size=4)
    return entry, f"This is the board {entry['answer']}\nwith words around it."


def _paid_otherwise(task: str) -> list[float]:
    """Return what is paid where the library's tests expect something else."""
    if task == "futoshiki":
        entry, talk = _futoshiki()
        return [paid(task, entry, talk), paid(task, entry, talk.replace("1", "2"))]
    if task == "knights_knaves":
        return [paid(task, ROLES, "Zoey is a fool and Riley is a fool.")]
    if task == "number_sorting":
        numbers = {"direction": "ascending", "sorted_numbers": ["-97.8", "-92.8"]}
        entry = {"answer": "['-97.8', '-92.8']", "metadata": numbers}
        return [paid(task, entry, "['-97.8', '-92.85']")]
    return [paid(task, entry_of(task), "invalid")]


@pytest.mark.parametrize("task", sorted({other.task for other in OTHER_SCORES}))
def test_the_table_of_other_scores_says_what_is_paid(task: str) -> None:
    said = [other.paid for other in OTHER_SCORES if other.task == task]
    assert _paid_otherwise(task) == said
