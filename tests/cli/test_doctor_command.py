"""`doctor`: what it finds, what it says and how it ends."""

from __future__ import annotations

import pytest

from tests.support.parts import run_main


@pytest.mark.processes
def test_tasks_that_pass_end_with_status_0(capsys):
    assert run_main(["doctor", "gcd", "--tasks", "boxnet, lcm", "--items", "2"]) == 0
    assert "passed: 3 of 3 tasks" in capsys.readouterr().out


@pytest.mark.processes
def test_a_scorer_that_scores_anything_is_found_and_ends_with_status_1(capsys):
    argv = ["--tasks", "game_of_life_halting", "--items", "2", "--no_fixes"]
    assert run_main(["doctor", *argv]) == 1
    printed = capsys.readouterr().out
    assert "'...' scores 1.00" in printed
    assert "passed: 0 of 1 task; failed: game_of_life_halting" in printed
