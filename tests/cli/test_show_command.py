"""`show`: what it prints of an item, how it reads an answer and how it is scored."""

from __future__ import annotations

import asyncio
import io
import json
import signal
import subprocess
import sys
from types import SimpleNamespace

import pytest

from rg_env.cli import show_command, standard_streams
from rg_env.errors import SettingError, on_one_line, visible
from rg_env.items import worker_jobs
from rg_env.reports import item_sheet, progress_bar
from rg_env.reports.item_sheet import step_values
from rg_env.scoring.extraction import FORMAT_FAILURES
from rg_env.scoring.prompt import SYSTEM_PROMPT
from rg_env.scoring.score import OUTCOMES
from rg_env.scoring.scoring_rules import ScoringRules
from rg_env.tasks.scales import Scale, Step
from rg_env.workers.pool_errors import JobError
from tests.support.parts import ENTRY, GUARD_S, run_main, start_entry
from tests.support.processes import descendants, left_alive

SCALE = Scale(
    "gcd",
    (
        Step((0,), {}, 1.0),
        Step((1, 2), {"max_numbers": 3}, 1.0),
        Step((4,), {"max_numbers": 5}, 1.0),
    ),
)
LABELS = ("task", "level", "params", "seed", "read_as", "score", "outcome")


def shown(*argv, answer=None):
    """Run the command as a user does; return the finished process."""
    return subprocess.run(
        [sys.executable, str(ENTRY), "show", *argv],
        input=answer,
        stdin=subprocess.DEVNULL if answer is None else None,
        capture_output=True,
        text=True,
        timeout=GUARD_S,
    )


def options_of(*argv):
    """Return what the command makes of a command line."""
    with show_command.show.make_context("show", list(argv)) as context:
        return SimpleNamespace(**context.params)


def made(pool, *argv):
    return asyncio.run(show_command._make(pool, options_of(*argv)))


def scored(pool, sheet, text, **rules):
    judged = show_command._score(pool, sheet, text, "a test", ScoringRules(**rules))
    return asyncio.run(judged)


def item(question="2 and 4?", answer="2", step=None, params=None, seed=5):
    return {
        "task": "gcd",
        "level": None if step is None else 0.7,
        "step": step,
        "params": params or {},
        "seed": seed,
        "messages": [{"role": "system", "content": "Think."}],
        "question": question,
        "gold_answer": answer,
        "solution": answer,
        "metadata": {},
    }


def text_of(values):
    return "\n".join(item_sheet.lines(values))


def step_at(level, mix=0.1, scale=SCALE):
    return step_values(scale, scale.step_at(level, mix), mix)


# -- the real command line -------------------------------------------------------------


@pytest.mark.processes
def test_an_item_is_printed_with_the_score_of_a_piped_answer():
    done = shown("gcd", "--level=0.7", "--seed=5", "--answer=-", answer="  2\n")
    assert (done.returncode, done.stderr) == (0, "")
    said = done.stdout.splitlines()
    assert [
        label for label in LABELS if not any(s.startswith(f"{label}: ") for s in said)
    ] == []
    assert "outcome: right" in said


@pytest.mark.processes
def test_json_is_one_document_and_nothing_else():
    done = shown("gcd", "--level", "1", "--json", "--answer", "so <answer>x</answer>")
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert found["step"]["number"] == found["step"]["of"]
    assert found["messages"][1]["content"] == found["question"]
    answer = found["answer"]
    assert (answer["read_as"], answer["answer"]) == ("completion", "x")
    assert (answer["score"], answer["outcome"]) == (0.0, "wrong")


@pytest.mark.processes
def test_a_terminated_command_leaves_no_process():
    process = start_entry("show", "gcd", "--answer", "-", stdin=subprocess.PIPE)
    assert any(line == "solution:\n" for line in iter(process.stdout.readline, ""))
    children = descendants(process.pid)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=GUARD_S)
    assert children
    assert left_alive(children) == []


# -- refusals --------------------------------------------------------------------------


REFUSED = {
    "misspelt task": (["gdc"], "did you mean 'gcd'"),
    "mixture": (["composite"], "is a mixture"),
    "level of a task without a scale": (["acre", "--level=0.5"], "no difficulty scale"),
    "misspelt parameter": (
        ["gcd", "--param=min_number=3"],
        "did you mean 'min_numbers'",
    ),
}


