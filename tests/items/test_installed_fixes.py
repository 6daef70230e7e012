"""A fix is applied to the scorer it was written for, and checked again on another."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import pytest

from rg_env.answers.fixes.table import FIXES
from rg_env.items import installed_fixes
from rg_env.tasks import library

TASK = "complex_arithmetic"


@pytest.fixture
def fix_with(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Put a changed fix in the table."""

    def change(**changes: Any) -> None:
        fix = dataclasses.replace(FIXES[TASK], **changes)
        monkeypatch.setattr(installed_fixes, "FIXES", {TASK: fix})
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
    assert {installed_fixes.standing(task) for task in FIXES} == {"same scorer"}


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
