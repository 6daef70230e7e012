"""Numbers in the ways that their question leaves open, and what is no such way."""

import pytest

from rg_env.scoring.scoring_rules import ScoringRules
from rg_env.task_rules.table import rules_of

normalizer = ScoringRules().normalizer


def _entry(answer, question="", **metadata):
    return {"question": question, "answer": answer, "metadata": metadata}


LEGS = _entry(
    "256", "How many legs are there in total if you have 15 lobsters and 14 ducks?"
)


@pytest.mark.parametrize(
    "answer",
    [
        *("256.0", "0256", "+256", "256/1", "2.56e2", "256 legs", "256 legs in total"),
        *("There are 256 legs.", "Total legs: 256", "**256** legs", "$256$ legs"),
    ],
)
def test_the_right_number_is_spelled_as_the_right_answer(answer):
    assert rules_of("leg_counting").notation(answer, LEGS) == "256"


@pytest.mark.parametrize(
    "answer",
    [
        *("-256", "257", "256.5", "2560", "256%", "256^2", "256!", "512/2", "255+1"),
        *("256 or 257", "256, 257", "not 256", "at least 256", "256 more", "256 dozen"),
        *("256 lobsters", "256 legs or so", "half of 256", "about 256 feet"),
    ],
)
def test_another_number_and_a_hedged_one_stay_as_they_are(answer):
    assert rules_of("leg_counting").notation(answer, LEGS) == answer


@pytest.mark.parametrize("between", ["\n", "\t", "\r\n", " \n ", "\n\n"])
def test_digits_on_two_lines_or_in_two_columns_are_two_numbers(between):
    entry = _entry("1256", LEGS["question"])
    for notation in (rules_of(t).notation for t in ("leg_counting", "chain_sum")):
        assert notation(f"1{between}256", entry) == f"1{between}256"


@pytest.mark.parametrize(
    ("answer", "spelled"),
    [
        ("LCM(76, 70) = 2660", "2660"),
        ("76,70 = 2660", "2660"),
        ("76*35", "76*35"),
        ("76 = 70 = 2660", "76 = 70 = 2660"),
        ("LCM(76, 71) = 2660", "LCM(76, 71) = 2660"),
    ],
)
def test_the_question_before_an_equals_sign_is_no_part_of_the_answer(answer, spelled):
    entry = _entry("2660", "Find the LCM of these numbers: 76, 70")
    assert rules_of("lcm").notation(answer, entry) == spelled


@pytest.mark.parametrize(
    "answer", ["35\u00b0", "35 degrees", r"35^\circ", r"35^{\circ}"]
)
def test_the_unit_of_an_angle_may_stand(answer):
    assert normalizer("simple_geometry", _entry("35"))(answer) == "35"


@pytest.mark.parametrize("answer", ["$90", "90 dollars", "+90", "90/1", "\u2248 90"])
def test_dollars_may_be_named_where_they_are_asked_for(answer):
    costs = _entry("90", "One costs $30. How much do three cost? Do not include units.")
    assert rules_of("gsm_symbolic").notation(answer, costs) == "90"


@pytest.mark.parametrize(
    ("answer", "spelled"),
    [
        (r"1.12 \times 10^{-15}", "1.12e-15"),
        ("1.12 x 10^-15", "1.12e-15"),
        ("1.12e-15 or 2", "1.12e-15 or 2"),
        ("1/2", "1/2"),
        (r"\frac{1}{2}", r"\frac{1}{2}"),
    ],
)
def test_a_power_of_ten_is_written_with_e(answer, spelled):
    assert rules_of("power_function").notation(answer, _entry("1.1e-15")) == spelled


@pytest.mark.parametrize(
    ("answer", "spelled"),
    [
        ("23.4375%", "0.234375"),
        (r"23.4375\%", "0.234375"),
        ("5 %", "0.05"),
        ("100%", "1.00"),
        (r"\frac{15}{64}", "15/64"),
        ("15 / 64", "15/64"),
        ("P(X = 2) = 0.234375", "0.234375"),
        ("23.4375", "23.4375"),
        ("15/64%", "15/64%"),
        ("15/64 or 1/2", "15/64 or 1/2"),
    ],
)
def test_a_probability_may_be_a_fraction_or_percents(answer, spelled):
    assert rules_of("coin_flip").notation(answer, _entry("0.234375")) == spelled


@pytest.mark.parametrize(
    "answer", [r"\frac{3}{4}", "3 / 4", r"\tfrac{3}{4}", "3\u20444"]
)
def test_a_reduced_fraction_may_be_written_in_any_way(answer):
    assert rules_of("dice").notation(answer, _entry("3/4")) == "3/4"
    assert (
        rules_of("fraction_simplification").notation(answer, _entry("$3/4$")) == "$3/4$"
    )


@pytest.mark.parametrize("answer", ["6/8", "0.75", "75%", "4/3", "-3/4", "3/4 or 1/4"])
def test_a_fraction_that_is_not_reduced_or_none_stays_as_it_is(answer):
    assert rules_of("dice").notation(answer, _entry("3/4")) == answer


