"""`tasks`, `show`, `doctor`: what they print of tasks and items, and how they end."""

from __future__ import annotations

import itertools
import re

import pytest

from rg_env.cli import task_commands as command
from rg_env.cli.task_commands import TaskFacts
from rg_env.errors import on_one_line, visible
from rg_env.library import worker_jobs
from rg_env.library.registry import TaskInfo
from rg_env.library.scales import Scale, SkippedLevel, Step
from tests.support.parts import GUARD_S, REPO_ROOT, run_main

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


@pytest.fixture(scope="module")
def installed(pool):
    return pool.call(worker_jobs.describe_library, deadline_s=GUARD_S)


# -- the list --------------------------------------------------------------------------


async def test_every_task_has_its_row_below_its_category_in_80_columns(pool, installed):
    facts = await command.read_facts([], [], pool)
    lines, category, tasks = command.task_table(facts).splitlines(), None, []
    for line, below in itertools.pairwise(lines):
        if re.match("  [a-z]", line):
            tasks.append(line.split()[0])
            assert installed.tasks[tasks[-1]].category == category
            assert re.match("    [a-z]", below)
        elif re.fullmatch("[a-z]+", line):
            category = line
    assert sorted(tasks) == list(installed.tasks)
    assert max(map(len, lines)) <= 80
    assert lines[-1] == f"{len(tasks)} tasks"


def test_every_task_says_in_a_line_what_it_asks_for(installed):
    assert set(command.ASKS) == {*installed.tasks, "composite"}
    assert max(map(len, command.ASKS.values())) <= 64


def test_a_row_has_steps_the_default_level_and_costs():
    off = TaskInfo("off", "games", {}, True)  # its default is no point of the scale
    constant = Scale("off", SCALE.steps[2:])
    listed = command.task_table([FACTS, NO_SCALE, TaskFacts(off, constant)])
    rows = [line.split() for line in listed.splitlines()]
    assert ["towers", "3", "0.00", "0.25", "1234"] in rows
    assert ["acre", "none"] in rows
    assert ["off", "1*", "off", "1234", "1234"] in rows


# -- one task --------------------------------------------------------------------------


def test_one_task_is_shown_with_all_its_facts():
    lines = [line.strip() for line in command.task_details(FACTS).splitlines()]
    assert 'level 0.5 (20 ms): {"weights": [0.5], "min_disks": 5}' in lines
    assert {"default_level: 0.0", "skipped level 2: it hangs"} <= set(lines)
    assert "nothing can be varied" in command.task_details(NO_SCALE)


# -- choosing --------------------------------------------------------------------------


CHOSEN = """
?c?              |                       | gcd lcm
                 | induction probability | acre coin_flip list_functions
gcd sudoku acre  | arithmetic games      | gcd sudoku
"""
"""Names, categories, and the tasks that match both."""


@pytest.mark.parametrize("row", CHOSEN.strip("\n").splitlines())
def test_names_and_categories_narrow_the_list(installed, row):
    names, categories, tasks = map(str.split, row.split("|"))
    assert command.chosen_tasks(installed, names, categories) == tasks


# -- an item ---------------------------------------------------------------------------


@pytest.mark.processes
def test_an_item_that_cannot_be_made_ends_with_status_1(capsys, monkeypatch):
    monkeypatch.setattr(command, "MAKE_DEADLINE_S", 0.01)
    assert run_main(["show", "zebra_puzzles"]) == 1
    printed = capsys.readouterr().err
    why = "its item was not done after 0.01 s of CPU time; another --seed"
    assert printed.startswith(f"error: zebra_puzzles: {why}")


async def test_the_item_is_the_librarys_of_that_seed_or_of_the_first(pool):
    for seeds, seed in (([7], 7), (range(9), 0)):
        item = await command._make_item(pool, "gcd", None, seeds)
        call = (worker_jobs.make_entry, "gcd", {}, seed)
        assert item.entry == pool.call(*call, deadline_s=GUARD_S)
        assert item.params == {}


def test_foreign_text_is_shown_without_markup_or_control_characters():
    question = "[bold]grid[/bold]\n" + "1 0 " * 60 + "\n\n\ta\\b  "
    indented = question.replace("\n", "\n  ").replace("\n  \n", "\n\n")
    assert command.value_lines({"question": question}) == ["question:", f"  {indented}"]
    (_, text) = command.value_lines({"answer": "a\x1b[2Jb\r\u202e\u2028\ud800"})
    assert text == "  a\\x1b[2Jb\\r\\u202e\\u2028\\ud800"
    pictures = "é 漢 🤍\U000e0144 \u200d ┼"
    assert visible(pictures) == pictures
    assert on_one_line("a\n" + "b" * 50, 12) == "a\\nbbbbbb..."


# -- the check of an installation ------------------------------------------------------


def test_untranslated_tasks_and_other_scorers_are_named():
    tasks = [
        TaskInfo("gcd", "arithmetic", {}, True, languages=("de", "en")),
        TaskInfo("jugs", "games", {}, True, languages=("en",)),
    ]
    scorer, language = command.remarks(tasks, ["jugs"])
    assert scorer.endswith(": jugs") and language.endswith("always in English: jugs")
    assert command.remarks([INFO], []) == []


# -- in a process ----------------------------------------------------------------------

OWN = REPO_ROOT / "tests" / "support" / "own_tasks.py"
RUNS = f"""
0 | tasks --category arithmetic gcd | task: gcd; category: arithmetic; level 1 (
0 | show gcd --level=0.7 --seed=5 --answer=2 | level: 0.7; seed: 5; outcome: right
0 | show game_of_life_halting --answer=... --no_fixes | params: {{}}; score: 1.0
0 | show scorer_raises --answer=5 --task_modules {OWN} | error: ; no such thing
0 | doctor gcd boxnet lcm --items 2 | passed: 3 of 3 tasks; doctor: 3 of 3 tasks
1 | doctor gcd raises --items 2 --task_modules {OWN} | division by zero; passed: 1 of 2
"""
"""Status, command line, and parts of what it prints."""


@pytest.mark.processes
@pytest.mark.parametrize("row", RUNS.strip().splitlines())
def test_a_command_ends_with_its_status_and_prints_its_results(row, capsys, logged):
    status, line, parts = row.split(" | ")
    assert run_main(line.split()) == int(status)
    printed = capsys.readouterr().out + logged.text
    assert [part for part in parts.split("; ") if part not in printed] == []
