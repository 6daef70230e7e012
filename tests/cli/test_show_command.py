"""`show`: what it prints of an item, how it reads an answer and how it is scored."""

from __future__ import annotations

import asyncio
import io
import json
import sys
from types import SimpleNamespace

import pytest

from rg_env.cli import show_command
from rg_env.errors import SettingError, on_one_line, visible
from rg_env.items import worker_jobs
from rg_env.reports import task_sheets
from rg_env.reports.task_sheets import step_values
from rg_env.scoring.extraction import FORMAT_FAILURES
from rg_env.scoring.prompt import SYSTEM_PROMPT
from rg_env.scoring.score import OUTCOMES
from rg_env.scoring.scoring_rules import ScoringRules
from rg_env.tasks.scales import Scale, Step
from tests.support.parts import GUARD_S, run_main

SCALE = Scale(
    "gcd",
    (
        Step((0,), {}, 1.0),
        Step((1, 2), {"max_numbers": 3}, 1.0),
        Step((4,), {"max_numbers": 5}, 1.0),
    ),
)


def made(pool, *argv):
    with show_command.show.make_context("show", list(argv)) as context:
        options = SimpleNamespace(**context.params)
    return asyncio.run(show_command._make(pool, options))


def scored(pool, sheet, text, **rules):
    work = show_command._score(pool, sheet, text, "a test", ScoringRules(**rules))
    return asyncio.run(work)


def text_of(**values):
    return "\n".join(task_sheets.lines(values))


# -- the real command line -------------------------------------------------------------


@pytest.mark.processes
def test_an_item_is_printed_with_the_score_of_a_piped_answer(capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("  2\n"))
    assert run_main(["show", "gcd", "--level=0.7", "--seed=5", "--answer=-"]) == 0
    printed = capsys.readouterr().out.splitlines()
    labels = {line.partition(": ")[0] for line in printed}
    assert {"task", "level", "params", "seed", "read_as", "score"} <= labels
    assert "outcome: right" in printed


@pytest.mark.processes
def test_json_is_one_document_and_nothing_else(capsys):
    argv = ["gcd", "--level", "1", "--json", "--answer", "so <answer>x</answer>"]
    assert run_main(["show", *argv]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["step"]["number"] == document["step"]["of"]
    assert document["messages"][1]["content"] == document["question"]
    answer = document["answer"]
    assert (answer["read_as"], answer["answer"]) == ("completion", "x")
    assert (answer["score"], answer["outcome"]) == (0.0, "wrong")


@pytest.mark.processes
@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (["gdc"], "did you mean 'gcd'"),
        (["composite"], "is a mixture"),
        (["acre", "--level=0.5"], "no difficulty scale"),
        (["gcd", "--param=min_number=3"], "did you mean 'min_numbers'"),
    ],
)
def test_a_wrong_command_line_is_refused_with_a_sentence(pool, argv, expected):
    with pytest.raises(SettingError, match=expected) as error:
        made(pool, *argv)
    assert "\n" not in str(error.value)


HANOI = ("min_disks=13", "max_disks=13", "min_pegs=3", "max_pegs=3")


@pytest.mark.processes
@pytest.mark.parametrize(
    ("argv", "why"),
    [
        (["zebra_puzzles"], "its item was not done after 0.01 s of CPU time"),
        (["gcd", "--param=min_numbers=0"], "min_numbers must be at least 2"),
        (["tower_of_hanoi", *(f"--param={param}" for param in HANOI)], ""),
    ],
)
def test_an_item_that_cannot_be_made_ends_with_status_1(argv, why, capsys, monkeypatch):
    if argv[0] == "zebra_puzzles":
        monkeypatch.setattr(show_command, "MAKE_DEADLINE_S", 0.01)
    assert run_main(["show", *argv]) == 1
    printed = capsys.readouterr().err
    assert printed.startswith(f"error: {argv[0]}: ") and why in printed
    assert "another --seed, or other parameters" in printed


# -- which item ------------------------------------------------------------------------


