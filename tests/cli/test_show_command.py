"""`show`: what it prints of an item, how it reads an answer and how it is scored."""

from __future__ import annotations

import asyncio
import io
import sys

import pytest

from rg_env.cli import show_command
from rg_env.errors import SettingError, on_one_line, visible
from rg_env.library import worker_jobs
from rg_env.results import task_sheets
from rg_env.reward.scoring_rules import ScoringRules
from tests.support.parts import GUARD_S, run_main


def item_of(pool, name, level=None, seeds=range(9), **params):
    return asyncio.run(show_command._item(pool, name, level, seeds, params))


def scored(pool, name, text, **rules):
    item = item_of(pool, name)
    text = text.format(item.gold)
    return asyncio.run(show_command._answer(pool, item, text, ScoringRules(**rules)))


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
@pytest.mark.parametrize(
    ("name", "level", "expected"),
    [("gdc", None, "did you mean 'gcd'"), ("acre", 0.5, "no difficulty scale")],
)
def test_a_wrong_command_line_is_refused_with_a_sentence(pool, name, level, expected):
    with pytest.raises(SettingError, match=expected):
        item_of(pool, name, level)


HANOI = ("min_disks=13", "max_disks=13", "min_pegs=3", "max_pegs=3")


@pytest.mark.processes
@pytest.mark.parametrize(
    ("argv", "why"),
    [
        (["zebra_puzzles"], "its item was not done after 0.01 s of CPU time"),
        (["gcd", "--param=min_numbers=0"], "min_numbers must be at least 2"),
        (["gcd", "--param=min_number=3"], "unexpected keyword argument 'min_number'"),
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
    for seeds, seed in (([7], 7), (range(9), 0)):
        item = item_of(pool, "gcd", seeds=seeds)
        call = (worker_jobs.make_entry, "gcd", {}, seed)
        assert item.entry == pool.call(*call, deadline_s=GUARD_S)
        assert item.params == {}


def test_parameters_win_over_those_of_the_level(pool):
    params = item_of(pool, "gcd", 1.0, max_numbers=9).params
    assert params["max_numbers"] == 9
    assert params.keys() > {"max_numbers"}


# -- what is printed of an item --------------------------------------------------------


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


# -- answers ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "read_as", "outcome"),
    [
        (" {}\n", "answer", "right"),
        ("<answer>{}</answer>", "completion", "right"),
        ("<think>1", "completion", "unfinished_thinking"),
    ],
)
def test_a_text_with_tags_is_read_as_a_completion(pool, text, read_as, outcome):
    answer = scored(pool, "gcd", text)
    assert (answer["outcome"], answer["read_as"]) == (outcome, read_as)


def test_a_refused_answer_says_why(pool):
    answer = scored(pool, "puzzle24", "9**9**9")
    assert answer["outcome"] == "rejected" and "'**'" in answer["reason"]
    answer = scored(pool, "gcd", "1" * 11, max_answer_chars=10)
    assert answer["reason"] == "it has 11 characters, and 10 may be"


@pytest.mark.processes
def test_without_fixes_the_librarys_own_score_is_shown(capsys):
    argv = ["show", "game_of_life_halting", "--answer=...", "--no_fixes"]
    assert run_main(argv) == 0
    assert "score: 1.0" in capsys.readouterr().out
