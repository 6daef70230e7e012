"""The statements that were ordered, each with the tests that show it."""

from __future__ import annotations

import asyncio
import logging

import pytest

from reasoning_gym_environment import ReasoningGymEnv, ReasoningGymEnvConfig
from rg_env import Item, score
from rg_env.cli import run_commands
from rg_env.errors import LibraryError, SettingError
from rg_env.library import registry
from rg_env.library.registry import TASKS
from rg_env.reward.extraction import extract_answer
from rg_env.reward.prompt import SYSTEM_PROMPT
from tests.support.documents import README, ROOT, text_of
from tests.support.imported_names import collected_names
from tests.support.parts import (
    RIGHT,
    WRONG,
    build_env,
    ready_env,
    rollout,
    run_main,
)

STATEMENTS = """
1 an environment to train language models: serve_works_with_every_hook_extended
2 of the tasks of reasoning-gym: every_registered_name_but_the_mixture_is_a_task
3 a link to the library: the_readme_says_what_was_ordered
4 100+ tasks: the_pages_name_every_category_and_the_number_of_tasks
5-7 mathematics, logic, programs: the_pages_name_every_category_and_the_number_of_tasks
8-11 arithmetic, algebra, logic puzzles, programs: the_tasks_that_were_ordered_are_there
12 answer tags or 0: exactly_one_answer_is_an_answer
13 raw and tagged, the higher one: the_higher_score_of_both_formats_counts
14-15 optional dumps, also of failures: groups_go_to_the_files_that_the_settings_want
16 logs: the_summary_says_endings_and_outcomes_with_the_commonest_first
17-20 GSM Symbolic, ARC, Sudoku, more: the_tasks_that_were_ordered_are_there
21 discovery: every_registered_name_but_the_mixture_is_a_task
22 a fallback list: names_are_there_without_the_library
23-26 binary tasks, partial credit: credit_is_partial_only_where_it_was_ordered
27 length penalty: the_penalty_falls_linearly_from_three_quarters_of_the_limit
27 if all are right: one_score_below_a_half_spares_the_whole_group
28 its threshold: a_group_is_kept_for_one_rollout_above_the_threshold
29 failed groups, all 0: groups_go_to_the_files_that_the_settings_want
30 progress to the threshold: every_ten_groups_the_log_says_how_full_a_file_is
31 JSONL: the_sample_line_has_the_keys_of_a_dumped_group
32-37 six settings: the_class_defaults_are_the_originals
38 of the framework: the_module_exports_an_environment_of_the_framework
39 the example of a configuration: the_ordered_configuration_is_accepted
40 the submodule: a_populated_submodule_is_used_instead_of_the_installed_package
41 requirements: the_requirements_are_what_the_code_imports
42-46 the folder: the_ordered_folder_is_there
47 data_dumps is made: a_file_is_complete_when_it_is_full
48 the import: the_plugin_can_be_imported_as
49-50 config_init: config_init_sets_these_values_and_no_others
50 its servers: config_init_names_one_server_in_a_list
51-52 construction and setup: attributes_and_stats_are_those_of_the_original
53 the framework's loop: serve_calls_every_hook_where_and_when_the_framework_does
54 the bare command: the_bare_command_is_serve
55-58 prompt and example: the_prompt_asks_for_what_was_ordered
59-60 names of files: dump_names_are_views_of_the_writers
61-65 lines of files: a_dumped_conversation_stands_beside_its_own_score
66 of failures: groups_go_to_the_files_that_the_settings_want
67 log of the setup: the_log_says_what_was_chosen_and_debug_mode_each_item
68-69 of groups and tasks: the_first_group_and_every_tenth_are_in_the_log
70-71 of progress and files: every_ten_groups_the_log_says_how_full_a_file_is
72 of formats: the_summary_says_endings_and_outcomes_with_the_commonest_first
73-74 of scores and answers: debug_mode_compares_both_formats_and_names_violations
75-83 examples of tasks: the_tasks_that_were_ordered_are_there
84 no tasks: a_broken_checkout_is_one_sentence_with_its_cause_and_repair
85 import errors: missing_packages_are_named_all_at_once
86 no rollouts saved: the_readme_says_what_was_ordered
87 format violations are 0: exactly_one_answer_is_an_answer
88-90 debug mode: debug_mode_compares_both_formats_and_names_violations
91 debug mode, tasks: the_log_says_what_was_chosen_and_debug_mode_each_item
92 random tasks: by_default_every_task_is_chosen_with_the_same_weight
93 a fixed test set: the_samples_are_the_evaluation_items
94 buffers are cleared: a_file_is_complete_when_it_is_full
95 both formats: the_higher_score_of_both_formats_counts
96 existing settings: the_command_line_wins_over_yaml_and_yaml_over_defaults
97 logs to debug: debug_mode_compares_both_formats_and_names_violations
98 success and failure: groups_go_to_the_files_that_the_settings_want
"""
ROWS = [line.partition(" ") for line in STATEMENTS.strip().splitlines()]


