"""Tables in terminals of any width and in a pipe: nothing is cut."""

from __future__ import annotations

import io
import itertools
import re

import pytest
from rich.console import Console

from rg_env.cli import doctor_command
from rg_env.evaluation.comparison import Comparison
from rg_env.evaluation.numbers import row_of, table_of
from rg_env.evaluation.rescored import RescoreTally
from rg_env.evaluation.samples import Sample
from rg_env.evaluation.screening import screen_rows, table_for
from rg_env.evaluation.summary import summarise
from rg_env.items.task_check import TaskFindings
from rg_env.reports import task_list
from rg_env.reports.fitting_table import PIPE_WIDTH, FittingTable, width_of
from rg_env.reports.task_list import TaskFacts
from rg_env.tasks.library import TaskInfo
from rg_env.tasks.scales import Scale, Step

NAME = "polynomial_multiplication"


def _samples(task, category, items=range(200)):
    return [
        Sample(task, category, str(item), score, "right")
        for item in items
        for score in (0.123, 1.0, 0.5, 0.0)
    ]


SUMMARY = summarise(_samples(NAME, "arithmetic"))


def _screened():
    return table_for(screen_rows([], {NAME: None}, 0.1))


def _rescored():
    tally = RescoreTally(0)
    scores = dict.fromkeys(("saved", "library", "fixes", "ours"), 0.123)
    row = {"task": NAME, "question": "?", "score": 0.123, "scores": scores}
    tally.add(row | {"outcome": "right"})
    return tally.table()


def _listed():
    steps = tuple(Step((2 * n,), {}, 12345.6) for n in range(8))
    info = TaskInfo(NAME, "games", {"min_terms": "2"}, True)
    return task_list.table([TaskFacts(info, Scale(NAME, steps, default_level=0.25))])


def _compared(results):
    """Return the tables of results whose names are as short as names can be."""
    rows = (
        row_of(sample, n)
        for n in range(results)
        for sample in _samples("ab", "c", range(n, 200))
        + _samples(NAME, "games", range(n))
    )
    names = [str(n) for n in range(results)]
    found = Comparison(names, table_of(rows), all_pairs=True)
    return found.tables(with_tasks=True)


TABLES = {
    "evaluate": lambda: SUMMARY.table(with_tasks=True),
    "screen": _screened,
    "rescore": _rescored,
    "tasks": _listed,
    "doctor": lambda: doctor_command.table(
        [TaskFindings(NAME, "games", ["gold scores 0.00"] * 9, [], 12345.6, 12345.6)]
    ),
    "twenty results": lambda: _wide(20),
    **{f"compare, {n}": lambda t=table: t for n, table in enumerate(_compared(4))},
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


@pytest.mark.parametrize("name", TABLES)
def test_every_number_and_name_is_whole_at_every_width(name):
    table = TABLES[name]()
    whole = words(drawn(table, PIPE_WIDTH))
    for width in range(40, 131, 3):
        narrow = drawn(table, width)
        assert max(map(len, narrow.splitlines())) <= width
        gone = left_out(narrow)
        cells = [[c.header, *c._cells] for c in table.columns if c.header in gone]
        lost = words(" ".join(map(str, itertools.chain(*cells))))
        found = words(narrow.partition("no room for: ")[0])
        # A long name is folded where it has no room beside one other column.
        folded = {NAME} if width < 52 else set()
        assert whole - lost - folded <= found, narrow
        assert all(word in NAME for word in found - whole), narrow


def left_out(text):
    named = " ".join(text.partition("no room for: ")[2].split())
    return named.split(", ") if named else []


def test_columns_that_have_no_room_are_left_out_in_order_and_named():
    gone = ["score of answered", "by task", "best of 4", "items", "right"]
    assert left_out(drawn(SUMMARY.table(), 60)) == gone


def test_numbers_that_may_not_be_left_out_go_below():
    text = drawn(_wide(20), 60)
    assert text.count(NAME) == 7
    assert all(f"{n / 7:.3f}" in text for n in range(20))


def test_a_pipe_has_room_for_all(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    assert width_of(Console(file=io.StringIO())) == PIPE_WIDTH
    monkeypatch.setenv("COLUMNS", "60")
    assert width_of(Console(file=io.StringIO())) == 60
