"""`tasks`: what it lists, what it says of one task, and the figures it measures."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys

import pytest

from rg_env.cli import tasks_command as command
from rg_env.cli.standard_streams import rendered
from rg_env.errors import SettingError
from rg_env.items import worker_jobs
from rg_env.reports import task_list
from rg_env.reports.task_list import TaskFacts
from rg_env.tasks.library import LibraryDescription, TaskInfo
from rg_env.tasks.scales import Scale, SkippedLevel, Step, load_shipped
from tests.support.parts import ENTRY, GUARD_S, run_main

INFO = TaskInfo("towers", "games", {"min_disks": "3", "weights": "[0.1]"}, True)
SCALE = Scale(
    task="towers",
    steps=(
        Step((0, 1), {}, 0.25),
        Step((3,), {"weights": [0.5], "min_disks": 5}, 20.0),
        Step((4, 5), {"min_disks": 9}, 1234.5),
    ),
    skipped=(SkippedLevel(2, "it hangs"), SkippedLevel(6, "it hangs")),
    note="repaired: it was broken",
    default_level=0.0,
)
FACTS = TaskFacts(INFO, SCALE)
NO_SCALE = TaskFacts(
    TaskInfo("acre", "induction", {}, False), None, "nothing can be varied"
)
LIBRARY = LibraryDescription(
    {
        "gcd": TaskInfo("gcd", "arithmetic", {}, True),
        "lcm": TaskInfo("lcm", "arithmetic", {}, True),
        "sudoku": TaskInfo("sudoku", "games", {}, True),
    },
    "0.1.25",
    "",
    False,
)


@pytest.fixture(scope="module")
def installed(pool):
    return pool.call(worker_jobs.describe_library, deadline_s=GUARD_S)


@pytest.fixture(scope="module")
def listing():
    """What the command prints to a user who asks for all tasks."""
    done = subprocess.run(
        [sys.executable, str(ENTRY), "tasks"],
        capture_output=True,
        text=True,
        timeout=GUARD_S,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.fixture(scope="module")
def document(pool):
    library, facts = asyncio.run(command._facts([], [], pool))
    return json.loads(json.dumps(task_list.as_json(facts, library.version)))


def details(facts=FACTS):
    parts = task_list.details(facts, "0.1.25", "as measured")
    return rendered(*parts, width=80)


def words(text):
    """Return a text without its line breaks and indents."""
    return " ".join(text.split())


# -- the list --------------------------------------------------------------------------


def test_every_task_has_its_row(listing, installed):
    lines = listing.splitlines()
    rows = [n for n, line in enumerate(lines) if re.match("  [a-z]", line)]
    assert sorted(lines[n].split()[0] for n in rows) == list(installed.tasks)
    assert all(re.match("    [a-z]", lines[n + 1]) for n in rows)


def test_every_task_says_in_a_line_what_it_asks_for(installed):
    assert set(task_list.ASKS) == {*installed.tasks, "composite"}
    assert max(map(len, task_list.ASKS.values())) <= 64


@pytest.mark.processes
def test_no_line_is_longer_than_80_columns(listing):
    assert max(map(len, listing.splitlines())) <= 80


@pytest.mark.processes
def test_the_tasks_stand_below_their_category(listing, installed):
    category = None
    for line in listing.splitlines():
        if re.match("  [a-z]", line):
            assert installed.tasks[line.split()[0]].category == category
        elif line.endswith(")"):
            category = line.split()[0]


@pytest.mark.processes
def test_the_last_line_is_the_summary(listing, document):
    found = document["summary"]
    assert listing.splitlines()[-1].startswith(
        f"{found['tasks']} tasks, {found['with_scale']} with a scale: "
    )


def test_a_row_has_steps_levels_place_of_the_default_and_costs():
    listed = rendered(task_list.table([FACTS, NO_SCALE]))
    rows = [line.split() for line in listed.splitlines()]
    assert ["towers", "3", "0-1,3-5", "2,6", "0.00", "0.25", "1234"] in rows
    assert ["acre", "none"] in rows


def test_a_default_that_is_no_point_of_the_scale_is_off():
    scale = Scale("towers", SCALE.steps, default_level=None)
    listed = rendered(task_list.table([TaskFacts(INFO, scale)]))
    assert listed.splitlines()[-1].split()[3] == "off"


def test_a_dead_scale_is_marked_and_named_below():
    scale = Scale("towers", SCALE.steps, is_dead_knob=True)
    dead = TaskFacts(INFO, scale)
    assert "3*" in rendered(task_list.table([dead]))
    assert "* The items do not change with the level: towers." in task_list.legend(
        [dead], ""
    )


def test_tasks_without_a_scale_are_named_below():
    assert "Without a scale: acre." in task_list.legend([FACTS, NO_SCALE], "")


# -- one task --------------------------------------------------------------------------


def test_one_task_is_shown_with_every_step():
    rows = [line.split(maxsplit=4) for line in details().splitlines()]
    assert ["1", "0.00", "0-1", "0.25", "(the library's defaults)"] in rows
    assert ["2", "0.50", "3", "20.0", "min_disks=5, weights=[0.5]"] in rows
    assert ["3", "1.00", "4-5", "1234", "min_disks=9"] in rows


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (FACTS, "skipped levels 2,6: it hangs"),
        (FACTS, "note repaired: it was broken"),
        (FACTS, "3 steps; the library's defaults are at 0.00"),
        (FACTS, "min_disks = 3 weights = [0.1]"),
        (NO_SCALE, "curriculum no scale none: nothing can be varied"),
    ],
)
def test_one_task_is_shown_with_all_that_is_known_of_it(facts, expected):
    assert expected in words(details(facts))


def test_long_values_stay_within_80_columns():
    long = {"weights": [0.125] * 40, "min_disks": 5}
    info = TaskInfo("towers", "games", {n: repr(v) for n, v in long.items()}, True)
    facts = TaskFacts(info, Scale("towers", (Step((0,), long, 1.0),), note="n " * 60))
    lines = details(facts).splitlines()
    assert max(map(len, lines)) <= 80
    assert "".join(line[24:] for line in lines).count("0.125") >= 30


def test_foreign_text_is_no_markup():
    note = Scale("towers", SCALE.steps, note="[bold]x[/bold]")
    assert "[bold]x[/bold]" in details(TaskFacts(INFO, note))


@pytest.mark.processes
@pytest.mark.parametrize("task", ["gcd", "rearc", "acre"])
def test_one_named_task_is_shown_in_full(task, capsys):
    assert run_main(["tasks", task]) == 0
    said = capsys.readouterr().out
    assert said.startswith(f"task        {task} (")
    assert max(map(len, said.splitlines())) <= 80


# -- JSON ------------------------------------------------------------------------------


@pytest.mark.processes
def test_json_holds_every_task_and_the_sums(document, installed):
    assert sorted(task["task"] for task in document["tasks"]) == list(installed.tasks)
    scales = [task["scale"] for task in document["tasks"] if task["scale"] is not None]
    assert document["summary"]["with_scale"] == len(scales)
    assert document["summary"]["steps"] == sum(len(s["steps"]) for s in scales)


def test_json_has_the_parameters_of_the_shipped_steps(document):
    shipped = load_shipped().scales
    for task in document["tasks"]:
        scale = shipped.get(task["task"])
        steps = [] if scale is None else scale.steps
        found = [] if task["scale"] is None else task["scale"]["steps"]
        assert [step["params"] for step in found] == [dict(s.params) for s in steps]


def test_json_says_why_a_task_has_no_scale(document):
    lacking = [task for task in document["tasks"] if task["scale"] is None]
    assert lacking
    assert [task["task"] for task in lacking if not task["no_scale_reason"]] == []


def test_json_has_the_skipped_levels_with_their_reasons():
    (task,) = task_list.as_json([FACTS], "")["tasks"]
    assert task["scale"]["skipped"][0] == {"rg_level": 2, "reason": "it hangs"}
    assert [step["level"] for step in task["scale"]["steps"]] == [0.0, 0.5, 1.0]


# -- choosing --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "categories", "chosen"),
    [
        ([], [], ["gcd", "lcm", "sudoku"]),
        (["?c?"], [], ["gcd", "lcm"]),
        ([], ["games"], ["sudoku"]),
        (["gcd", "sudoku"], ["arithmetic"], ["gcd"]),
        ([], ["games", "arithmetic"], ["gcd", "lcm", "sudoku"]),
    ],
)
def test_names_and_categories_narrow_the_list(names, categories, chosen):
    assert command._chosen(LIBRARY, names, categories) == chosen


@pytest.mark.parametrize(
    ("names", "categories", "expected"),
    [
        (["gdc"], [], "unknown task 'gdc'; did you mean 'gcd'"),
        (["*_sorting"], [], "unknown task '*_sorting'"),
        ([], ["game"], "did you mean 'games'"),
        (["gcd"], ["games"], "no task with such a name is in such a category"),
        (["composite"], [], "is a mixture"),
    ],
)
def test_what_matches_nothing_is_refused(names, categories, expected):
    with pytest.raises(SettingError) as refused:
        command._chosen(LIBRARY, names, categories)
    assert expected in str(refused.value)


@pytest.mark.processes
def test_names_may_stand_behind_options(capsys):
    assert run_main(["tasks", "--category", "arithmetic", "gcd", "--json"]) == 0
    (task,) = json.loads(capsys.readouterr().out)["tasks"]
    assert task["task"] == "gcd"
