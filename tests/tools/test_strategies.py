"""Answers without solving the item."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.trivial_baselines.strategies import SOLVING, STRATEGIES, answers

SUDOKU = "Solve this 4x4 puzzle:\n_ 1 _ 4\n_ _ 2 _\n_ _ _ _\n_ 4 1 _\nSo be it.\n"
GRAPH = 'Vertices: [0, 1, 2]\nEdges: [(0, 1)]\nColors: [1, 2]\nAs JSON: {"0": 1}'


def said(name: str, question: str, *golds: str, task: str = "some_task") -> str | None:
    seen = [("?", gold) for gold in golds]
    return answers(task, question, seen, "key").get(name)


def test_an_answer_word_that_the_question_names_is_picked_by_its_place() -> None:
    question = "Bob is tall, Carol is small. Who is it?"
    assert said("first answer word named", question, "Carol", "Bob", "Eve") == "Bob"
    assert said("last answer word named", question, "Carol", "Bob", "Eve") == "Carol"
    assert said("answer word not named", question, "Carol", "Bob", "Eve") == "Eve"


def test_no_word_is_drawn_where_right_answers_are_many() -> None:
    assert said("random answer word", "?", *map(str, range(100))) is None


def test_colours_are_given_in_turn() -> None:
    text = said("first list to last list in turn", GRAPH)
    assert text is not None
    assert json.loads(text) == {"0": 1, "1": 2, "2": 1}


def test_one_side_of_the_form_shown_is_taken() -> None:
    question = 'Answer like: "Ann is a pious/laconic, and Bo is a pious/laconic"'
    assert said("second side of the form", question) == (
        "Ann is a laconic, and Bo is a laconic"
    )


def test_the_same_key_gives_the_same_answers() -> None:
    first, again = (answers("some_task", SUDOKU, [("?", "1")], "key") for _ in range(2))
    assert first == again
    assert answers("some_task", SUDOKU, [("?", "1")], "other") != first


def test_a_strategy_that_solves_a_task_is_left_out_there() -> None:
    question = "Spell this word backward: turnbout"
    assert said("text reversed", question) == "tuobnrut"
    assert said("text reversed", question, task="spell_backward") is None


def test_what_solves_a_task_is_a_strategy() -> None:
    assert set().union(*SOLVING.values()) <= set(STRATEGIES)


@pytest.mark.slow
@given(st.text("_\\?:[]{}\"'`(), -.\n/Aab0123Q❔", max_size=60))
def test_no_strategy_fails_on_any_question(question: str) -> None:
    answers("some_task", question, [("?", "1")], "key")
    answers("some_task", f"{question}\n{question}: {question}", [], "key")
