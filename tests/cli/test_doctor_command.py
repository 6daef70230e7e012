"""`doctor`: what it finds, what it says and how it ends."""

from __future__ import annotations

import json

import pytest

from tests.support.parts import run_main

pytestmark = pytest.mark.processes


def test_tasks_that_pass_end_with_status_0(capsys):
    assert run_main(["doctor", "gcd", "--tasks", "boxnet", "--items", "2"]) == 0
    assert "passed: 2 of 2 tasks" in capsys.readouterr().out


def test_json_is_one_document_and_nothing_else(capsys):
    assert run_main(["doctor", "--tasks=gcd,boxnet", "--items=2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [task["task"] for task in found["tasks"]] == ["boxnet", "gcd"]
    assert found["tasks"][1]["make_ms"] > 0


def test_a_file_behind_json_is_told_how_it_is_written(capsys):
    assert run_main(["doctor", "--json", "found.json"]) == 2
    assert "redirect with > found.json" in capsys.readouterr().err


def test_a_scorer_that_scores_anything_is_found_and_ends_with_status_1(capsys):
    argv = ["--tasks", "game_of_life_halting", "--items", "2", "--no_fixes"]
    assert run_main(["doctor", *argv]) == 1
    said = capsys.readouterr().out
    assert "'...' scores 1.00" in said
    assert "passed: 0 of 1 task; failed: game_of_life_halting" in said


def test_an_unknown_task_is_refused_with_the_nearest(capsys):
    assert run_main(["doctor", "gdc"]) == 2
    assert "did you mean 'gcd'" in capsys.readouterr().err
