"""`doctor`: what it finds, what it says and how it ends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from parts import run_main

pytestmark = pytest.mark.processes


def test_tasks_that_are_well_end_with_status_0(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "found.json"
    argv = ["--tasks", "gcd,boxnet", "--items", "2", "--json", str(target)]
    assert run_main(["doctor", *argv]) == 0
    assert "2 of 2 tasks are well" in capsys.readouterr().out
    found = json.loads(target.read_text())
    assert [task["task"] for task in found["tasks"]] == ["boxnet", "gcd"]
    assert found["tasks"][1]["make_ms"] > 0


def test_a_scorer_that_pays_for_nothing_is_found_and_ends_with_status_1(
    capsys: pytest.CaptureFixture[str],
) -> None:
    argv = ["--tasks", "game_of_life_halting", "--items", "2", "--no_fixes"]
    assert run_main(["doctor", *argv]) == 1
    said = capsys.readouterr().out
    assert "'...' earns 1.00" in said
    assert "not well: game_of_life_halting" in said


def test_an_unknown_task_is_refused_with_the_nearest(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run_main(["doctor", "--tasks", "gdc"]) == 2
    assert "did you mean 'gcd'" in capsys.readouterr().err
