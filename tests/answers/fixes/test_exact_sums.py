"""Sums in the four operations."""

from __future__ import annotations

import pytest

from rg_env.answers.fixes.exact_sums import read_sum


@pytest.mark.parametrize(
    "text",
    ["2**3", "2//1", "1.5", "a", "1/0", "2+", "0x2", "1_0", "2 # 3", "()", "٣", "1 2"],
)
def test_what_is_no_plain_sum_is_not_read(text: str) -> None:
    assert read_sum(text) is None


def test_a_sum_is_worked_out_exactly() -> None:
    read = read_sum("-(1 + 2)/3*+4")
    assert read is not None
    assert (read.numbers, read.value) == ([1, 2, 3, 4], -4)
