"""What holds for the fix of every task, against the installed scorers."""

from __future__ import annotations

import hashlib
import inspect
import itertools
import json
from collections.abc import Callable
from typing import Any

import pytest

from rg_env.task_rules.arithmetic.prime_factorization import TIMES
from rg_env.task_rules.partial_credit import MOST_FOR_A_WRONG_ANSWER
from rg_env.task_rules.table import solution
from rg_env.tasks import library
from tests.support.fixed_scores import (
    BASE_TASKS,
    FIXES,
    both_scores,
    entries,
    entry_of,
    fix_of,
    fixed_score,
    mean_score,
)

pytestmark = pytest.mark.slow

FAULTY_FOR_SOME_ENTRIES = {
    *("advanced_geometry", "calendar_arithmetic", "codeio", "rush_hour"),
}
"""There the fault shows in one kind of entry, or in entries that luck can solve."""

PAID_BY_ELEMENT = {"letter_jumble", "spell_backward", "word_sorting"}
"""There a second answer takes back its own length, so a much shorter one is a miss."""

MOVES_THAT_ADD_UP = {"quantum_lock", "sokoban"}
"""There two sequences are one longer sequence, which is played to its end."""

NO_SOLUTION = {"boxnet", "rush_hour"}
"""There the library gives no right answer."""

SCORED_WITHOUT_THE_LIBRARY = {
    "boxnet": 0.05,
    "countdown": 0.01,
    "puzzle24": 0.01,
    "rush_hour": 0.01,
}
"""Fixes that do not ask the library, to what they pay for an answer that is none."""

RAISES_FOR_OTHER_TEXT = {"prime_factorization"}
"""There the library raises on anything but factors."""

every_fix = pytest.mark.parametrize("task", sorted({*FIXES, *BASE_TASKS}))


def test_no_task_has_a_fix_of_its_own_beside_that_of_the_base_scorer():
    assert not FIXES.keys() & set(BASE_TASKS)


@every_fix
def test_the_fix_is_for_the_installed_scorer(task):
    scorer = type(library.scoring_dataset(task, {})).score_answer
    digest = hashlib.sha256(inspect.getsource(scorer).encode()).hexdigest()
    assert digest == fix_of(task).scorer_sha256


@every_fix
def test_the_proof_is_overpaid_by_the_library_and_not_by_the_fix(task):
    fix = fix_of(task)
    paid = [both_scores(task, entry, fix.proof(entry)) for entry in entries(task)]
    overpaid = [installed >= fix.proof_scores for installed, _ in paid]
    assert any(overpaid) if task in FAULTY_FOR_SOME_ENTRIES else all(overpaid)
    assert all(fixed < min(0.5, fix.proof_scores) for _, fixed in paid)


@every_fix
def test_the_gold_answer_is_right(task):
    for entry in entries(task):
        gold = solution(task, entry)
        assert (gold is None) == (task in NO_SOLUTION)
        assert gold is None or fixed_score(task, entry, gold) == 1.0


PAID_WHERE_THE_LIBRARY_PAYS_NOTHING = {"boxnet", "propositional_logic", "word_ladder"}
"""A plan of another item raises, a letter that follows and a part of a ladder are worth
more."""


@pytest.mark.parametrize(
    "task", sorted({*FIXES, *BASE_TASKS} - PAID_WHERE_THE_LIBRARY_PAYS_NOTHING)
)
def test_a_fix_pays_no_more_than_the_library(task):
    first, *more = entries(task)
    golds = [solution(task, entry) or "A+1" for entry in (first, *more)]
    for answer in (*golds[1:], f"{golds[0]}.", f"{golds[0]} {golds[1]}"):
        try:
            installed, fixed = both_scores(task, first, answer)
        except ValueError:
            assert task in RAISES_FOR_OTHER_TEXT
            continue
        assert 0.0 <= fixed <= installed


@pytest.mark.parametrize(
    "task",
    sorted({*FIXES, *BASE_TASKS} - PAID_BY_ELEMENT - MOVES_THAT_ADD_UP - NO_SOLUTION),
)
def test_a_second_answer_beside_the_gold_one_earns_no_half(task):
    for entry, other in itertools.pairwise(entries(task)):
        gold, second = solution(task, entry), solution(task, other)
        if gold == second:
            continue
        for between in (" or ", "; ", "\n", " # "):
            answer = f"{gold}{between}{second}"
            try:
                assert fixed_score(task, entry, answer) < 0.5, answer
            except ValueError:
                assert task in RAISES_FOR_OTHER_TEXT


