"""`tasks`: what it lists, what it says of one task, and the figures it measures."""

from __future__ import annotations

import asyncio
import itertools
import re

import pytest

from rg_env.cli import tasks_command as command
from rg_env.errors import SettingError
from rg_env.library import worker_jobs
from rg_env.library.registry import LibraryDescription, TaskInfo
from rg_env.library.scales import Scale, SkippedLevel, Step
from rg_env.results import task_sheets
from rg_env.results.task_sheets import TaskFacts
from tests.support.parts import GUARD_S, run_main

INFO = TaskInfo("towers", "games", {"min_disks": "3", "weights": "[0.1]"}, True)
SCALE = Scale(
    task="towers",
    steps=(
        Step((0, 1), {}, 0.25),
        Step((3,), {"weights": [0.5], "min_disks": 5}, 20.0),
        Step((4, 5), {"min_disks": 9}, 1234.5),
    ),
    skipped=(SkippedLevel(2, "it hangs"), SkippedLevel(6, "it hangs")),
)
FACTS = TaskFacts(INFO, SCALE)
NO_SCALE = TaskFacts(
    TaskInfo("acre", "induction", {}, False), None, "nothing can be varied"
)
CATEGORIES = {"gcd": "arithmetic", "lcm": "arithmetic", "sudoku": "games"}
LIBRARY = LibraryDescription(
    {name: TaskInfo(name, of, {}, True) for name, of in CATEGORIES.items()},
    "0.1.25",
    "",
    False,
)


@pytest.fixture(scope="module")
def installed(pool):
    return pool.call(worker_jobs.describe_library, deadline_s=GUARD_S)


# -- the list --------------------------------------------------------------------------


def test_every_task_has_its_row_below_its_category_in_80_columns(pool, installed):
    facts = asyncio.run(command.facts_of([], [], pool))
    lines, category, tasks = task_sheets.listing(facts).splitlines(), None, []
    for line, below in itertools.pairwise(lines):
        if re.match("  [a-z]", line):
            tasks.append(line.split()[0])
            assert installed.tasks[tasks[-1]].category == category
            assert re.match("    [a-z]", below)
        elif re.fullmatch("[a-z]+", line):
            category = line
    assert sorted(tasks) == list(installed.tasks)
    assert max(map(len, lines)) <= 80
    assert lines[-1].startswith(f"{len(tasks)} tasks, ")


def test_every_task_says_in_a_line_what_it_asks_for(installed):
    assert set(task_sheets.ASKS) == {*installed.tasks, "composite"}
    assert max(map(len, task_sheets.ASKS.values())) <= 64


def test_a_row_has_steps_levels_place_of_the_default_and_costs():
    off = TaskInfo("off", "games", {}, True)  # its default is no point of the scale
    dead = Scale("off", SCALE.steps[2:])
    listed = task_sheets.listing([FACTS, NO_SCALE, TaskFacts(off, dead)])
    rows = [line.split() for line in listed.splitlines()]
    assert ["towers", "3", "0.00", "0.25", "1234"] in rows
    assert ["acre", "none"] in rows
    assert ["off", "1*", "off", "1234", "1234"] in rows


# -- one task --------------------------------------------------------------------------


def test_one_task_is_shown_with_all_that_is_known_of_it():
    lines = [line.strip() for line in task_sheets.details(FACTS).splitlines()]
    assert 'level 0.5 (20 ms): {"weights": [0.5], "min_disks": 5}' in lines
    assert {"default_level: 0.0", "skipped level 2: it hangs"} <= set(lines)
    assert "nothing can be varied" in task_sheets.details(NO_SCALE)


# -- choosing --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "categories", "chosen"),
    [
        (["?c?"], [], ["gcd", "lcm"]),
        ([], ["games"], ["sudoku"]),
        (["gcd", "sudoku"], ["arithmetic"], ["gcd"]),
        ([], ["games", "arithmetic"], ["gcd", "lcm", "sudoku"]),
    ],
)
def test_names_and_categories_narrow_the_list(names, categories, chosen):
    assert command.chosen_tasks(LIBRARY, names, categories) == chosen


@pytest.mark.parametrize(
    ("names", "categories", "expected"),
    [
        (["gdc"], [], "command line: .*unknown task 'gdc'; did you mean 'gcd'"),
        (["gcd"], ["games"], "no such task is in such a category"),
    ],
)
def test_what_matches_nothing_is_refused(names, categories, expected):
    with pytest.raises(SettingError, match=expected):
        command.chosen_tasks(LIBRARY, names, categories)


@pytest.mark.processes
def test_names_may_stand_behind_options(capsys):
    assert run_main(["tasks", "--category", "arithmetic", "gcd"]) == 0
    assert capsys.readouterr().out.startswith("task: gcd\n")
