"""Tables in 80 and 60 columns and in a pipe: nothing is cut."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from rg_env.cli import doctor_command
from rg_env.evaluation.rescore_table import RescoreTally
from rg_env.evaluation.samples import Sample
from rg_env.evaluation.screening import screen_rows, table_of
from rg_env.evaluation.summary import summarise
from rg_env.items.task_check import TaskFindings
from rg_env.reports import task_list
from rg_env.reports.fitting_table import PIPE_WIDTH, FittingTable, width_of
from rg_env.reports.task_list import TaskFacts
from rg_env.tasks.library import TaskInfo
from rg_env.tasks.scales import Scale, Step

NAME = "polynomial_multiplication"
SUMMARY = summarise(
    [
        Sample(NAME, "arithmetic", str(item), score, "right")
        for item in range(200)
        for score in (0.123, 1.0, 0.5, 0.0)
    ]
)


def _screened():
    return table_of(screen_rows([], {NAME: None}, 0.1))


def _rescored():
    tally = RescoreTally(0)
    scores = dict.fromkeys(("saved", "library", "fixes", "ours"), 0.123)
    row = {"task": NAME, "question": "?", "score": 0.123, "scores": scores}
    tally.add(row | {"changes": ["fix", "normalization", "guard", "extraction"]})
    return tally.table()


def _listed():
    steps = tuple(Step((2 * n,), {}, 12345.6) for n in range(8))
    info = TaskInfo(NAME, "games", {"min_terms": "2"}, True)
    return task_list.table([TaskFacts(info, Scale(NAME, steps, default_level=0.25))])


TABLES = {
    "evaluate": lambda: SUMMARY.table(with_tasks=True),
    "screen": _screened,
    "rescore": _rescored,
    "tasks": _listed,
    "doctor": lambda: doctor_command.table(
        [TaskFindings(NAME, "games", ["gold scores 0.00"] * 9, [], 12345.6, 12345.6)]
    ),
    "twenty results": lambda: _wide(20),
}


def _wide(numbers):
    table = FittingTable(["task"], [str(n) for n in range(numbers)])
    table.add_row(NAME, *(f"{n / 7:.3f}" for n in range(numbers)))
    return table


def drawn(table, width):
    target = io.StringIO()
    Console(file=target, width=width).print(table)
    return target.getvalue()


def words(text):
    return set(re.findall(r"[\w.%(-]*\w", text))


@pytest.mark.parametrize("width", [80, 60])
@pytest.mark.parametrize("name", TABLES)
def test_no_number_and_no_name_is_cut_and_no_line_is_too_long(name, width):
    narrow, whole = (drawn(TABLES[name](), each) for each in (width, PIPE_WIDTH))
    assert NAME in narrow
    assert words(narrow) <= words(whole) | words("no room for:")
    assert max(map(len, narrow.splitlines())) <= width
    assert "…" not in narrow


def test_columns_that_have_no_room_are_left_out_in_order_and_named():
    assert drawn(SUMMARY.table(), 60).splitlines()[-1] == (
        "no room for: score of answered, by task, best of 4, items"
    )


def test_numbers_that_may_not_be_left_out_go_below():
    text = drawn(_wide(20), 60)
    assert text.count(NAME) == 7
    assert all(f"{n / 7:.3f}" in text for n in range(20))


def test_a_pipe_has_room_for_all(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    assert width_of(Console(file=io.StringIO())) == PIPE_WIDTH
    monkeypatch.setenv("COLUMNS", "60")
    assert width_of(Console(file=io.StringIO())) == 60
