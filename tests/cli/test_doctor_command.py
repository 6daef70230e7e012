"""`doctor`: what it finds, and how it ends."""

from __future__ import annotations

import pytest

from tests.support.parts import REPO_ROOT, run_main

pytestmark = pytest.mark.processes


def test_tasks_that_pass_end_with_status_0(capsys):
    assert run_main(["doctor", "gcd", "boxnet", "lcm", "--items", "2"]) == 0
    assert "passed: 3 of 3 tasks" in capsys.readouterr().out


def test_a_task_that_fails_is_named_and_ends_with_status_1(capsys):
    own = ["--task_modules", str(REPO_ROOT / "tests" / "support" / "own_tasks.py")]
    assert run_main(["doctor", "gcd", "raises", "--items", "2", *own]) == 1
    printed = capsys.readouterr().out
    assert "raises: " in printed and "gcd: " not in printed
    assert "division by zero" in printed
    assert "passed: 1 of 2 tasks" in printed
