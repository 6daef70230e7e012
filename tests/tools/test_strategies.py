"""Answers without solving the item."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.trivial_baselines.strategies import answers

CHOICE = "Which is it: 3, 5, 8, 13, 21, 34?"


def said(name, question, *golds, task="some_task"):
    seen = [("?", gold) for gold in golds]
    return answers(task, question, seen, "key").get(name)


def test_an_answer_word_that_the_question_names_is_picked_by_its_place():
    question = "Bob is tall, Carol is small. Who is it?"
    assert said("first answer word named", question, "Carol", "Bob", "Eve") == "Bob"
    assert said("answer word not named", question, "Carol", "Bob", "Eve") == "Eve"


@pytest.mark.parametrize(
    ("name", "question", "gold", "answer"),
    [
        ("next term", "3, 5, 9, 17, ?", "0", "33"),
        ("next term", "1, 2, 3, 5, 8, ?", "0", "13"),
        ("half of the bars", "Count '#':\n ### \n # # \n ### \n", "0", "1"),
        (
            "part of the question that looks like an answer",
            "Simplify $12/18$ for 5 points.",
            "3/7",
            "12/18",
        ),
        (
            "part of the question that looks like an answer",
            "Sort these: [3, 1, 2] of `a`",
            "[2, 5, 6]",
            "[3, 1, 2]",
        ),
    ],
)
def test_a_rule_of_thumb_reads_the_question_alone(name, question, gold, answer):
    assert said(name, question, gold) == answer


def test_an_answer_is_taken_from_where_such_names_were_asked_for():
    seen = [("Al married Bea. Their child is Cy. What is Bea to Cy?", "mother")]
    question = "Di married Eve. Their child is Flo. What is Eve to Flo?"
    name = "commonest answer where such names are asked for"
    assert answers("some_task", question, seen, "key")[name] == "mother"


def test_the_same_key_gives_the_same_answers():
    first, again = (answers("some_task", CHOICE, [("?", "1")], "key") for _ in range(2))
    assert first == again
    assert answers("some_task", CHOICE, [("?", "1")], "other") != first


def test_a_strategy_that_solves_a_task_is_left_out_there():
    question = "Spell this word backward: turnbout"
    assert said("text reversed", question) == "tuobnrut"
    assert said("text reversed", question, task="spell_backward") is None


@pytest.mark.slow
@given(st.text("_\\?:[]{}\"'`(), -.\n/Aab0123Q❔", max_size=60))
def test_no_strategy_fails_on_any_question(question):
    answers("some_task", question, [("?", "1")], "key")
    answers("some_task", f"{question}\n{question}: {question}", [], "key")
