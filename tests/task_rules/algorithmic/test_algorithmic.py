"""What boards, words and graphs are paid, and how boards of life evolve."""

from __future__ import annotations

import importlib
import json

import numpy as np
import pytest

from rg_env.library import datasets, registry
from rg_env.library.scales import load_shipped
from tests.support.fixed_scores import entries, entry_of, fixed_score, mean_score

# -- algorithmic_fixes -----------------------------------------------------------------


def test_the_dead_board_is_paid_only_where_it_is_right():
    dead = json.dumps([[0] * 10] * 10)
    for entry in entries("game_of_life"):
        fixed = fixed_score("game_of_life", entry, dead)
        assert fixed == float("1" not in entry["answer"])


@pytest.mark.parametrize("form", ["false: {}", "It is false that it is {}", "{0} {0}"])
def test_a_verdict_is_given_once(form):
    for entry in entries("game_of_life_halting"):
        answer = form.format(entry["answer"])
        assert fixed_score("game_of_life_halting", entry, answer) == 0.0


@pytest.mark.parametrize("task", ["figlet_font", "spell_backward"])
@pytest.mark.parametrize("form", ['"{}"', "[{}]", ">{}", "\u200b{}", "{}!"])
def test_no_sign_around_a_wrong_word_raises_its_score(task, form):
    for entry in entries(task):
        wrong = entry["answer"][1:] + entry["answer"][:1]
        plain, dressed = (
            fixed_score(task, entry, text) for text in (wrong, form.format(wrong))
        )
        assert dressed <= plain


@pytest.mark.parametrize("first", [True, False])
def test_a_letter_has_one_digit(first):
    for entry in entries("cryptarithm"):
        gold = entry["answer"]
        other = f"{gold[:2]}{(int(gold[2]) + 1) % 10}"
        answer = f"{other},{gold}" if first else f"{gold},{other}"
        assert fixed_score("cryptarithm", entry, answer) <= 0.01
        assert fixed_score("cryptarithm", entry, gold) == 1.0


@pytest.mark.parametrize("more", ['"0": 1', '"99": 1', '"x": 1'])
def test_only_the_vertices_of_the_graph_are_colored_and_each_once(more):
    for entry in entries("graph_color"):
        gold = json.dumps(entry["metadata"]["possible_answer"])
        assert fixed_score("graph_color", entry, f"{{{more}, {gold[1:]}") <= 0.01
        assert fixed_score("graph_color", entry, gold) == 1.0


def test_a_crowded_board_as_it_was_earns_little_for_what_comes_of_it():
    params = dict(load_shipped().scales["game_of_life"].steps[1].params)
    for entry in datasets.usable_entries("game_of_life", params, range(4)):
        before = entry["question"].partition("\n\n")[2].rstrip(".")
        assert fixed_score("game_of_life", entry, before) < 0.25


def test_a_word_as_it_stands_earns_little_for_its_letters_backward():
    made = [entry_of("spell_backward", seed) for seed in range(7000, 7040)]
    words = mean_score("spell_backward", made, lambda e: e["metadata"]["word"])
    assert words < 0.1


def test_to_change_one_letter_after_the_other_earns_little_more_than_luck():
    def in_turn(entry):
        start, end = (entry["metadata"][f"{place}_word"] for place in ("start", "end"))
        return ",".join(
            dict.fromkeys(end[:place] + start[place:] for place in range(len(end) + 1))
        )

    made = [entry_of("word_ladder", seed) for seed in range(7000, 7100)]
    right = [fixed_score("word_ladder", e, in_turn(e)) == 1.0 for e in made]
    mean = mean_score("word_ladder", made, in_turn)
    assert mean - sum(right) / len(right) < 0.05


# -- game_of_life ----------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (2, 2), (2, 3), (3, 3), (8, 5)])
def test_boards_of_life_of_any_shape_evolve_as_the_library_lets_them(shape):
    registry.describe()
    cellpylib = importlib.import_module("cellpylib")
    own = importlib.import_module("cellpylib.ca_functions2d").evolve2d
    assert own is not cellpylib.evolve2d
    rng = np.random.default_rng(3)
    for _ in range(5):
        board = rng.integers(0, 2, (1, *shape))
        rule = cellpylib.game_of_life_rule
        expected = own(board, timesteps=6, apply_rule=rule, memoize="recursive")
        found = cellpylib.evolve2d(board, timesteps=6, apply_rule=rule)
        assert found.dtype == expected.dtype and found.tolist() == expected.tolist()


def test_another_rule_than_life_s_is_the_library_s_own_matter():
    registry.describe()
    cellpylib = importlib.import_module("cellpylib")
    board = np.array([[[0, 1], [1, 1]]])
    grown = cellpylib.evolve2d(board, timesteps=2, apply_rule=lambda n, c, t: 7)
    assert grown[-1].tolist() == [[7, 7], [7, 7]]
