"""The simulated policy: kinds, forms, chances and wrong answers that look correct."""

import dataclasses
import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rg_env.demo.policy import (
    Known,
    PolicyProfile,
    chance_right,
    sample_completion,
    spoil_answer,
)

ENTRY = Known("gcd", "Find the greatest divisor.", "12", 0.4)
NO_FAULTS = PolicyProfile(bad_format=0, unfinished=0, hedged=0)


def sample_many(entry, count=200, **profile):
    rng = random.Random(5)
    profile = dataclasses.replace(NO_FAULTS, **profile)
    return [sample_completion(entry, profile, rng) for _ in range(count)]


def test_bad_formats_come_in_all_four_forms_of_which_none_is_one_closed_answer():
    texts = [text for text, _ in sample_many(ENTRY, bad_format=1)]
    tags = {(t.count("<answer>"), t.count("</answer>")) for t in texts}
    no_tags, two, unclosed, in_thinking = (0, 0), (2, 2), (1, 0), (1, 1)
    assert tags == {no_tags, two, unclosed, in_thinking}
    closed = [t.split("</think>")[-1] for t in texts if t.endswith("</answer>")]
    assert all(text.count("<answer>") != 1 for text in closed)


def test_the_kinds_come_as_often_as_the_profile_says():
    faults = {"bad_format": 0.2, "unfinished": 0.1, "hedged": 0.1}
    counts = Counter(kind for _, kind in sample_many(ENTRY, 4000, **faults))
    expected = chance_right(NO_FAULTS, "gcd", 0.4) * 0.6
    for kind, share in ("bad_format", 0.2), ("unfinished", 0.1), ("right", expected):
        assert counts[kind] / 4000 == pytest.approx(share, abs=0.03)


@given(st.text(max_size=20) | st.integers(0, 10**12).map(str), st.integers(0, 100))
def test_a_spoiled_answer_is_another_answer_and_of_a_number_a_number(answer, seed):
    spoiled = spoil_answer(answer, random.Random(seed))
    assert spoiled.strip() != answer.strip()
    if answer.isascii() and answer.isdigit():
        assert len(spoiled) == len(answer) and spoiled.isdigit()
