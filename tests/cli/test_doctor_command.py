"""`doctor`: what it finds, and how it ends."""

from __future__ import annotations

import pytest

from tests.support.parts import run_main

pytestmark = pytest.mark.processes


def test_tasks_that_pass_end_with_status_0(capsys):
    assert run_main(["doctor", "gcd", "boxnet", "lcm", "--items", "2"]) == 0
    assert "passed: 3 of 3 tasks" in capsys.readouterr().out


def test_a_scorer_that_scores_anything_is_found_and_ends_with_status_1(capsys):
    names = ["gcd", "game_of_life_halting"]
    assert run_main(["doctor", *names, "--items", "2", "--no_fixes"]) == 1
    printed = capsys.readouterr().out
    assert "game_of_life_halting: " in printed and "gcd: " not in printed
    assert "'...' scores 1.00" in printed
    assert "passed: 1 of 2 tasks" in printed
