"""Boards, hands and moves of games, by their rules."""

from __future__ import annotations

import importlib
import random
from types import SimpleNamespace

import pytest

from rg_env.scoring.scoring_rules import ScoringRules
from rg_env.task_rules.games.filled_boards import score_filled_matrix
from rg_env.task_rules.games.mahjong import result_of_last_round
from rg_env.task_rules.games.moves import MAX_WALKS, SIDE, read_board, walks_of
from rg_env.task_rules.games.sums import Expression
from rg_env.task_rules.games.tsumego import stones_captured_at
from rg_env.task_rules.table import fault_of
from rg_env.tasks import datasets, library
from tests.support.fixed_scores import both_scores, entries, fixed_score

# -- countdown -------------------------------------------------------------------------


@pytest.mark.parametrize("operators", [("+",), ("-", "/"), ("+", "-", "*", "/")])
@pytest.mark.parametrize("least", [-3, 0, 1])
def test_an_expression_has_the_value_of_its_formula(operators, least):
    sympy = importlib.import_module("sympy")
    config = SimpleNamespace(min_value=least, max_value=9, operators=operators)
    for seed in range(60):
        expression = Expression(random.Random(seed), config, 5)
        symbols = sympy.symbols("x:5")
        formula = expression.formula(symbols)
        values = dict(zip(symbols, expression.numbers, strict=True))
        assert formula.subs(values) == expression.value


# -- n_queens --------------------------------------------------------------------------

QUEENS = {1: 1, 2: 0, 3: 0, 4: 2, 5: 10, 6: 4, 7: 40, 8: 92, 9: 352}
"""Ways to place n queens, sequence A000170."""


@pytest.mark.parametrize("n", QUEENS)
def test_all_boards_of_queens_are_found_in_the_order_of_their_columns(n):
    library.describe()
    games = importlib.import_module("reasoning_gym.games.n_queens")
    boards = games.NQueensDataset._get_all_solutions(None, n)
    placed = [tuple(row.index("Q") for row in board) for board in boards]
    assert len(placed) == QUEENS[n] and placed == sorted(set(placed))
    for columns in placed:
        falling = {column - row for row, column in enumerate(columns)}
        rising = {column + row for row, column in enumerate(columns)}
        assert len(set(columns)) == len(falling) == len(rising) == n


# -- mahjong ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("hand", "added", "result"),
    [
        ("AAX", "A", "Peng"),
        ("AABC", "A", "Peng"),
        ("BCX", "A", "Chi"),
        ("ACX", "B", "Chi"),
        ("ABX", "C", "Chi"),
        ("ABBX", "C", "Chi"),
        ("ABX", "D", "Pass"),
        ("AX", "A", "Pass"),
    ],
)
@pytest.mark.parametrize("removed", [0, -1])
def test_the_result_is_that_of_the_hand_before_a_card_is_removed(
    hand, added, result, removed
):
    gone = hand[removed]
    left = hand.replace(gone, "", 1) + added
    rounds = [{"add": added, "remove": gone, "cards": left}]
    assert result_of_last_round(rounds) == result


# -- rush_hour -------------------------------------------------------------------------


def solve_cars(config: str) -> str:
    """Search for moves that free the red car, breadth first."""
    cars, walls = read_board(config)
    start = tuple((letter, *cars[letter]) for letter in sorted(cars))
    waiting, seen = [(start, "")], {start}
    for state, moves in waiting:
        taken = {cell for _, *cells in state for cell in cells} | walls
        if (2, SIDE - 1) in state[0]:
            return moves.strip()
        for index, (letter, *cells) in enumerate(state):
            down = int(cells[0][0] != cells[1][0])
            for sign in (1, -1):
                moved = [(r + sign * down, c + sign * (1 - down)) for r, c in cells]
                free = taken.isdisjoint(set(moved) - set(cells))
                if not free or not all(0 <= i < SIDE for cell in moved for i in cell):
                    continue
                after = (*state[:index], (letter, *moved), *state[index + 1 :])
                if after not in seen:
                    seen.add(after)
                    waiting.append((after, f"{moves} {letter}{sign:+d}"))
    raise AssertionError("no solution")


def test_a_legal_solution_frees_the_car_and_a_blocked_move_spoils_it() -> None:
    params = {"min_moves": 1, "max_moves": 8}
    for seed in range(3):
        entry = datasets.make_entry("rush_hour", params, seed)
        moves = solve_cars(entry["metadata"]["board_config"])
        assert fixed_score("rush_hour", entry, moves) == 1.0
        assert both_scores("rush_hour", entry, f"{moves} A+4") == (1.0, 0.01)
        assert fixed_score("rush_hour", entry, f"{moves} or not") == 0.0


# -- survo -----------------------------------------------------------------------------