def test_the_item_is_the_librarys_of_that_seed_or_of_the_first(pool):
    for argv, seed in ((["--seed", "7"], 7), ([], 0)):
        sheet = made(pool, "gcd", *argv)
        call = (worker_jobs.make_entry, "gcd", {}, seed)
        entry = pool.call(*call, deadline_s=GUARD_S)
        names = ("question", "gold_answer", "metadata")
        assert [sheet[name] for name in names] == [*entry.values()]
        assert (sheet["params"], sheet["step"]) == ({}, None)
    lines = task_sheets.message_lines(sheet["messages"])  # those of training
    assert lines[1].replace("\n  ", "\n") == f"  {SYSTEM_PROMPT}"
    assert lines[2:] == ["user:", f"  {sheet['question']}"]


def test_parameters_are_yaml_and_win_over_those_of_the_level(pool):
    sheet = made(pool, "gcd", "--level", "1", "--param", "max_numbers=9")
    assert sheet["params"]["max_numbers"] == 9
    assert sheet["params"].keys() > {"max_numbers"}
    sheet = made(pool, "chain_sum", "--param=allow_negation=true")
    assert sheet["params"] == {"allow_negation": True}


# -- what is printed of an item --------------------------------------------------------


@pytest.mark.parametrize(("mix", "number"), [(0.1, 3), (0.9, 2)])
def test_a_level_says_on_which_step_it_falls(mix, number):
    step = step_values(SCALE, SCALE.step_at(0.7, mix), mix)
    assert (step["number"], step["of"]) == (number, 3)
    assert f'step: {{"number": {number}, "of": 3, ' in text_of(step=step)


def test_foreign_text_is_neither_wrapped_nor_read_as_markup_nor_steers_the_terminal():
    question = "[bold]grid[/bold]\n" + "1 0 " * 60 + "\n\n\ta\\b  "
    indented = question.replace("\n", "\n  ").replace("\n  \n", "\n\n")
    assert text_of(question=question) == f"question:\n  {indented}"
    text = text_of(question="a\x1b[2Jb\r\u202e\u2028\ud800", answer="\x07")
    assert "a\\x1b[2Jb\\r\\u202e\\u2028\\ud800\n" in text
    assert text.endswith("\\x07")
    pictures = "é 漢 🤍\U000e0144 \u200d ┼"
    assert visible(pictures) == pictures
    assert on_one_line("a\n" + "b" * 50, 12) == "a\\nbbbbbb..."


def test_an_entry_without_an_answer_says_so():
    assert "the library keeps none" in text_of(solution=None)


# -- answers ---------------------------------------------------------------------------


def test_a_bare_answer_is_stripped_and_a_text_with_tags_read_as_a_completion(pool):
    sheet = made(pool, "gcd")
    for text, read_as in ((" {}\n", "answer"), ("<answer>{}</answer>", "completion")):
        answer = scored(pool, sheet, text.format(sheet["solution"]))
        assert (answer["outcome"], answer["read_as"]) == ("right", read_as)
    answer = scored(pool, sheet, "<think>1")
    assert (answer["outcome"], answer["score"]) == ("unfinished_thinking", 0.0)


def test_a_refused_answer_says_why(pool):
    answer = scored(pool, made(pool, "puzzle24"), "9**9**9")
    assert answer["outcome"] == "rejected"
    assert "'**'" in answer["reason"]
    assert f"reason: {answer['reason']}" in task_sheets.lines(answer)
    answer = scored(pool, made(pool, "gcd"), "1" * 11, max_answer_chars=10)
    assert answer["reason"] == "it has 11 characters, and 10 may be"


@pytest.mark.processes
def test_without_fixes_the_librarys_own_score_is_shown(pool, capsys):
    fixed = scored(pool, made(pool, "game_of_life_halting"), "...")
    argv = ["show", "game_of_life_halting", "--answer=...", "--json", "--no_fixes"]
    assert run_main(argv) == 0
    own = json.loads(capsys.readouterr().out)["answer"]["score"]
    assert (fixed["score"], own) == (0.0, 1.0)


def test_every_outcome_has_its_meaning():
    scores = {"right", "partial", "wrong", "empty_answer"}
    faults = {"scorer_error", "rejected", "timeout"}
    assert OUTCOMES.keys() >= scores | faults | FORMAT_FAILURES