@pytest.mark.processes
@pytest.mark.parametrize("case", REFUSED)
def test_a_wrong_command_line_is_refused_with_a_sentence(pool, case):
    argv, expected = REFUSED[case]
    with pytest.raises(SettingError) as refused:
        made(pool, *argv)
    assert expected in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_value_that_the_library_refuses_names_the_task_and_its_reason(pool):
    with pytest.raises(SettingError, match="--param of gcd: reasoning-gym refuses"):
        made(pool, "gcd", "--param", "min_numbers=0")


@pytest.mark.processes
def test_an_item_that_cannot_be_made_ends_with_status_1(capsys, monkeypatch):
    monkeypatch.setattr(show_command, "MAKE_DEADLINE_S", 1e-4)
    assert run_main(["show", "zebra_puzzles"]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    why = "its item was not done after 0.0001 s of CPU time"
    assert said.err.startswith(f"error: zebra_puzzles: {why}; another --seed")


def test_an_item_that_takes_more_memory_than_a_worker_has_is_a_sentence():
    said = show_command._sentence("gcd", JobError("MemoryError", ""))
    assert said.startswith("gcd: its item takes more memory than a worker may have;")


@pytest.mark.processes
def test_an_item_that_takes_long_is_said_to_be_in_the_making(caplog, monkeypatch):
    monkeypatch.setattr(progress_bar, "FIRST_LINE_S", 1e-3)
    assert run_main(["show", "zebra_puzzles"]) == 0
    making = "making an item of zebra_puzzles, given up after 60 s of CPU time: "
    assert making in caplog.text


@pytest.mark.processes
def test_an_unusable_entry_is_answered_with_another_seed(capsys):
    params = ("min_disks=13", "max_disks=13", "min_pegs=3", "max_pegs=3")
    argv = [f"--param={param}" for param in params]
    assert run_main(["show", "tower_of_hanoi", *argv]) == 1
    assert "another --seed makes another item" in capsys.readouterr().err


# -- which item ------------------------------------------------------------------------


def test_the_item_is_the_librarys_of_that_seed(pool):
    item = made(pool, "gcd", "--seed", "7")
    call = (worker_jobs.make_entry, "gcd", {}, 7)
    entry = pool.call(*call, deadline_s=GUARD_S)
    names = ("question", "gold_answer", "metadata")
    assert [item[name] for name in names] == [*entry.values()]
    assert (item["params"], item["step"]) == ({}, None)


def test_without_a_seed_it_is_the_first_that_makes_an_item(pool):
    items = {task: made(pool, task) for task in ("gcd", "zebra_puzzles", "syllogism")}
    assert items["gcd"]["seed"] == 0
    assert all(item["question"] for item in items.values())


def test_parameters_win_over_those_of_the_level(pool):
    item = made(pool, "gcd", "--level", "1", "--param", "max_numbers=9")
    assert item["params"]["max_numbers"] == 9
    assert item["params"].keys() > {"max_numbers"}


def test_values_of_parameters_are_those_of_yaml(pool):
    (no, weights) = ("--param=allow_negation=true", "--param=min_digits=2")
    item = made(pool, "chain_sum", no, weights)
    assert item["params"] == {"allow_negation": True, "min_digits": 2}


def test_both_steps_beside_a_level_are_made_by_some_seed(pool):
    items = [made(pool, "gcd", "--level=0.5", f"--seed={n}") for n in range(8)]
    assert len({item["step"]["number"] for item in items}) == 2


# -- what is printed of an item --------------------------------------------------------


@pytest.mark.parametrize(
    ("level", "mix", "number"),
    [(0.7, 0.1, 3), (0.7, 0.9, 2), (0.0, 0.999, 1), (0.5, 0.999, 2), (1.0, 0.999, 3)],
)
def test_a_level_says_on_which_step_it_falls(level, mix, number):
    step = step_at(level, mix)
    assert (step["number"], step["of"]) == (number, 3)
    assert f'step: {{"number": {number}, "of": 3, ' in text_of(item(step=step))


def test_a_scale_whose_items_do_not_change_says_so():
    dead = Scale("gcd", SCALE.steps, is_dead_knob=True, note="all alike")
    said = text_of(item(step=step_at(0.5, scale=dead)))
    assert '"note": "all alike"}' in said


def test_a_question_is_neither_wrapped_nor_read_as_markup():
    question = "[bold]grid[/bold]\n" + "1 0 " * 60 + "\n\n\ta\\b  "
    indented = question.replace("\n", "\n  ").replace("\n  \n", "\n\n")
    assert f"question:\n  {indented}\n" in text_of(item(question))


def test_control_characters_are_escaped():
    said = text_of(item("a\x1b[2Jb\r\u202e\u2028\ud800", answer="\x07"))
    assert "a\\x1b[2Jb\\r\\u202e\\u2028\\ud800\n" in said
    assert said.endswith("\\x07")


def test_characters_with_a_picture_stay():
    text = "é 漢 🤍\U000e0144 \u200d ┼"
    assert visible(text) == text


def test_a_long_value_is_cut_to_its_line():
    assert on_one_line("a\n" + "b" * 50, 12) == "a\\nbbbbbb..."


def test_an_entry_without_an_answer_says_so():
    assert "the library keeps none" in text_of(item(answer=None))


def test_the_prompt_is_the_one_of_training(pool):
    found = made(pool, "gcd")
    said = item_sheet.message_lines(found["messages"])
    assert [line for line in said if not line.startswith("  ")] == ["system:", "user:"]
    assert said[1].replace("\n  ", "\n") == f"  {SYSTEM_PROMPT}"
    assert said[3] == f"  {found['question']}"


# -- answers ---------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["2", "-x + 3", "-", "--5"])
def test_an_answer_may_begin_with_a_dash(text):
    options = options_of("gcd", "--answer", text, "--json")
    assert (options.answer, options.as_json) == (text, True)


def test_a_bare_answer_is_stripped_and_scored(pool):
    item = made(pool, "gcd")
    found = scored(pool, item, " " + item["solution"] + "\n")
    assert (found["outcome"], found["read_as"]) == ("right", "answer")


def test_a_text_with_tags_is_read_as_a_completion(pool):
    item = made(pool, "gcd")
    found = scored(pool, item, f"<think>1</think> <answer>{item['solution']}</answer>")
    assert (found["outcome"], found["read_as"]) == ("right", "completion")


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("<answer>1</answer><answer>2</answer>", "several_answers"),
        ("<think>1", "unfinished_thinking"),
        ("<answer>1", "unclosed_answer"),
    ],
)
def test_a_completion_without_one_answer_says_why(pool, text, outcome):
    found = scored(pool, item(), text)
    assert (found["outcome"], found["score"]) == (outcome, 0.0)
    assert f"outcome: {outcome}" in item_sheet.lines(found)