def test_every_statement_has_its_test():
    ranges = [[*map(int, row[0].split("-"))] for row in ROWS]
    numbers = {n for each in ranges for n in range(each[0], each[-1] + 1)}
    assert numbers == set(range(1, 99))
    shown = {row[2].rpartition(": ")[2] for row in ROWS}
    assert {f"test_{name}" for name in shown} - collected_names() == set()


# -- what no other test shows ----------------------------------------------------------


def test_the_readme_says_what_was_ordered():
    text = text_of(README)
    assert "(https://github.com/open-thought/reasoning-gym)" in text
    (row,) = [line for line in text.splitlines() if "No rollouts saved" in line]
    assert "dump_rollouts" in row and "rollout_save_score_threshold" in row
    text = " ".join(text.split())
    for word in ("<answer>", "both formats", "dump_failed_rollouts", "debug_logging"):
        assert word in text.partition("## More to read")[0]


def test_the_tasks_that_were_ordered_are_there():
    ordered = "gsm_symbolic arc_agi arc_1d sudoku basic_arithmetic chain_sum"
    ordered += " simple_equations polynomial_equations polynomial_multiplication"
    ordered += " propositional_logic knights_knaves word_ladder sentence_reordering"
    ordered += " codeio bf number_sorting word_sorting shortest_path game_of_life"
    assert set(ordered.split()) <= set(TASKS)
    assert len(TASKS) >= 100


def test_names_are_there_without_the_library(monkeypatch):
    def broken():
        raise LibraryError("broken")

    monkeypatch.setattr(registry, "describe", broken)
    names = ReasoningGymEnv.__new__(ReasoningGymEnv)._get_task_names()
    assert set(names) >= set(TASKS)


@pytest.mark.processes
def test_credit_is_partial_only_where_it_was_ordered():
    def value(task, spoil):
        item = Item(task, seed=1)
        (result,) = score(item, [f"<answer>{spoil(item.gold)}</answer>"])
        return result.value

    def letter_by_letter(gold):
        first, *_, last = gold.split(",")
        steps = [last[:place] + first[place:] for place in range(len(last) + 1)]
        return ",".join(dict.fromkeys(steps))

    for task in ("gcd", "chain_sum", "knights_knaves", "lcm"):
        assert (value(task, lambda _: "no"), value(task, str)) == (0.0, 1.0)
    assert value("gsm_symbolic", lambda gold: f"{gold}1") == 0.01
    assert 0 < value("word_ladder", letter_by_letter) < 1
    assert 0 < value("sentence_reordering", lambda gold: f"{gold} {gold}"[:-3]) < 1


def test_the_ordered_configuration_is_accepted():
    ReasoningGymEnvConfig(
        tokenizer_name="NousResearch/DeepHermes-3-Llama-3-8B-Preview",
        group_size=16,
        max_token_length=1024 * 16,
        dump_rollouts=True,
        dump_failed_rollouts=True,
        rollout_save_score_threshold=0.7,
        debug_logging=True,
    )


def test_the_ordered_folder_is_there():
    names = "reasoning_gym_environment.py reasoning-gym data_dumps requirements.txt"
    assert all((ROOT / name).exists() for name in [*names.split(), "README.md"])


def test_the_bare_command_is_serve(monkeypatch, capsys):
    def build(command, given):
        raise SettingError(f"built for {command.name}")

    monkeypatch.setattr(run_commands, "build_env", build)
    assert run_main([]) == 2
    assert capsys.readouterr().err == "error: built for serve\n"


def test_the_prompt_asks_for_what_was_ordered():
    assert "<think>" in SYSTEM_PROMPT and "<answer>" in SYSTEM_PROMPT
    example = "<think>\n2 + 3 = 5\n</think>\n\nI add 2 and 3.\n\n<answer>5</answer>"
    assert extract_answer(example).answer == "5"


def test_debug_mode_compares_both_formats_and_names_violations(caplog):
    caplog.set_level(logging.DEBUG, logger="rg_env")
    env = build_env(debug_logging=True)
    asyncio.run(env.score([rollout(text) for text in (RIGHT, WRONG, "4")]))
    said = caplog.text
    assert "right, answer '4', score 1.000 (bare 1.0, tagged None)" in said
    assert "wrong, answer '5', score 0.000 (bare 0.0, tagged 0.0)" in said
    assert "no_answer, answer None" in said


@pytest.mark.processes
async def test_the_log_says_what_was_chosen_and_debug_mode_each_item(caplog):
    caplog.set_level(logging.DEBUG, logger="rg_env")
    async with ready_env(tasks=["gcd", "lcm"], debug_logging=True) as env:
        await env.get_next_item()
    assert ": 105 tasks" in caplog.text and "2 tasks chosen" in caplog.text
    assert "next item <" in caplog.text
