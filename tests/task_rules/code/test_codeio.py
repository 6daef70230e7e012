"""codeio: one object alone, and the same value whoever writes it."""

from __future__ import annotations

import json

import pytest

from rg_env.task_rules.table import rules_of
from tests.support.fixed_scores import both_scores


@pytest.mark.parametrize(
    ("gold", "answer", "fixed"),
    [
        ('{"a": 5}', '{"a": -5}', 0.0),
        ('{"a": 5}', '{"a": 0, "a": 5}', 0.0),
        ('{"a": 5}', '```json\n{"a": 5}\n```', None),
        ('{"a": 5}', '{"a": 6}', None),
        ('{"a": 5}', '{"a": 5} or {"a": 6}', 0.0),
        ("5", "5", 1.0),
        ("5", "-5", 0.0),
    ],
)
def test_an_object_is_paid_alone(gold: str, answer: str, fixed: float | None) -> None:
    entry = {"answer": gold, "metadata": {}}
    installed, paid = both_scores("codeio", entry, answer)
    assert paid == (installed if fixed is None else fixed)


@pytest.mark.parametrize(
    ("gold", "answers"),
    [
        ({"a": [1, None], "b": True}, ["{'b': True, 'a': [1, None]}"]),
        ({"a": [1, None], "b": True}, ['{"a":[1,null],"b":true,}']),
        ([1.5, "x"], ["[1.50, 'x']", "(1.5, 'x')", '[\n 1.5,\n "x"\n]']),
        ("yes", ["yes", "'yes'"]),
        (True, ["True", "true"]),
        (None, ["None"]),
        (5, ["5.0"]),
    ],
)
def test_the_same_value_of_json_is_the_right_answer(gold, answers):
    entry = {"answer": json.dumps(gold)}
    for answer in answers:
        assert rules_of("codeio").notation(answer, entry) == entry["answer"]


@pytest.mark.parametrize(
    ("gold", "answers"),
    [
        ({"a": 1}, ["{'a': 2}", "{'a': 1, 'b': 2}", "{'a': '1'}", "{'a': True}", "{}"]),
        ([1, 2], ["[2, 1]", "[1, 2, 2]", "[1]", "1, 2", "[1, 2] [1, 2]"]),
        (1, ["true", "'1'", "[1]", "-1"]),
        (0.1, ["0.10000001"]),
        (True, ["1", "'True'"]),
    ],
)
def test_another_value_stays_as_it_is(gold, answers):
    for answer in answers:
        entry = {"answer": json.dumps(gold)}
        assert rules_of("codeio").notation(answer, entry) == answer
