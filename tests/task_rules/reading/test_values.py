"""Values in JSON and in Python are parsed, and nothing is evaluated."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rg_env.task_rules.reading.values import read_list, read_rows, read_value

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-999, 999) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
)


@pytest.mark.slow
@given(VALUES)
def test_json_is_read_as_json(value):
    assert read_value(json.dumps(value)) == value


@pytest.mark.slow
@given(st.lists(st.text("ab'\"\\ ", max_size=6) | st.booleans() | st.none()))
def test_the_repr_of_a_value_of_json_is_parsed(value):
    assert read_value(repr(value)) == value


WRITTEN = r"""
(1, 2) = [1, 2]
[1, 2,] = [1, 2]
{0: 1, 1: 2} = {"0": 1, "1": 2}
{'a': None,} = {"a": null}
['it\'s'] = ["it's"]
[“a”, ‘b’] = ["a", "b"]
"""  # noqa: RUF001 - quotes that people type
"""Other ways to write a value of JSON."""


@pytest.mark.parametrize("row", WRITTEN.strip().splitlines())
def test_other_ways_to_write_a_value(row):
    text, value = row.split(" = ")
    assert read_value(text) == json.loads(value)


NO_VALUES = """
[1] [2]
[1, 2
[1,, 2]
{1, 2}
{"a": 1, "a": 1}
{0: 1, '0': 2}
[x]
[1 + 1]
f(1)
[1] # or [2]
[nan]
"""


@pytest.mark.parametrize(
    "text", [*NO_VALUES.split("\n"), "[" * 100 + "]" * 100, "9" * 5000 + "x"]
)
def test_a_text_that_is_no_single_value_raises(text):
    with pytest.raises(ValueError, match=r".*"):
        read_value(text)


def test_the_elements_of_a_list_stay_as_they_are_written():
    assert read_list("[1.50, 'a', \"2\"]") == ["1.50", "a", "2"]
    assert read_rows("[[1.50], (2, 3)]") == [["1.50"], ["2", "3"]]
    assert read_rows("[1, 2]") == [["1", "2"]]


@pytest.mark.parametrize("text", ["5", "[[1]]", "[true]", '{"a": 1}', "[1", "1, 2"])
def test_a_text_that_is_no_list_of_strings_and_numbers_is_none(text):
    assert read_list(text) is None