def test_a_refused_answer_says_why(pool):
    found = scored(pool, made(pool, "puzzle24"), "9**9**9")
    assert found["outcome"] == "rejected"
    assert "'**'" in found["reason"]
    assert f"reason: {found['reason']}" in item_sheet.lines(found)


def test_a_refused_long_answer_says_how_long_it_may_be(pool):
    found = scored(pool, made(pool, "gcd"), "1" * 11, max_answer_chars=10)
    assert found["reason"] == "it has 11 characters, and 10 may be"


def test_an_empty_answer_is_given_and_empty(pool):
    found = scored(pool, made(pool, "gcd"), "")
    assert found["outcome"] == "empty_answer"


@pytest.mark.processes
def test_without_fixes_the_librarys_own_score_is_shown(pool, capsys):
    fixed = scored(pool, made(pool, "game_of_life_halting"), "...")
    argv = ["show", "game_of_life_halting", "--answer=...", "--json", "--no_fixes"]
    assert run_main(argv) == 0
    own = json.loads(capsys.readouterr().out)["answer"]["score"]
    assert (fixed["score"], own) == (0.0, 1.0)


def test_every_outcome_has_its_meaning():
    scores = {"right", "partial", "wrong", "empty_answer"}
    faults = {"scorer_error", "rejected", "timeout"}
    assert OUTCOMES.keys() >= scores | faults | FORMAT_FAILURES


def test_standard_input_is_read_where_an_option_says_so(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("4 é\n"))
    assert standard_streams.given_answer(None) is None
    assert standard_streams.given_answer("5") == ("5", "the command line")
    assert standard_streams.given_answer("-") == ("4 é\n", "standard input")
