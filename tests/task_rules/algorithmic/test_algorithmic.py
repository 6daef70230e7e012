"""The scores of colorings, and the evolution of boards of life."""

import importlib
import json

import numpy as np
import pytest

from rg_env.library import registry
from tests.support.fixed_scores import entries, fixed_score


@pytest.mark.parametrize("more", ['"0": 1', '"99": 1', '"x": 1'])
def test_only_the_vertices_of_the_graph_are_colored_each_once(more):
    for entry in entries("graph_color"):
        gold = json.dumps(entry["metadata"]["possible_answer"])
        assert fixed_score("graph_color", entry, f"{{{more}, {gold[1:]}") <= 0.01
        assert fixed_score("graph_color", entry, gold) == 1.0


# -- game_of_life ----------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (2, 2), (2, 3), (3, 3), (8, 5)])
def test_boards_of_life_of_any_shape_evolve_as_in_the_library(shape):
    registry.describe()
    cellpylib = importlib.import_module("cellpylib")
    original = importlib.import_module("cellpylib.ca_functions2d").evolve2d
    assert original is not cellpylib.evolve2d
    rng = np.random.default_rng(3)
    for _ in range(5):
        board = rng.integers(0, 2, (1, *shape))
        rule = cellpylib.game_of_life_rule
        expected = original(board, timesteps=6, apply_rule=rule, memoize="recursive")
        found = cellpylib.evolve2d(board, timesteps=6, apply_rule=rule)
        assert found.dtype == expected.dtype and found.tolist() == expected.tolist()


def test_the_library_computes_any_rule_but_that_of_life():
    registry.describe()
    cellpylib = importlib.import_module("cellpylib")
    board = np.array([[[0, 1], [1, 1]]])
    grown = cellpylib.evolve2d(board, timesteps=2, apply_rule=lambda n, c, t: 7)
    assert grown[-1].tolist() == [[7, 7], [7, 7]]
