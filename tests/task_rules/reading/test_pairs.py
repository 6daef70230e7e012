"""The same value is the same answer, whoever writes it."""

import json

import pytest

from rg_env.scoring.scoring_rules import ScoringRules
from rg_env.task_rules.table import rules_of

normalizer = ScoringRules().normalizer

GROUPS = '[["eat", "tea"], ["tan", "nat"]]'


@pytest.mark.parametrize(
    ("task", "answer", "right"),
    [
        ("cryptarithm", "A = 1, B = 2", "A=1,B=2"),
        ("cryptarithm", "A: 1\nB: 2", "A=1,B=2"),
        ("cryptarithm", '{"A": 1, "B": 2}', "A=1,B=2"),
        ("cryptarithm", "{'A': '1', 'B': '2'}", "A=1,B=2"),
        ("cryptarithm", "1. A=1\n2. B=2", "A=1,B=2"),
        ("cryptarithm", "A \u2192 1, B -> 2.", "A=1,B=2"),
        ("cryptarithm", "Mapping: A=1, B=2", "A=1,B=2"),
        ("graph_color", "{0: 1, 1: 2}", '{"0": 1, "1": 2}'),
        ("graph_color", '{"0": "1", "1": "2",}', '{"0": 1, "1": 2}'),
        ("graph_color", "0: 1\n1: 2", '{"0": 1, "1": 2}'),
        ("graph_color", "Vertex 0: color 1, vertex 1: color 2", '{"0": 1, "1": 2}'),
        ("graph_color", 'Coloring: {"0": 1, "1": 2}', '{"0": 1, "1": 2}'),
        ("group_anagrams", "[['eat','tea'],['tan','nat'],]", GROUPS),
        ("group_anagrams", "[[eat, tea], [tan, nat]]", GROUPS),
        ("group_anagrams", "- eat, tea\n- tan, nat", GROUPS),
        ("group_anagrams", "1. eat, tea\n2. tan, nat", GROUPS),
        ("group_anagrams", "Group 1: eat, tea\nGroup 2: tan, nat", GROUPS),
        ("palindrome_partitioning", "(('a', 'b'), ('aa',))", '[["a", "b"], ["aa"]]'),
    ],
)
def test_an_object_is_written_as_the_scorer_reads_it(task, answer, right):
    assert normalizer(task, {})(answer) == right
    assert rules_of(task).notation(right, {}) == right


@pytest.mark.parametrize(
    ("task", "answer"),
    [
        ("cryptarithm", "A=1, A=2"),
        ("cryptarithm", "A=1, B=2 or B=3"),
        ("cryptarithm", "A=12"),
        ("cryptarithm", '{"A": 1, "A": 2}'),
        ("cryptarithm", '{"A": true}'),
        ("graph_color", "{0: 1, '0': 2}"),
        ("graph_color", "0: 1, 0: 2"),
        ("graph_color", "0: red"),
        ("graph_color", '{"0": 1.5}'),
        ("group_anagrams", "[['eat'], 'tea']"),
        ("group_anagrams", "eat, tea or tan, nat?"),
    ],
)
def test_what_says_two_things_stays_as_it_is(task, answer):
    assert rules_of(task).notation(answer, {}) == answer


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
        assert (
            rules_of("codeio").notation(answer, {"answer": json.dumps(gold)}) == answer
        )
