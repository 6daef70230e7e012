"""Every answer that a question admits is right, and no other."""

import pytest

from rg_env.library import datasets
from rg_env.library.worker_jobs import score_answers
from rg_env.reward.score import ScoringRules
from tools.gold_solvers.boards import manipulated, pooled
from tools.gold_solvers.numbers import legs, powers
from tools.gold_solvers.words import synthesized

READINGS = {
    "leg_counting": legs,
    "manipulate_matrix": manipulated,
    "pool_matrix": pooled,
    "power_function": powers,
    "string_synthesis": synthesized,
}
"""Task to what computes the answers of all readings from the question alone."""


def entry_of(task, seed):
    return datasets.make_entry(task, {}, seed, checked=False)


def value(task, entry, answer, rules=None):
    return score_answers(task, {}, entry, [answer], rules or ScoringRules())[0][0]


@pytest.mark.slow
@pytest.mark.parametrize("task", READINGS)
def test_the_answer_by_each_reading_of_a_question_is_right(task):
    several = 0
    for seed in range(500, 560):
        entry = entry_of(task, seed)
        answers = READINGS[task](entry["question"])
        several += len(answers) > 1
        assert {value(task, entry, answer) for answer in answers} == {1.0}
    assert several >= 6


@pytest.mark.parametrize(
    ("task", "seed", "gold", "other", "wrong"),
    [
        ("pool_matrix", 95805398, "9 8 4\n5 4 1", "9 8", "9 8\n5 4"),
        ("manipulate_matrix", 95805395, "6", "0", "2"),
        ("leg_counting", 95805393, "181", "136", "137"),
        ("power_function", 7006, "1.0", "-1.00e+0", "1.1"),
        (
            "string_synthesis",
            7008,
            "0 3 0 2 0 0 0 0 0",
            "0 2 0 0 1 0 1 1 0",
            "0 2 0 0 0 1 0 1 1",
        ),
        (
            "advanced_geometry",
            92100002,
            "108.43\u00b0",
            "108.435\u00b0",
            "108.436\u00b0",
        ),
    ],
)
def test_two_readings_are_right_and_what_is_between_them_is_not(
    task, seed, gold, other, wrong
):
    entry = entry_of(task, seed)
    assert entry["answer"] == gold
    assert value(task, entry, gold) == value(task, entry, other) == 1.0
    assert value(task, entry, wrong) <= 0.1
    assert value(task, entry, other, ScoringRules(scorer_fixes=False)) < 0.5


@pytest.mark.parametrize(
    ("kind", "metadata", "answer", "score"),
    [
        ("orthocenter", {"orthocenter_approx": (1.0625, -2.0)}, "(1.063, -2)", 1.0),
        ("orthocenter", {"orthocenter_approx": (1.0625, -2.0)}, "(1.064, -2)", 0.01),
        ("incircle_radius", {"incircle_radius_approx": 3.3675}, "3.368", 1.0),
        ("incircle_radius", {"incircle_radius_approx": 3.3675}, "3.368\u00b0", 0.0),
        ("angle_measure", {"angle_ABC_degrees": 63.4349}, "63.435", 1.0),
    ],
)
def test_a_figure_is_right_at_the_three_decimals_that_are_asked_for(
    kind, metadata, answer, score
):
    exact = {"incircle_radius_exact": "3.3675", "ortho": ("17/16", "-2")}
    metadata = {**exact, **metadata, "task_type": kind}
    entry = {"question": "", "answer": "63.43\u00b0", "metadata": metadata}
    assert value("advanced_geometry", entry, answer) == score


def test_a_legal_solution_of_tower_of_hanoi_may_be_long():
    entry = entry_of("tower_of_hanoi", 77100003)
    first, *rest = entry["answer"].split("\n")
    assert first == "Move disk 1 from Peg 2 to Peg 1"
    detour = ["Move disk 1 from Peg 2 to Peg 3", "Move disk 1 from Peg 3 to Peg 1"]
    values = [
        value("tower_of_hanoi", entry, "\n".join(moves))
        for moves in ([*detour, *rest], [*detour, *rest[:-1]], [detour[1], *rest])
    ]
    assert values == [1.0, 0.05, 0.0]


@pytest.mark.parametrize(
    ("task", "seed", "wrong"),
    [
        ("acre", 0, "on will be X"),
        ("acre", 0, "on is X"),
        ("shortest_path", 0, "left will be X"),
        ("shortest_path", 0, "right is X"),
        ("gsm_symbolic", 105, "X dollars"),
        ("gsm_symbolic", 119, "X dollars"),
        ("gcd", 7000, "LCM = X"),
        ("gcd", 7000, "46 = X"),
        ("gcd", 7000, "46: X"),
        ("gcd", 7000, "348 is X"),
        ("gcd", 7000, "The GCD of 46 and 349 is X"),
        ("gcd", 7000, "at least X"),
        ("lcm", 7000, "at least X"),
        ("lcm", 7000, "GCD: X"),
        ("leg_counting", 7000, "ducks: X"),
        ("maze", 7000, "The maximum number of steps is X"),
        ("aiw", 7000, "brothers: X"),
    ],
)
def test_words_that_are_not_the_name_of_what_is_asked_for_announce_nothing(
    task, seed, wrong
):
    entry = entry_of(task, seed)
    assert value(task, entry, entry["answer"]) == 1.0
    assert value(task, entry, wrong.replace("X", entry["answer"])) < 0.5


@pytest.mark.parametrize(
    ("task", "named"),
    [
        *(("gcd", text) for text in ("GCD = X", "The GCD of 46 and 348 is X")),
        *(("gcd", text) for text in ("**GCD:** X", "gcd(46, 348) = X")),
        ("gcd", "The greatest common divisor of 46 and 348 = X"),
        ("lcm", "The least common multiple of these numbers is X."),
        ("products", "The result of the multiplication is X."),
        ("count_primes", "There are X primes"),
        ("count_bits", "The number of 1 bits is X"),
        ("largest_island", "The maximum area of an island is X"),
        ("dice", "The odds are X"),
        ("color_cube_rotation", "The color of the left side is X"),
        ("number_filtering", "New list: X"),
        ("prime_factorization", "The prime factorization is X"),
    ],
)
def test_the_value_may_be_given_with_the_name_that_the_question_gives_it(task, named):
    entry = entry_of(task, 7000)
    assert value(task, entry, named.replace("X", entry["answer"])) == 1.0
