"""The simulated policy: kinds, forms, chances and wrong answers that look correct."""

import dataclasses
import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rg_env.demo.policy import (
    KeyEntry,
    PolicyProfile,
    chance_right,
    sample_completion,
    spoil_answer,
    task_skill,
)

ENTRY = KeyEntry("gcd", "Find the greatest divisor.", "12", 0.4)
ONLY = {
    "bad_format": PolicyProfile(bad_format=1, unfinished=0, hedged=0),
    "unfinished": PolicyProfile(bad_format=0, unfinished=1, hedged=0),
    "hedged": PolicyProfile(bad_format=0, unfinished=0, hedged=1),
}
NO_FAULTS = PolicyProfile(bad_format=0, unfinished=0, hedged=0)


def sample_many(entry, profile, count=200):
    rng = random.Random(5)
    return [sample_completion(entry, profile, rng) for _ in range(count)]


def answers_outside_thinking(text):
    return text.split("</think>")[-1].count("<answer>")


def test_a_right_completion_ends_with_the_gold_answer_and_a_wrong_one_has_another():
    ends = {"right": set(), "wrong": set()}
    for completion in sample_many(ENTRY, NO_FAULTS):
        ends[completion.kind].add(completion.text.rpartition("</think>\n")[2])
    gold = "<answer>12</answer>"
    assert ends["right"] == {gold} and ends["wrong"] and gold not in ends["wrong"]


def test_a_hedged_completion_has_two_answers_in_a_tag_and_an_unfinished_one_no_end():
    hedged, unfinished = (sample_many(ENTRY, ONLY[k]) for k in ("hedged", "unfinished"))
    assert all("<answer>12 or " in completion.text for completion in hedged)
    assert not any("</think>" in completion.text for completion in unfinished)


def test_bad_formats_come_in_all_four_forms_of_which_none_is_one_closed_answer():
    texts = [c.text for c in sample_many(ENTRY, ONLY["bad_format"])]
    tags = {(t.count("<answer>"), t.count("</answer>")) for t in texts}
    no_tags, two, unclosed, in_thinking = (0, 0), (2, 2), (1, 0), (1, 1)
    assert tags == {no_tags, two, unclosed, in_thinking}
    closed = [t for t in texts if t.endswith("</answer>")]
    assert all(answers_outside_thinking(text) != 1 for text in closed)


def test_an_unknown_question_is_answered_with_a_well_formed_guess():
    for completion in sample_many(None, ONLY["bad_format"], 20):
        assert completion.kind == "guess"
        assert answers_outside_thinking(completion.text) == 1


def test_the_kinds_come_as_often_as_the_profile_says():
    profile = PolicyProfile(bad_format=0.2, unfinished=0.1, hedged=0.1)
    counts = Counter(c.kind for c in sample_many(ENTRY, profile, 4000))
    expected = chance_right(profile, "gcd", 0.4) * 0.6
    assert counts["bad_format"] / 4000 == pytest.approx(0.2, abs=0.03)
    assert counts["unfinished"] / 4000 == pytest.approx(0.1, abs=0.03)
    assert counts["right"] / 4000 == pytest.approx(expected, abs=0.03)


@given(st.text(max_size=8), st.floats(0, 1), st.floats(0, 1))
def test_a_harder_level_never_helps(task, one, other):
    easy, hard = sorted((one, other))
    profile = PolicyProfile()
    assert chance_right(profile, task, hard) <= chance_right(profile, task, easy)


def test_skills_differ_between_tasks_and_are_the_same_in_every_process():
    names = [f"task_{number}" for number in range(50)]
    skills = [task_skill(PolicyProfile(), name) for name in names]
    assert all(0 < skill < 1 for skill in skills)
    assert max(skills) - min(skills) > 0.5
    assert task_skill(PolicyProfile(seed=3), "gcd") == pytest.approx(0.507168, abs=1e-6)


def test_the_same_dice_write_the_same_completion():
    profile = PolicyProfile()
    assert sample_many(ENTRY, profile, 20) == sample_many(ENTRY, profile, 20)


@given(st.text(max_size=20), st.integers(0, 100))
def test_a_spoiled_answer_is_another_answer(answer, seed):
    spoiled = spoil_answer(answer, random.Random(seed))
    assert spoiled.strip() != answer.strip()


@pytest.mark.parametrize(
    ("answer", "spoiled"), [("Yes", "No"), ("FALSE", "TRUE"), ("knave", "knight")]
)
def test_a_yes_becomes_a_no_in_the_same_case(answer, spoiled):
    assert spoil_answer(answer, random.Random(0)) == spoiled


@given(st.integers(0, 10**12), st.integers(0, 100))
def test_a_spoiled_number_is_a_number_of_the_same_length(number, seed):
    spoiled = spoil_answer(str(number), random.Random(seed))
    assert len(spoiled) == len(str(int(spoiled)))
    assert len(spoiled) == len(str(number))


def test_the_mean_length_of_the_thinking_can_be_chosen():
    for words in (30, 120):
        profile = dataclasses.replace(NO_FAULTS, thinking_words=words)
        lengths = [len(c.text.split()) for c in sample_many(ENTRY, profile, 400)]
        # A sentence is never broken off, so a text is somewhat longer than its target.
        assert words * 0.9 < sum(lengths) / len(lengths) < words * 1.2 + 15
