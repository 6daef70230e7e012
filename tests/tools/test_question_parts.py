"""What is found in a question without reading it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tools.trivial_baselines import question_parts as parts

SUDOKU = "Solve this 4x4 puzzle:\n_ 1 _ 4\n_ _ 2 _\nFormat your response so.\n"


def test_a_grid_is_a_run_of_lines_of_short_words() -> None:
    assert parts.grid_texts(SUDOKU) == ["_ 1 _ 4\n_ _ 2 _"]


def test_rows_without_spaces_are_rows_of_signs() -> None:
    text = "..xJBB\nCCIJ.L"
    assert parts.cells(text)[0] == list("..xJBB")
    assert parts.grid_text(parts.cells(text), text) == text


def test_a_list_over_several_lines_is_read_whole() -> None:
    question = "A board.\n[[0,1],\n [1,0]]. What now?"
    assert parts.value_lists(question) == [[[0, 1], [1, 0]]]


@pytest.mark.parametrize(
    ("find", "found"),
    [
        (parts.numbers, ["3", "-4.5"]),
        (parts.quoted, ["Yes"]),
        (parts.names, ["Bob", "Yes"]),
    ],
)
def test_parts_stand_in_the_order_of_the_question(
    find: Callable[[str], list[str]], found: list[str]
) -> None:
    assert find('Is 3 or -4.5 what Bob has? Say "Yes".') == found


def test_an_enumeration_is_what_commas_part_at_the_end_of_a_line() -> None:
    question = "- Names: bob, carol\n- Drinks: tea, milk, water\n1. Bob is tall."
    assert parts.enumerations(question) == [["bob", "carol"], ["tea", "milk", "water"]]


def test_a_long_line_of_many_commas_is_read_at_once() -> None:
    question = "a: b, " * 20_000 + "c"
    assert parts.enumerations(question) == [["b", "c"]]
    assert len(parts.quoted("'a' " * 20_000)) == 20_000
