"""Which questions are asked: none of the evaluation's, few for the second time."""

import json

import pytest

from rg_env.tasks.asked_questions import AskedQuestions, QuestionFilter


def asked(*questions, remembered=3):
    memory = AskedQuestions(remembered)
    for question in questions:
        memory.add("gcd", question)
    return memory


def test_a_question_that_was_asked_is_known_for_its_task_alone():
    memory = asked("a")
    assert memory.has("gcd", "a")
    assert not memory.has("lcm", "a")


def test_the_oldest_question_is_forgotten_first():
    memory = asked("a", "b", "c", "d")
    assert [memory.has("gcd", q) for q in "abcd"] == [False, True, True, True]


def test_a_question_asked_twice_is_forgotten_with_its_last_place():
    memory = asked("a", "b", "a", "c")
    assert memory.has("gcd", "a")
    memory.add("gcd", "d")
    memory.add("gcd", "e")
    assert not memory.has("gcd", "a")


def test_the_state_survives_json():
    state = json.loads(json.dumps(asked("a", "\ud800", "c").state_dict()))
    resumed = AskedQuestions(3)
    resumed.load_state_dict(state)
    assert resumed.state_dict() == state
    assert resumed.has("gcd", "\ud800")


@pytest.mark.parametrize("state", [[], {"gcd": 1}, {"gcd": "?"}, {"gcd": "AAAA"}])
def test_a_state_of_another_form_is_refused_and_nothing_changes(state):
    memory = asked("a")
    with pytest.raises(ValueError, match="asked questions"):
        memory.load_state_dict(state)
    assert memory.has("gcd", "a")


def test_a_question_of_the_evaluation_is_told_from_a_repeat():
    questions = QuestionFilter()
    questions.keep_for_evaluation(["a"])
    questions.asked.add("gcd", "b")
    verdicts = [questions.verdict("gcd", question) for question in "abc"]
    assert verdicts == ["evaluation", "repeat", "fresh"]
