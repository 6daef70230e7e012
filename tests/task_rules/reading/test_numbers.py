"""One number as it is written, and what is none."""

from fractions import Fraction

import pytest

from rg_env.task_rules.reading.numbers import MAX_DIGITS, read_number


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *((five, 5) for five in ("5", "+5", "05", "5.0", "5.", "5/1")),
        *((text, -5) for text in ("- 5", "\u22125")),
        *((text, 1234) for text in ("1,234", "1 234", "1_234", "1{,}234")),
        ("1e3", 1000),
        ("1.5E-1", Fraction(3, 20)),
        (r"\dfrac{3}{4}", Fraction(3, 4)),
        ("3 \u2044 4", Fraction(3, 4)),
    ],
)
def test_notation_alone_changes_no_number(text, value):
    assert read_number(text).value == value


@pytest.mark.parametrize(
    "text",
    [
        *("", "five", "2+3", "5 or 6", "5, 6", "5 6", "12,34", "1,2345", "0,27", "5%"),
        *("0 512", "0,512", "00 512", "1\n512", "1\t512"),
        *("5!", "5^2", "--5", "~5", "nan", "inf", "0x5", "1/0", "1/2/3", "1e99999"),
        "9" * (MAX_DIGITS + 1),
    ],
)
def test_what_is_no_one_number_is_not_read(text):
    assert read_number(text) is None


def test_the_plain_text_keeps_every_digit_that_was_written():
    assert read_number("+1,234.500e-02").text == "1234.500e-2"
    assert read_number(r"\frac{10}{20}").text == "10/20"