@every_fix
def test_a_fix_bears_any_text_before_the_library_sees_it(task):
    hostile = (
        *("\0", "\ud800", "[" * 20_000, "(" * 20_000, "-" * 300, "¬" * 20_000),
        *(")" + " " * 20_000, "9" * 20_000, "5 " * 99, '{"a":' * 4_000, "A+99999"),
        " " * 19_000 + "P",
    )
    at_most = SCORED_WITHOUT_THE_LIBRARY.get(task, 0.0)
    for answer in hostile:
        score = fix_of(task).score(answer, entries(task)[0], lambda text: 0.0)
        assert 0.0 <= score <= at_most


@pytest.mark.parametrize(
    ("task", "answer"),
    [
        ("boxnet", '[{"Agent[0.5, 0.5]": "move(box_red, target_red)"}]'),
        ("coin_flip", "0"),
        ("coin_flip", "0.5"),
        ("coin_flip", "0.0"),
        ("coin_flip", "1e-5"),
        ("complex_arithmetic", "1+nanj"),
        ("game_of_life", json.dumps([[1] * 10] * 10)),
        ("game_of_life_halting", "anything"),
        ("gsm_symbolic", "minus 5"),
        ("knights_knaves", "everyone is a knight"),
        ("mini_sudoku", "1 2 3 4\n3 4 1 2\n2 1 4 3\n4 3 2 1"),
        ("number_sorting", "[NaN, NaN, NaN]"),
        ("polynomial_multiplication", "expand((x + 1)*(x + 2))"),
        ("prime_factorization", f"{TIMES}1{TIMES}1"),
        ("propositional_logic", "P \N{LOGICAL OR} Q"),
        ("propositional_logic", "P ∧ ¬P"),
        ("propositional_logic", "¬P \N{LOGICAL OR} ¬Q"),
        ("puzzle24", "1*2*3*4"),
        ("rush_hour", "A+4"),
        ("simple_integration", "integrate(x, x)"),
        ("syllogism", "Yes No"),
        ("time_intervals", "50 days"),
        ("time_intervals", "50 days, 00:00"),
        ("time_intervals", "06:00"),
    ],
)
def test_a_constant_earns_no_half_on_average(task, answer):
    made = [entry_of(task, seed) for seed in range(7000, 7040)]
    assert mean_score(task, made, lambda entry: answer) < 0.5


# -- credit that the library gives on purpose ------------------------------------------


def without_last_word(entry):
    return str(entry["answer"]).rpartition(" ")[0]


def dead_cell_alive(entry):
    rows = json.loads(entry["answer"])
    rows[0][0] = 1 - rows[0][0]
    return json.dumps(rows)


def first_cell_wrong(entry):
    gold: str = entry["answer"]
    return ("2" if gold[0] == "1" else "1") + gold[1:]


def two_factors_merged(entry):
    first, second, *rest = map(int, entry["metadata"]["factors"])
    return f" {TIMES} ".join(map(str, [first * second, *rest]))


NEAR_MISSES: dict[str, tuple[int, Callable[[dict[str, Any]], str]]] = {
    "complex_arithmetic": (7000, lambda e: e["answer"].replace(".0", ".1", 1)),
    "figlet_font": (7000, lambda e: e["answer"][:-1] + "Z"),
    "futoshiki": (7000, first_cell_wrong),
    "game_of_life": (7000, dead_cell_alive),
    "letter_jumble": (7000, without_last_word),
    "mini_sudoku": (7000, first_cell_wrong),
    "polynomial_equations": (7000, lambda e: f"{e['answer']}, 77"),
    "pool_matrix": (7000, lambda e: "9" + e["answer"][1:]),
    "prime_factorization": (7002, two_factors_merged),
    "spell_backward": (7000, lambda e: e["answer"][:-1] + "z"),
    "sudoku": (7000, first_cell_wrong),
    "time_intervals": (7000, lambda e: e["answer"][:-1] + "0"),
    "word_ladder": (7000, lambda e: e["answer"].rpartition(",")[0]),
    "word_sorting": (7000, lambda e: e["answer"][:-1]),
}


@pytest.mark.parametrize("task", NEAR_MISSES)
def test_a_near_miss_earns_something_and_half_at_most(task):
    seed, miss = NEAR_MISSES[task]
    entry = entry_of(task, seed)
    assert 0.0 < fixed_score(task, entry, miss(entry)) <= MOST_FOR_A_WRONG_ANSWER
