"""The rules of a task in the other languages of the multilingual version."""

import pytest

from rg_env.task_rules.arc import shows_no_rule
from rg_env.task_rules.table import fault_of, rules_of

MOVES = {
    "jugs": ('["fülle B", "gieße B->A"]', '["fülle B nicht", "gieße B->A"]'),
    "sokoban": ("→→↑←", "→→↑← nicht ↑"),
    "tower_of_hanoi": ("円盤1を柱1から柱3へ移動せよ", "~円盤1を柱1から柱3へ移動せよ"),
}
"""Task to a reference answer, and to an answer that says more."""


@pytest.mark.parametrize("task", MOVES)
def test_moves_are_read_as_the_reference_writes_them(task):
    right, more = MOVES[task]
    score = rules_of(task).fix.score
    assert score(right, {"answer": right}, lambda answer: 1.0) == 1.0
    assert score(more, {"answer": right}, lambda answer: 1.0) <= 0.01


def test_every_move_of_a_line_is_played():
    move = MOVES["tower_of_hanoi"][0]
    played = []
    score = rules_of("tower_of_hanoi").fix.score
    score(f"{move} {move}", {"answer": move}, lambda text: played.append(text) or 1.0)
    assert played == [f"{move}\n{move}"]


def test_examples_in_another_language_are_not_taken_for_none():
    question = "Eingabe:\n1 2\nAusgabe:\n2 1\n\nEingabe:\n3 4"
    assert not shows_no_rule({"question": question, "answer": "4 3"})


def test_a_wrong_reference_answer_of_aiw_is_found_in_any_language():
    question = "Susan hat 3 Kollegen und 5 Kolleginnen, James 4 und {}. Wie viele?"
    entry = {"answer": "6", "metadata": {"task_type": "colleagues"}}
    assert fault_of("aiw", {**entry, "question": question.format(4)})
    assert fault_of("aiw", {**entry, "question": question.format(2)}) is None


def test_a_task_that_was_renamed_has_its_rules():
    assert rules_of("syllogisms") is rules_of("syllogism")
