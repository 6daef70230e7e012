"""Which fix a task of the installed library has, and whether it holds there."""

from __future__ import annotations

import pytest

from rg_env.items import installed_fixes
from rg_env.task_rules.table import TABLE
from rg_env.tasks import library
from rg_env.tasks.library_import import load_factory
from tests.support.fixed_scores import BASE_TASKS

FIXED = {task for task, rules in TABLE.items() if rules.fix}


def test_every_fix_holds_for_the_installed_library():
    found = {task: installed_fixes.holds(task) for task in library.describe().tasks}
    assert {task for task in found if found[task]} == {*FIXED, *BASE_TASKS}
    assert all(found[task] is None for task in found if not found[task])


@pytest.fixture
def library_with(monkeypatch):
    """Give a task another scorer; `later` is one that a later version brings."""
    factory = load_factory()

    def register(task, scorer):
        dataset, config = factory.DATASETS.get(task) or factory.DATASETS["gcd"]
        changed = type("Changed", (dataset,), scorer and {"score_answer": scorer})
        monkeypatch.setitem(factory.DATASETS, task, (changed, config))
        installed_fixes.holds.cache_clear()

    yield register
    installed_fixes.holds.cache_clear()


@pytest.mark.parametrize(
    ("task", "scorer", "holds", "score"),
    [
        ("later", {}, True, 0.0),  # it has the base scorer
        ("later", lambda self, answer, entry: 0.25, None, 0.25),
        ("gcd", lambda self, answer, entry: 0.25, None, 0.25),
        ("complex_arithmetic", lambda self, answer, entry: 0.25, False, 0.25),
    ],
)
def test_a_scorer_is_corrected_if_it_is_the_one_that_a_fix_is_for(
    library_with, task, scorer, holds, score
):
    library_with(task, scorer)
    own = library.scoring_dataset(task, {}).score_answer
    assert installed_fixes.holds(task) is holds
    assert installed_fixes.corrected(task, own)("57", {"answer": "5"}) == score
