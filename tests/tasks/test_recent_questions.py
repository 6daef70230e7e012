"""Which questions are sampled: none of the evaluation's, few for the second time."""

import json

import pytest

from rg_env.tasks.recent_questions import QuestionFilter, RecentQuestions, Ruling
from rg_env.tasks.sampler import MAX_ATTEMPTS


def sampled(*questions, remembered=3):
    memory = RecentQuestions(remembered)
    for question in questions:
        memory.add("gcd", question)
    return memory


def test_a_question_that_was_sampled_is_known_for_its_task_alone():
    memory = sampled("a")
    assert memory.has("gcd", "a")
    assert not memory.has("lcm", "a")


def test_the_oldest_question_is_forgotten_first():
    memory = sampled("a", "b", "c", "d")
    assert [memory.has("gcd", q) for q in "abcd"] == [False, True, True, True]


def test_a_question_sampled_twice_is_forgotten_with_its_last_place():
    memory = sampled("a", "b", "a", "c")
    assert memory.has("gcd", "a")
    memory.add("gcd", "d")
    memory.add("gcd", "e")
    assert not memory.has("gcd", "a")


def test_the_state_survives_json():
    state = json.loads(json.dumps(sampled("a", "\ud800", "c").state_dict()))
    resumed = RecentQuestions(3)
    resumed.load_state_dict(state)
    assert resumed.state_dict() == state
    assert resumed.has("gcd", "\ud800")


@pytest.mark.parametrize("state", [[], {"gcd": 1}, {"gcd": "?"}, {"gcd": "AAAA"}])
def test_a_state_of_another_form_is_refused_and_nothing_changes(state):
    memory = sampled("a")
    with pytest.raises(ValueError, match="recent questions"):
        memory.load_state_dict(state)
    assert memory.has("gcd", "a")


# -- the law of attempts ---------------------------------------------------------------

LAST = MAX_ATTEMPTS - 1


@pytest.fixture
def questions():
    """A filter that keeps "kept" for the evaluation and has sampled "known"."""
    questions = QuestionFilter()
    questions.keep_for_evaluation(["kept"])
    questions.recent.add("gcd", "known")
    return questions


@pytest.mark.parametrize("attempt", range(MAX_ATTEMPTS))
def test_a_fresh_question_is_sampled_and_is_fresh_no_more(questions, attempt):
    assert questions.judge("gcd", "new", attempt) == Ruling("sample")
    assert questions.judge("gcd", "new", 0) == Ruling("retry", "repeats_avoided")


@pytest.mark.parametrize("attempt", range(LAST))
@pytest.mark.parametrize(
    ("question", "event"),
    [
        (None, "items_unusable"),
        ("kept", "evaluations_avoided"),
        ("known", "repeats_avoided"),
    ],
)
def test_another_attempt_is_made_while_there_is_one(
    questions, question, event, attempt
):
    assert questions.judge("gcd", question, attempt) == Ruling("retry", event)


@pytest.mark.parametrize(
    ("question", "ruling"),
    [
        (None, Ruling("skip", "items_unusable")),
        ("kept", Ruling("skip", "evaluations_skipped")),
        ("known", Ruling("sample", "repeats_sampled")),
    ],
)
def test_at_the_last_attempt_only_a_repeat_is_sampled(questions, question, ruling):
    assert questions.judge("gcd", question, LAST) == ruling


def test_what_is_not_sampled_is_not_remembered(questions):
    before = questions.recent.state_dict()
    for attempt in range(MAX_ATTEMPTS):
        questions.judge("gcd", "kept", attempt)
        questions.judge("gcd", None, attempt)
    assert questions.recent.state_dict() == before


def test_a_question_kept_for_the_evaluation_is_kept_from_every_task(questions):
    assert questions.judge("lcm", "kept", 0).action == "retry"
    assert questions.judge("lcm", "known", 0) == Ruling("sample")
