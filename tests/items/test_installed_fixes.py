"""Which fix a task of the installed library has, and whether it holds there."""

from __future__ import annotations

import dataclasses

import pytest

from rg_env.items import installed_fixes
from rg_env.task_rules.table import TABLE, rules_of
from rg_env.tasks import library
from rg_env.tasks.library_import import load_factory
from tests.support.fixed_scores import BASE_TASKS

TASK = "complex_arithmetic"
FIXED = {task for task, rules in TABLE.items() if rules.fix}


@pytest.fixture
def fix_with(monkeypatch):
    """Put a changed fix in the table."""

    def change(**changes):
        fix = dataclasses.replace(rules_of(TASK).fix, **changes)
        monkeypatch.setattr(installed_fixes, "fix_of", {TASK: fix}.get)
        installed_fixes.standing.cache_clear()

    yield change
    installed_fixes.standing.cache_clear()


def score_of_nan():
    entry = library.make_entry(TASK, {}, 1)
    own = library.scoring_dataset(TASK, {}).score_answer
    return installed_fixes.corrected(TASK, own)("nan", entry)


def test_a_fix_holds_for_the_scorer_it_was_written_for():
    assert installed_fixes.standing(TASK) == "same scorer"
    assert score_of_nan() == 0.0


def test_every_fix_holds_for_the_installed_library():
    found = {task: installed_fixes.standing(task) for task in library.describe().tasks}
    assert {found[task] for task in (*FIXED, *BASE_TASKS)} == {"same scorer"}
    assert {task for task in found if found[task]} == {*FIXED, *BASE_TASKS}


# -- the base scorer -------------------------------------------------------------------


@pytest.fixture
def library_with(monkeypatch):
    """Register the dataset of `gcd` under another name, with another scorer or its own.

    That is a task that a later version of the library brings.
    """
    factory = load_factory()
    dataset, config = factory.DATASETS["gcd"]

    def register(scorer=None):
        methods = {} if scorer is None else {"score_answer": scorer}
        later = type("LaterDataset", (dataset,), methods)
        monkeypatch.setitem(factory.DATASETS, "later", (later, config))
        return "later"

    yield register
    installed_fixes.standing.cache_clear()


def score_of_longer_number(task):
    entry = {"answer": "5"}
    own = library.scoring_dataset(task, {}).score_answer
    return installed_fixes.corrected(task, own)("57", entry)


def test_a_new_task_with_the_base_scorer_is_corrected_without_a_row(library_with):
    task = library_with()
    assert task not in FIXED
    assert installed_fixes.standing(task) == "same scorer"
    assert score_of_longer_number(task) == 0.0


def test_a_new_task_with_a_scorer_of_its_own_keeps_it(library_with):
    def score_answer(self, answer, entry):
        return 0.25

    task = library_with(score_answer)
    assert installed_fixes.standing(task) is None
    assert score_of_longer_number(task) == 0.25


@pytest.mark.parametrize(
    ("score_answer", "standing", "score"),
    [
        (lambda self, a, entry: 0.9 * (entry["answer"] in a), "checked again", 0.0),
        (lambda self, a, entry: 0.125, "not needed any more", 0.125),
    ],
)
def test_a_changed_base_scorer_is_corrected_while_it_has_the_fault(
    monkeypatch, library_with, score_answer, standing, score
):
    base = load_factory().ProceduralDataset
    monkeypatch.setattr(base, "score_answer", score_answer)
    installed_fixes.standing.cache_clear()
    assert installed_fixes.standing("gcd") == standing
    assert score_of_longer_number("gcd") == score


# -- fixes of one task -----------------------------------------------------------------


def test_a_task_without_a_fix_keeps_its_scorer():
    def own(answer, entry):
        return 0.25

    assert installed_fixes.standing("ab") is None
    assert installed_fixes.corrected("ab", own) is own


@pytest.mark.parametrize(
    ("changes", "standing", "score"),
    [
        ({}, "checked again", 0.0),
        ({"proof": lambda entry: "no fault any more"}, "not needed any more", 1.0),
    ],
)
def test_a_changed_scorer_is_corrected_while_it_has_the_fault(
    fix_with, changes, standing, score
):
    fix_with(scorer_sha256="another", **changes)
    assert installed_fixes.standing(TASK) == standing
    assert score_of_nan() == score