@pytest.mark.parametrize(
    ("base", "gold", "answer", "spelled"),
    [
        ("base-10", "243", "243_{10}", "243"),
        ("base-10", "243", "(243)\u2081\u2080", "243"),
        ("base-10", "243", "243 (base 10)", "243"),
        ("binary", "1111", "0b1111", "1111"),
        ("hexadecimal", "3d", "0x3d", "3d"),
        ("binary", "11110000", "1111 0000", "11110000"),
        ("base-10", "243", "243_{11}", "243_{11}"),
        ("base-10", "243", "24 3", "24 3"),
        ("base-12", "b1", "0b1", "b1"),
        ("base-14", "3d", "3D", "3D"),
        ("base-14", "3d", "0x3d", "0x3d"),
    ],
)
def test_the_base_may_be_said_again(base, gold, answer, spelled):
    entry = _entry(gold, f"Now, convert the base-11 number 201 to {base}\n")
    assert rules_of("base_conversion").notation(answer, entry) == spelled


@pytest.mark.parametrize(
    ("answer", "spelled"),
    [
        ("3d2d", "0x3d2d"),
        ("-3D", "-0x3d"),
        ("0x3D2D_{16}", "0x3d2d"),
        ("15661", "15661"),
        ("3d2d or 1", "3d2d or 1"),
        ("3g", "3g"),
    ],
)
def test_hexadecimal_digits_need_no_prefix_where_they_are_no_decimal_ones(
    answer, spelled
):
    assert rules_of("bitwise_arithmetic").notation(answer, _entry("0x3d2d")) == spelled


@pytest.mark.parametrize(
    ("kind", "answer", "spelled"),
    [
        ("date", "304 Days", "304 days"),
        ("date", "+304 days,", "304 days"),
        ("date", "1 day", "1 days"),
        ("datetime", "67 Days  01:04:00", "67 days, 01:04:00"),
        ("datetime", "1 day and 01:04", "1 days, 01:04"),
        ("time", "+06:09", "06:09"),
        ("date", "304D", "304 days"),
        ("date", "304 D days", "304 days"),
        ("datetime", "67D, 01:04", "67 days, 01:04"),
        ("datetime", "67D 01:04:00", "67 days, 01:04:00"),
        ("datetime", "67 01:04:00", "67 days, 01:04:00"),
        ("date", "67 01:04", "67 01:04"),
        ("date", "304 weeks", "304 weeks"),
        ("date", "304 days or 5 days", "304 days or 5 days"),
        ("date", "304 days 05:00", "304 days 05:00"),
        ("datetime", "67 days", "67 days"),
        ("time", "06:09 or 07:09", "06:09 or 07:09"),
    ],
)
def test_a_span_of_time_is_written_as_the_scorer_reads_it(kind, answer, spelled):
    entry = _entry("304 days", task_type=kind)
    assert rules_of("time_intervals").notation(answer, entry) == spelled


@pytest.mark.parametrize(
    ("answer", "meant"),
    [
        ("40.99999999999999", "41"),
        ("0.30000000000000004", "0.3"),
        ("-1178.0000000000002", "-1178"),
        ("5163.4450000000001", "5163.445"),
        ("40.9999999", "40.9999999"),
        ("0.1234567890123456", "0.1234567890123456"),
        ("12345678.5630001", "12345678.5630001"),
    ],
)
def test_the_noise_of_a_computers_decimals_is_not_what_is_said(answer, meant):
    assert rules_of("decimal_chain_sum").notation(answer, _entry(meant)) == meant


@pytest.mark.parametrize(
    ("answer", "spelled"),
    [
        ("2*4 + 3*4 = 8 + 12 = 20", "20"),
        ("2 \u00d7 4 + 3 \u00d7 4 = 20", "20"),
        ("40 / 2 = 20", "20"),
        ("2*4 + 3*4 = 19 = 20", "2*4 + 3*4 = 19 = 20"),
        ("2*4 + 4*4 = 20", "2*4 + 4*4 = 20"),
        ("20 = 2*10", "20 = 2*10"),
        ("2*10", "2*10"),
        ("20 = 20 or 21", "20 = 20 or 21"),
    ],
)
def test_of_equal_sides_the_last_is_the_answer(answer, spelled):
    entry = _entry("20", "how many legs are there in total?")
    assert rules_of("leg_counting").notation(answer, entry) == spelled


@pytest.mark.parametrize(("sides", "is_read"), [(1, True), (8, True), (9, False)])
def test_so_many_equal_sides_are_worked_out(sides, is_read):
    answer = " = ".join(["4*5"] * sides + ["20"])
    spelled = rules_of("leg_counting").notation(answer, _entry("20"))
    assert spelled == ("20" if is_read else answer)


@pytest.mark.parametrize(("answer", "spelled"), [("0/1", "0"), ("0/5", "0/5")])
def test_nothing_is_in_lowest_terms_over_one(answer, spelled):
    assert rules_of("dice").notation(answer, _entry("0")) == spelled


POSSIBLE = _entry("3", "tell me the number of possible solutions: 2 of these are false")


@pytest.mark.parametrize("answer", ["3 solutions", "There are 3 possible solutions."])
def test_what_is_counted_may_stand_behind_its_number(answer):
    assert normalizer("self_reference", POSSIBLE)(answer) == "3"


@pytest.mark.parametrize("answer", ["false: 3", "3 false", "true: 3", "wrong: 3"])
def test_a_word_that_denies_a_number_is_no_unit_of_it(answer):
    asked = _entry("3", "what is the number of false statements?")
    assert normalizer("self_reference", asked)(answer) == answer
