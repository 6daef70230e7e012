"""Which fix a task of the installed library has, and whether it holds there."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import pytest
from fixed_scores import BASE_TASKS, FIXES

from rg_env.items import installed_fixes
from rg_env.task_rules.rules import TaskRules
from rg_env.tasks import library

TASK = "complex_arithmetic"


@pytest.fixture
def fix_with(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Put a changed fix in the table."""

    def change(**changes: Any) -> None:
        fix = dataclasses.replace(FIXES[TASK], **changes)
        rules = TaskRules(TASK, fix=fix)
        monkeypatch.setattr(installed_fixes, "rules_of", lambda task: rules)
        installed_fixes.standing.cache_clear()

    yield change
    installed_fixes.standing.cache_clear()


def score_of_nan() -> float:
    entry = library.make_entry(TASK, {}, 1)
    own = library.scoring_dataset(TASK, {}).score_answer
    return installed_fixes.corrected(TASK, own)("nan", entry)


def test_a_fix_holds_for_the_scorer_it_was_written_for() -> None:
    assert installed_fixes.standing(TASK) == "same scorer"
    assert score_of_nan() == 0.0


def test_every_fix_holds_for_the_installed_library() -> None:
    found = {task: installed_fixes.standing(task) for task in library.describe().tasks}
    assert {found[task] for task in (*FIXES, *BASE_TASKS)} == {"same scorer"}
    assert {task for task in found if found[task]} == {*FIXES, *BASE_TASKS}


# -- the base scorer -------------------------------------------------------------------


@pytest.fixture
def library_with(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Register the dataset of `gcd` under another name, with another scorer or its own.

    That is a task that a later version of the library brings.
    """
    factory = library._load_factory()
    dataset, config = factory.DATASETS["gcd"]

    def register(scorer: Any = None) -> str:
        methods = {} if scorer is None else {"score_answer": scorer}
        later = type("LaterDataset", (dataset,), methods)
        monkeypatch.setitem(factory.DATASETS, "later", (later, config))
        return "later"

    yield register
    installed_fixes.standing.cache_clear()


def score_of_longer_number(task: str) -> float:
    entry = {"answer": "5"}
    own = library.scoring_dataset(task, {}).score_answer
    return installed_fixes.corrected(task, own)("57", entry)


def test_a_new_task_with_the_base_scorer_is_corrected_without_a_row(
    library_with: Any,
) -> None:
    task = library_with()
    assert task not in FIXES
    assert installed_fixes.standing(task) == "same scorer"
    assert score_of_longer_number(task) == 0.0


def test_a_new_task_with_a_scorer_of_its_own_keeps_it(library_with: Any) -> None:
    def score_answer(self: Any, answer: str, entry: Any) -> float:
        return 0.25

    task = library_with(score_answer)
    assert installed_fixes.standing(task) is None
    assert score_of_longer_number(task) == 0.25


def change_base_scorer(monkeypatch: pytest.MonkeyPatch, scorer: Any) -> None:
    base = library._load_factory().ProceduralDataset
    monkeypatch.setattr(base, "score_answer", scorer)
    installed_fixes.standing.cache_clear()


def test_a_changed_base_scorer_with_the_same_fault_is_still_corrected(
    monkeypatch: pytest.MonkeyPatch, library_with: Any
) -> None:
    def score_answer(self: Any, answer: str, entry: Any) -> float:
        return 0.9 if entry["answer"] in answer else 0.0

    change_base_scorer(monkeypatch, score_answer)
    assert installed_fixes.standing("gcd") == "checked again"
    assert score_of_longer_number("gcd") == 0.0


def test_a_changed_base_scorer_without_the_fault_is_left_alone(
    monkeypatch: pytest.MonkeyPatch, library_with: Any
) -> None:
    def score_answer(self: Any, answer: str, entry: Any) -> float:
        return 1.0 if entry["answer"] == answer else 0.125

    change_base_scorer(monkeypatch, score_answer)
    assert installed_fixes.standing("gcd") == "not needed any more"
    assert score_of_longer_number("gcd") == 0.125


# -- fixes of one task -----------------------------------------------------------------


def test_a_task_without_a_fix_keeps_its_scorer() -> None:
    def own(answer: str, entry: Any) -> float:
        return 0.25

    assert installed_fixes.standing("ab") is None
    assert installed_fixes.corrected("ab", own) is own


def test_a_changed_scorer_with_the_same_fault_is_still_corrected(fix_with: Any) -> None:
    fix_with(scorer_sha256="another")
    assert installed_fixes.standing(TASK) == "checked again"
    assert score_of_nan() == 0.0


def test_a_changed_scorer_without_the_fault_is_left_alone(fix_with: Any) -> None:
    fix_with(scorer_sha256="another", proof=lambda entry: "no fault any more")
    assert installed_fixes.standing(TASK) == "not needed any more"
    assert score_of_nan() == 1.0
