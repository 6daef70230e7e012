"""Which places of a task are measured, and what becomes a baseline."""

from __future__ import annotations

import pytest

from rg_env.items.guessing.earnings import Earned
from rg_env.items.make_baselines import baseline_from, params_of_steps
from rg_env.tasks.baselines import HIGHEST
from rg_env.tasks.scales import Scale, Step

EASY, DEFAULTS, HARD = ({"size": 1}, {}, {"size": 9})
STEPS = tuple(Step((n,), p, 1.0) for n, p in enumerate((EASY, DEFAULTS, HARD)))


def earned(mean: float) -> Earned:
    return Earned(120, ("always '1'", "last word"), mean, 0.0312, {})


def test_the_defaults_and_every_step_are_measured_once() -> None:
    assert params_of_steps(Scale("some_task", STEPS)) == [DEFAULTS, EASY, HARD]


@pytest.mark.parametrize("scale", [None, Scale("some_task", STEPS[:1])])
def test_a_task_whose_items_no_level_changes_is_measured_at_its_defaults(
    scale: Scale | None,
) -> None:
    assert params_of_steps(scale) == [{}]


def test_what_earns_little_is_no_baseline() -> None:
    assert baseline_from(EASY, earned(0.09)) is None


def test_a_baseline_says_what_earns_it() -> None:
    found = baseline_from(EASY, earned(0.4567))
    assert found is not None
    assert (found.params, found.value, found.error) == (EASY, 0.457, 0.031)
    assert found.strategy == "always '1' or last word"


def test_a_level_at_which_guessing_earns_all_leaves_a_rest() -> None:
    found = baseline_from(EASY, earned(1.0))
    assert found is not None
    assert found.value == HIGHEST
