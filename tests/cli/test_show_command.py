"""`show`: what it prints of an item, how it reads an answer and how it is scored."""

from __future__ import annotations

import asyncio

import pytest

from rg_env.cli import show_command
from rg_env.errors import SettingError, on_one_line, visible
from rg_env.library import worker_jobs
from rg_env.results import task_sheets
from tests.support.parts import GUARD_S, run_main


def item_of(pool, name, level=None, seeds=range(9)):
    return asyncio.run(show_command._item(pool, name, level, seeds))


def text_of(**values):
    return "\n".join(task_sheets.lines(values))


# -- the real command line -------------------------------------------------------------


@pytest.mark.processes
def test_an_item_is_printed_with_the_score_of_an_answer(capsys):
    assert run_main(["show", "gcd", "--level=0.7", "--seed=5", "--answer= 2"]) == 0
    printed = capsys.readouterr().out.splitlines()
    labels = {line.partition(": ")[0] for line in printed}
    assert {"task", "level", "params", "seed", "score"} <= labels
    assert "outcome: right" in printed


@pytest.mark.processes
@pytest.mark.parametrize(
    ("name", "level", "expected"),
    [("gdc", None, "did you mean 'gcd'"), ("acre", 0.5, "no difficulty scale")],
)
def test_a_wrong_command_line_is_refused_with_a_sentence(pool, name, level, expected):
    with pytest.raises(SettingError, match=expected):
        item_of(pool, name, level)


@pytest.mark.processes
def test_an_item_that_cannot_be_made_ends_with_status_1(capsys, monkeypatch):
    monkeypatch.setattr(show_command, "MAKE_DEADLINE_S", 0.01)
    assert run_main(["show", "zebra_puzzles"]) == 1
    printed = capsys.readouterr().err
    why = "its item was not done after 0.01 s of CPU time; another --seed"
    assert printed.startswith(f"error: zebra_puzzles: {why}")


# -- which item ------------------------------------------------------------------------


def test_the_item_is_the_librarys_of_that_seed_or_of_the_first(pool):
    for seeds, seed in (([7], 7), (range(9), 0)):
        item = item_of(pool, "gcd", seeds=seeds)
        call = (worker_jobs.make_entry, "gcd", {}, seed)
        assert item.entry == pool.call(*call, deadline_s=GUARD_S)
        assert item.params == {}


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


@pytest.mark.processes
def test_without_fixes_the_librarys_own_score_is_shown(capsys):
    argv = ["show", "game_of_life_halting", "--answer=...", "--no_fixes"]
    assert run_main(argv) == 0
    assert "score: 1.0" in capsys.readouterr().out
