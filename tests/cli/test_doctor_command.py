"""`doctor`: what it finds, what it says and how it ends."""

from __future__ import annotations

import pytest
from rich.console import Console

from rg_env.cli.doctor_command import table
from rg_env.items.task_check import TaskFindings
from tests.support.parts import run_main


def test_failed_tasks_come_first_and_say_what_is_wrong():
    passed = TaskFindings("gcd", "arithmetic", [], [], make_ms=1.25, score_ms=0.5)
    failed = TaskFindings("maze", "games", ["gold scores 0.00"], ["slow"], None, None)
    console = Console(width=100, no_color=True)
    with console.capture() as captured:
        console.print(table([passed, failed]))
    text = captured.get().replace("│", " ")
    lines = [" ".join(line.split()) for line in text.splitlines()]
    maze, gcd = [line for line in lines if "maze" in line or "gcd" in line]
    assert "maze gold scores 0.00; slow" in maze
    assert "gcd 1.2 0.5 passed" in gcd


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
