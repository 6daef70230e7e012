"""What a terminal shows: tables of any width in which nothing is cut, and progress."""

from __future__ import annotations

import io
import logging
import re

import pytest
from rich.console import Console

from rg_env.reports import terminal
from rg_env.reports.terminal import PIPE_WIDTH, NumberTable, WorkProgress, width_of

NAME = "polynomial_multiplication"


@pytest.mark.parametrize("width", [30, 60, 90])
def test_every_letter_of_a_table_is_there_at_every_width(width):
    numbers = [f"{n / 7:.3f}" for n in range(4)]
    table = NumberTable(["task"], ["0", "1", "2", "3"], title="Scores")
    table.add_row(NAME, *numbers)
    output = io.StringIO()
    Console(file=output, width=width).print(table)
    lines = output.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    cells = [re.split("[│┃]", line)[1:-1] for line in lines if "│" in line]
    columns = ["".join(map(str.strip, column)) for column in zip(*cells, strict=True)]
    assert columns == [NAME, *numbers]


def test_columns_that_have_no_room_are_left_out_in_order_and_named():
    table = NumberTable(["task"], ["0", "1", "2"], ["1", "0", "2"])
    table.add_row(NAME, "0.000", "0.111", "0.222")
    for width, gone in ((60, []), (45, ["1"]), (40, ["1", "0"])):
        output = io.StringIO()
        Console(file=output, width=width).print(table)
        text = output.getvalue()
        assert text.partition("no room for: ")[2].strip() == ", ".join(gone)
        assert NAME in text and "0.222" in text and ("0.111" in text) == (not gone)


def test_a_pipe_has_room_for_all(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    assert width_of(Console(file=io.StringIO())) == PIPE_WIDTH
    monkeypatch.setenv("COLUMNS", "60")
    assert width_of(Console(file=io.StringIO())) == 60


# -- progress of long work -------------------------------------------------------------


def test_without_a_terminal_it_is_a_line_now_and_then(caplog, capsys, monkeypatch):
    caplog.set_level(logging.INFO)
    with WorkProgress("evaluation", 3, "items") as work:
        work.advance()
        monkeypatch.setattr(terminal, "LINE_EVERY_S", 0.0)
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
