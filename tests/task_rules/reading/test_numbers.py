"""One number as it is written, and what is none."""

from fractions import Fraction

import pytest

from rg_env.task_rules.reading.numbers import MAX_DIGITS, read_number


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5", 5),
        ("+5", 5),
        ("05", 5),
        ("5.0", 5),
        ("5.", 5),
        ("5/1", 5),
        ("- 5", -5),
        ("\u22125", -5),
        ("\u2248 5", 5),
        (r"\approx 5", 5),
        ("= 5", 5),
        ("1,234", 1234),
        ("1 234", 1234),
        ("1_234_567", 1_234_567),
        ("1{,}234", 1234),
        ("1e3", 1000),
        ("1.5E-1", Fraction(3, 20)),
        (r"1.12 \times 10^{-2}", Fraction(112, 10_000)),
        ("1.12 \u00d7 10\u207b\u00b2", Fraction(112, 10_000)),
        ("2*10**3", 2000),
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
