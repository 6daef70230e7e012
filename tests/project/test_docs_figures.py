"""Figures of the pages: counts are those of the code, times name their machine."""

from __future__ import annotations

from rg_env.cli.main import COMMANDS
from rg_env.task_rules.table import TABLE
from rg_env.tasks.scales import load_shipped
from tests.support.documents import README, ROOT, text_of
from tests.support.hostile_texts import HOSTILE

FASTER = [one for row in TABLE.values() for one in row.faster]
MEASUREMENTS = ROOT / "docs" / "measurements.md"
AUDITS = ROOT / "docs" / "reward_audits.md"


NUMBERS = {
    8: "eight",
    9: "nine",
    11: "eleven",
    12: "twelve",
    13: "thirteen",
    14: "fourteen",
    15: "fifteen",
    16: "sixteen",
    20: "twenty",
}


def test_the_page_of_faster_items_names_every_function_that_is_replaced():
    names = {replacement.name.rpartition(".")[2] for replacement in FASTER}
    assert [name for name in names if name not in text_of(MEASUREMENTS)] == []
    tasks = {replacement.module for replacement in FASTER}
    assert f"{NUMBERS[len(tasks)]} tasks" in text_of(MEASUREMENTS)


def test_the_counts_of_tasks_and_levels_are_those_of_the_table_of_scales():
    scales = load_shipped().scales.values()
    works = sum(len(step.levels) for scale in scales for step in scale.steps)
    levels = works + sum(len(scale.skipped) for scale in scales)
    said = " ".join(text_of(MEASUREMENTS).split())
    repaired = sum(rules.level_repair is not None for rules in TABLE.values())
    changing = sum(not scale.is_dead for scale in scales)
    assert (
        f"{len(scales)} of 105 tasks have a scale of levels, and in {changing}" in said
    )
    assert f"{works} of {levels} levels of the library work" in said
    assert f"{NUMBERS[repaired]} tasks have levels that work here" in said.lower()


def test_the_number_of_hostile_texts_is_that_of_the_list():
    assert f"{len(HOSTILE)} hostile texts in each of" in text_of(AUDITS)


def test_the_number_of_commands_is_that_of_the_program():
    assert f"All {NUMBERS[len(COMMANDS)]} commands" in text_of(README)
