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
NO_FAULTS = PolicyProfile(bad_format=0, unfinished=0, hedged=0)


def sample_many(entry, count=200, **profile):
    rng = random.Random(5)
    profile = dataclasses.replace(NO_FAULTS, **profile)
    return [sample_completion(entry, profile, rng) for _ in range(count)]


def test_a_right_completion_ends_with_the_gold_answer_and_a_wrong_one_has_another():
    ends = {"right": set(), "wrong": set()}
    for completion in sample_many(ENTRY):
        ends[completion.kind].add(completion.text.rpartition("</think>\n")[2])
    gold = "<answer>12</answer>"
    assert ends["right"] == {gold} and ends["wrong"] and gold not in ends["wrong"]


def test_a_hedged_completion_has_two_answers_in_a_tag_and_an_unfinished_one_no_end():
    hedged, unfinished = sample_many(ENTRY, hedged=1), sample_many(ENTRY, unfinished=1)
    assert all("<answer>12 or " in completion.text for completion in hedged)
    assert not any("</think>" in completion.text for completion in unfinished)


def test_bad_formats_come_in_all_four_forms_of_which_none_is_one_closed_answer():
    texts = [c.text for c in sample_many(ENTRY, bad_format=1)]
    tags = {(t.count("<answer>"), t.count("</answer>")) for t in texts}
    no_tags, two, unclosed, in_thinking = (0, 0), (2, 2), (1, 0), (1, 1)
    assert tags == {no_tags, two, unclosed, in_thinking}
    closed = [t.split("</think>")[-1] for t in texts if t.endswith("</answer>")]
    assert all(text.count("<answer>") != 1 for text in closed)


def test_an_unknown_question_is_answered_with_a_well_formed_guess():
    for completion in sample_many(None, 20, bad_format=1):
        assert completion.kind == "guess"
        assert completion.text.split("</think>")[-1].count("<answer>") == 1


def test_the_kinds_come_as_often_as_the_profile_says():
    faults = {"bad_format": 0.2, "unfinished": 0.1, "hedged": 0.1}
    counts = Counter(c.kind for c in sample_many(ENTRY, 4000, **faults))
    expected = chance_right(NO_FAULTS, "gcd", 0.4) * 0.6
    for kind, share in ("bad_format", 0.2), ("unfinished", 0.1), ("right", expected):
        assert counts[kind] / 4000 == pytest.approx(share, abs=0.03)


def test_skills_differ_between_tasks_and_are_the_same_in_every_process():
    skills = [task_skill(PolicyProfile(), f"task_{number}") for number in range(50)]
    assert all(0 < skill < 1 for skill in skills)
    assert max(skills) - min(skills) > 0.5
    assert task_skill(PolicyProfile(seed=3), "gcd") == pytest.approx(0.507168, abs=1e-6)


@given(st.text(max_size=20) | st.integers(0, 10**12).map(str), st.integers(0, 100))
def test_a_spoiled_answer_is_another_answer_and_of_a_number_a_number(answer, seed):
    spoiled = spoil_answer(answer, random.Random(seed))
    assert spoiled.strip() != answer.strip()
    if answer.isascii() and answer.isdigit():
        assert len(spoiled) == len(answer) and spoiled.isdigit()


@pytest.mark.parametrize(
    ("answer", "spoiled"), [("Yes", "No"), ("FALSE", "TRUE"), ("knave", "knight")]
)
def test_a_yes_becomes_a_no_in_the_same_case(answer, spoiled):
    assert spoil_answer(answer, random.Random(0)) == spoiled
