"""What a terminal shows: tables of any width in which nothing is cut, and progress."""

import io
import logging
import re

import pytest
from rich.console import Console
from rich.text import Text

from rg_env.results import terminal
from rg_env.results.terminal import NumberTable, WorkProgress, rendered

NAME = "polynomial_multiplication"


@pytest.mark.parametrize(
    ("width", "gone"), [(70, []), (45, ["2"]), (37, ["1", "2"]), (18, ["1", "2"])]
)
def test_columns_without_room_are_named_and_no_letter_of_others_is_cut(width, gone):
    table = NumberTable("task", ["0", "1", "2"], "Scores")
    table.add_row(NAME, "0.000", "0.111", "0.222")
    output = io.StringIO()
    Console(file=output, width=width).print(table)
    text = output.getvalue()
    assert max(map(len, text.splitlines())) <= width
    assert " ".join(text.partition("no room for: ")[2].split()) == ", ".join(gone)
    letters = "".join(text.split())
    assert "0.000" in letters and ("0.222" in letters) == (not gone)
    assert sum(letters.count(c) for c in NAME) >= len(NAME)


def test_a_pipe_has_room_for_all(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    text = Text("word " * 100)
    assert len(rendered(text).splitlines()) == 1
    monkeypatch.setenv("COLUMNS", "60")
    assert max(map(len, rendered(text).splitlines())) <= 60


# -- progress of long work -------------------------------------------------------------


def test_without_a_terminal_it_is_a_line_now_and_then(caplog, capsys, monkeypatch):
    caplog.set_level(logging.INFO)
    with WorkProgress("evaluation", 3, "items") as work:
        work.advance()
        monkeypatch.setattr(terminal, "LOG_INTERVAL_S", 0.0)
        work.advance()
        monkeypatch.undo()
        work.advance("score 0.3")
    between, last = (record.getMessage() for record in caplog.records)
    shown = r"evaluation: 2 of 3 items, [\d.e+]+ items/s, 0:00:\d\d left"
    assert re.fullmatch(shown, between)
    assert last == "evaluation: 3 of 3 items, score 0.3"
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("width", [80, 60])
def test_on_a_terminal_nothing_of_the_progress_is_cut(width, monkeypatch):
    said = io.StringIO()
    console = Console(file=said, width=width, force_terminal=True, color_system=None)
    monkeypatch.setattr(terminal, "Console", lambda **how: console)
    with WorkProgress("making evaluation items", 5000, "completions") as work:
        work.advance("mean score 0.543", by=1234)
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", said.getvalue())
    assert "…" not in plain
    words = " ".join(re.sub("[━╸╺]", "", plain).split())
    assert "making evaluation items: 1234 of 5000 completions," in words
    assert "left, mean score 0.543" in words