ENTRY = {
    "metadata": {
        "puzzle": [[0, 0, 5], [0, 0, 5], [5, 5, 10]],
        "candidate_numbers": [2, 3, 3, 2],
    }
}
GOLD = "2 3 5\n3 2 5\n5 5 10"


def score(answer):
    return score_filled_matrix(answer, ENTRY, lambda text: float(text == GOLD))


@pytest.mark.parametrize("answer", [GOLD, "3 2 5\n2 3 5\n5 5 10"])
def test_each_filling_is_paid_in_full(answer):
    assert score(answer) == 1.0


@pytest.mark.parametrize(
    "answer",
    [
        "1 4 5\n4 1 5\n5 5 10",  # other numbers than those given
        "3 2 5\n3 2 5\n5 5 10",  # the columns' sums are wrong
        "3 2 5\n2 3 5\n5 5 11",  # a given number is another one
        "3 2 5\n2 3 5",
        "3 2 5\n2 3 5\n5 5 10\n0 0 0",
        "3 2 5 1\n2 3 5\n5 5 10",
        "3 2 5\n2 3 5\n5 5 10 or 7.5",
        "3 2 5\n2 3 5\n5 5 " + "9" * 5_000,
        "",
    ],
)
def test_nothing_else_is_paid(answer):
    assert score(answer) == 0.0


# -- sokoban ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("moves", "between", "walks"),
    [
        ("LRU", ["", ""], ["LRU"]),
        ("LRU", [" -> ", "->"], ["LRU"]),
        ("LRUD", [", ", ",\n", ", "], ["LR", "UD"]),
        ("LRUD", ["], [", ", ", ", "], ["L", "RUD"]),
        (["LR", "U"], [" "], ["LR", "U"]),
        ("L", [], ["L"]),
    ],
)
def test_a_walk_ends_where_something_else_stands_between_the_moves(
    moves, between, walks
):
    assert walks_of(list(moves), between) == walks


@pytest.mark.slow
@pytest.mark.parametrize(
    "pair", ["{0}\n{1}", "{0}, {1}", "{1}\n\n{0}", "{0}; {1}", "{0} {1}"]
)
def test_a_solution_beside_another_walk_is_not_paid(pair):
    for entry in entries("sokoban"):
        gold = entry["answer"]
        assert fixed_score("sokoban", entry, pair.format(gold, "LR")) == 0.0
        arrows = " -> ".join(gold)
        assert fixed_score("sokoban", entry, pair.format(arrows, "L -> R")) == 0.0


def test_a_solution_in_lines_is_one_walk():
    for entry in entries("sokoban"):
        gold = entry["answer"]
        lines = "\n".join(gold[at : at + 7] for at in range(0, len(gold), 7))
        assert fixed_score("sokoban", entry, lines) == 1.0


def test_an_answer_in_very_many_pieces_is_none():
    [entry, *_] = entries("sokoban")
    answer = "LR\n" * MAX_WALKS + entry["answer"]
    assert fixed_score("sokoban", entry, answer) == 0.0


# -- tsumego ---------------------------------------------------------------------------

MOST = "capture as many white stones as possible"
ANY = "capture white stones"


def board(text):
    return [list(row) for row in text.split()]


def test_a_stone_with_one_liberty_is_captured_there():
    assert stones_captured_at(board(".X. XO. .X.")) == {"C2": 1}


def test_a_group_with_two_liberties_is_not():
    assert not stones_captured_at(board(".X. XOO .X."))


def test_a_group_counts_all_its_stones():
    assert stones_captured_at(board("XOO .OX XX.")) == {"A2": 3}


def test_a_move_that_takes_two_groups_counts_both():
    assert stones_captured_at(board("XXX O.O XXX")) == {"B2": 2}


def item(text, answer, question):
    metadata = {"board": board(text)}
    return {"question": question, "answer": answer, "metadata": metadata}


THREE_OR_ONE = "X.OX OOXX XXXO ...."
ONE_OR_ONE = "XOXXOX X.XX.X"


@pytest.mark.parametrize(
    ("text", "answer", "question", "is_used"),
    [
        (THREE_OR_ONE, "B4", MOST, True),
        (THREE_OR_ONE, "D1", MOST, False),
        (THREE_OR_ONE, "B4", ANY, False),
        (ONE_OR_ONE, "B1", MOST, False),
        (ONE_OR_ONE[:3] + " X.X", "B1", ANY, True),
    ],
)
def test_a_question_has_one_best_capture(text, answer, question, is_used):
    assert (fault_of("tsumego", item(text, answer, question)) is None) == is_used


@pytest.mark.parametrize("answer", ["G6 = G8", "g6 = g8", "G6: G8", "a1 = G8"])
def test_a_point_is_no_name_of_another(answer):
    normalized = ScoringRules().normalizer("tsumego", item("....", "G8", ANY))
    assert normalized(answer) != "G8"
