"""A grid is read however it is drawn, and keeps each of its cells in its place."""

import pytest

from rg_env.scoring.scoring_rules import ScoringRules
from rg_env.task_rules.table import rules_of

normalizer = ScoringRules().normalizer

GRID = "1 2\n3 4"
DRAWN = {
    "commas": "1,2\n3, 4",
    "tabs": "1\t2\n3\t4",
    "bars": "1|2\n3 | 4",
    "table": "| 1 | 2 |\n| 3 | 4 |",
    "markdown": "| 1 | 2 |\n|---|:-:|\n| 3 | 4 |",
    "markdown without a head": "|   |   |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |",
    "box": "+---+---+\n| 1 | 2 |\n+---+---+\n| 3 | 4 |\n+---+---+",
    "lines of Unicode": "\u2502 1 \u2502 2 \u2502\n\u251c\u2500\u253c\u2500\u2524\n3 4",
    "JSON": "[[1, 2], [3, 4]]",
    "JSON in lines": "[\n  [1, 2],\n  [3, 4]\n]",
    "tuples": "((1, 2), (3, 4))",
    "strings": '[["1", "2"], ["3", "4"]]',
    "a list in each line": "[1, 2]\n[3, 4]",
    "numpy": "[[1 2]\n [3 4]]",
    "LaTeX": "\\begin{bmatrix} 1 & 2 \\\\ 3 & 4 \\end{bmatrix}",
    "LaTeX in lines": "\\begin{pmatrix}\n1 & 2 \\\\\n3 & 4\n\\end{pmatrix}",
    "array": "\\left[\\begin{array}{cc} 1 & 2 \\\\ 3 & 4 \\end{array}\\right]",
    "matrix": r"\left[\begin{matrix} 1 & 2 \\ 3 & 4 \\ \end{matrix}\right]",
    "lines of LaTeX": r"\begin{array}{|c|c|} \hline 1 & 2 \\ \hline 3 & 4 \end{array}",
    "rows with names": "Row 1: 1 2\nRow 2: 3 4",
    "rows from 0": "r0: 1 2\nr1: 3 4",
    "label": "Rotated matrix:\n1 2\n3 4",
    "label and fence": "The final grid is:\n```text\n1 2\n3 4\n```",
    "code": "`1 2`\n`3 4`",
    "empty lines": "1 2\n\n3 4\n",
    "semicolons": "1 2; 3 4",
}


@pytest.mark.parametrize("drawn", DRAWN.values(), ids=DRAWN)
@pytest.mark.parametrize("task", ["rotate_matrix", "arc_agi", "pool_matrix", "survo"])
def test_a_grid_is_written_with_spaces(task, drawn):
    assert normalizer(task, {})(drawn) == GRID


@pytest.mark.parametrize("task", ["rotate_matrix", "arc_agi"])
@pytest.mark.parametrize(
    "text",
    [
        *("1 2\n3", "1 2\n3 4 5", "1 2\n3 x", "1 2\n3 4?", "1 2\n3 4\nor\n1 2\n3 5"),
        *("1 2\n3 4 (or 5)", "[[1, 2], [3, 4]] or [[1, 2], [3, 5]]", "[[1, 2], [3]]"),
        *("[[1, [2]], [3, 4]]", "not this:\n1 2\n3 4", "1 2\n3 4 # no", "---", ""),
        *("Row 2: 1 2\nRow 1: 3 4", "Row 1: 1 2\n3 4"),
    ],
)
def test_what_is_no_grid_stays_as_it_is(task, text):
    assert rules_of(task).notation(text, {}) == text


def test_two_grids_are_not_one():
    assert (
        rules_of("arc_agi").notation("1 2\n3 4\n\n1 2\n3 5", {}) == "1 2\n3 4\n1 2\n3 5"
    )


@pytest.mark.parametrize(
    ("task", "text", "right"),
    [
        ("arc_agi", "12\n34", GRID),
        ("arc_1d", "0, 0, 4", "0 0 4"),
        ("arc_1d", "[0,0,4]", "0 0 4"),
        ("arc_1d", "004", "0 0 4"),
        ("sudoku", "1 2 | 3 4\n----+----\n3 4 | 1 2", "1 2 3 4\n3 4 1 2"),
        ("kakurasu", "01\n10", "0 1\n1 0"),
        ("game_of_life", "[[0, 1],\n [1, 0]]", "[[0,1],[1,0]]"),
        ("game_of_life", "0 1\n1 0", "[[0,1],[1,0]]"),
        ("n_queens", '[["_", "Q"], ["Q", "_"]]', "_ Q\nQ _"),
        ("n_queens", "_Q\nQ_", "_ Q\nQ _"),
        ("n_queens", "| _ | Q |\n|---|---|\n| Q | _ |", "_ Q\nQ _"),
        ("n_queens", "[[_, Q], [Q, _]]", "_ Q\nQ _"),
        ("n_queens", r"\_ Q" + "\n" + r"Q \_", "_ Q\nQ _"),
        (
            "modulo_grid",
            "\u2705 \u274c\n\u274c \u2705\ufe0f",
            "\u2705\u274c\n\u274c\u2705",
        ),
        ("pool_matrix", "[[4.50, -1], [2, 0.25]]", "4.50 -1\n2 0.25"),
    ],
)
def test_cells_of_one_sign_may_stand_together(task, text, right):
    assert rules_of(task).notation(text, {}) == right
    assert rules_of(task).notation(right, {}) == right


def test_numbers_of_more_digits_stay_whole():
    assert rules_of("binary_matrix").notation("12\n34", {}) == "12\n34"


FUTOSHIKI = {
    "answer": "1 < 2\n\u2227    \n2   1",
    "metadata": {"board_size": 2},
}


@pytest.mark.parametrize(
    "text",
    ["1 2\n2 1", "| 1 | 2 |\n| 2 | 1 |", "1 < 2\n^\n2 1", "[[1, 2], [2, 1]]", "12\n21"],
)
def test_the_rules_between_numbers_may_be_left_out(text):
    assert rules_of("futoshiki").notation(text, FUTOSHIKI) == FUTOSHIKI["answer"]


@pytest.mark.parametrize(
    "text", ["1 > 2\nv\n2 1", "1 2\n2", "1 2 3\n2 1 3", "1 2\n2 x"]
)
def test_other_rules_or_another_size_stay_as_they_are(text):
    assert rules_of("futoshiki").notation(text, FUTOSHIKI) == text


def test_another_number_stays_another():
    assert (
        rules_of("futoshiki").notation("1 2\n1 2", FUTOSHIKI).split("\n")[2] == "1   2"
    )
