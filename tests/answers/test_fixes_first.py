"""The fixes of algebra, algorithmic and arithmetic, against the installed scorers."""

from __future__ import annotations

import hashlib
import inspect
import itertools
import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from rg_env.answers.fixes import algebra, algorithmic, arithmetic
from rg_env.answers.fixes.derivatives import has_wrong_slope
from rg_env.answers.fixes.fix import ScorerFix
from rg_env.answers.fixes.substring import is_wrapper
from rg_env.answers.scoring import as_unit
from rg_env.tasks import library

FIXES = {
    fix.task: fix
    for module in (algebra, algorithmic, arithmetic)
    for fix in module.FIXES
}
SEEDS = range(7000, 7008)

PAID_BY_ELEMENT = {"letter_jumble", "spell_backward", "word_sorting"}
"""There a second answer takes back its own length, so a much shorter one is a miss."""

every_fix = pytest.mark.parametrize("fix", FIXES.values(), ids=FIXES.keys())


def library_score(task: str, entry: dict[str, Any]) -> Callable[[str], float]:
    scorer = library.scoring_dataset(task, {}).score_answer
    return lambda answer: as_unit(scorer(answer, entry))


def both_scores(
    fix: ScorerFix, entry: dict[str, Any], answer: str
) -> tuple[float, float]:
    """Return what the library pays for an answer and what the fix does."""
    installed = library_score(fix.task, entry)
    return installed(answer), fix.score(answer, entry, installed)


def entries(task: str) -> list[dict[str, Any]]:
    return [library.make_entry(task, {}, seed) for seed in SEEDS]


def test_a_task_has_one_fix_at_most() -> None:
    rows = algebra.FIXES + algorithmic.FIXES + arithmetic.FIXES
    assert len(rows) == len(FIXES)


@every_fix
def test_the_fix_is_for_the_installed_scorer(fix: ScorerFix) -> None:
    source = inspect.getsource(type(library.scoring_dataset(fix.task, {})).score_answer)
    assert hashlib.sha256(source.encode()).hexdigest() == fix.scorer_sha256
    assert fix.library_version == library.describe().version


@every_fix
def test_the_proof_is_overpaid_by_the_library_and_not_by_the_fix(
    fix: ScorerFix,
) -> None:
    for entry in entries(fix.task):
        installed, fixed = both_scores(fix, entry, fix.proof(entry))
        assert installed >= fix.proof_pays
        assert fixed < min(0.5, fix.proof_pays)


@every_fix
def test_the_gold_answer_is_right(fix: ScorerFix) -> None:
    for entry in entries(fix.task):
        assert both_scores(fix, entry, entry["answer"])[1] == 1.0


@every_fix
def test_a_fix_pays_no_more_than_the_library(fix: ScorerFix) -> None:
    golds = [entry["answer"] for entry in entries(fix.task)]
    first = library.make_entry(fix.task, {}, SEEDS[0])
    for answer in (*golds[1:], f"{golds[0]}.", f"{golds[0]} {golds[1]}"):
        try:
            installed, fixed = both_scores(fix, first, answer)
        except ValueError:  # prime_factorization raises on anything but factors
            continue
        assert 0.0 <= fixed <= installed


@pytest.mark.parametrize("task", sorted(FIXES.keys() - PAID_BY_ELEMENT))
def test_a_second_answer_beside_the_gold_one_earns_no_half(task: str) -> None:
    fix = FIXES[task]
    listed = entries(fix.task)
    for entry, other in itertools.pairwise(listed):
        if entry["answer"] == other["answer"]:
            continue
        for between in (" or ", "; ", "\n", " # "):
            answer = f"{entry['answer']}{between}{other['answer']}"
            try:
                assert both_scores(fix, entry, answer)[1] < 0.5, answer
            except ValueError:  # prime_factorization
                continue


@pytest.mark.parametrize(
    "answer",
    ["5", "The answer is 5.", "x = 5", "5 legs", "**5**", "\\boxed{5}", "5\nSo 5."],
)
def test_talk_around_the_gold_answer_is_a_wrapper(answer: str) -> None:
    assert is_wrapper(answer, "5")


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "-5",
        "- 5",
        "50",
        "1/5",
        ".5",
        "5.5",
        "5,5",
        "5e3",
        "5%",
        "5!",
        "~5",
        "5#",
        "5 or 6",
        "5, 6",
        "five or 5",
        "not 5",
        "x5",
        "5_",
        "5²",
        "<answer>5</answer>",
    ],
)
def test_another_number_or_a_choice_is_no_wrapper(answer: str) -> None:
    assert not is_wrapper(answer, "5")


@pytest.mark.parametrize("answer", ["True False", "not True", "Untrue", "Truex", ""])
def test_both_choices_or_another_word_are_no_wrapper(answer: str) -> None:
    assert not is_wrapper(answer, "True")


def test_an_empty_gold_answer_is_in_no_wrapper() -> None:
    assert not is_wrapper("anything", "")


@pytest.mark.parametrize("task", ["gcd", "chain_sum", "isomorphic_strings"])
def test_a_wrapper_keeps_the_credit_of_the_library(task: str) -> None:
    entry = library.make_entry(task, {}, 7000)
    answer = f"The answer is {entry['answer']}"
    installed, fixed = both_scores(FIXES[task], entry, answer)
    assert 0.0 < installed == fixed < 1.0


def without_last_word(entry: dict[str, Any]) -> str:
    return str(entry["answer"]).rpartition(" ")[0]


def one_cell_wrong(entry: dict[str, Any]) -> str:
    rows = json.loads(entry["answer"])
    rows[0][0] = 1 - rows[0][0]
    return json.dumps(rows)


def two_factors_merged(entry: dict[str, Any]) -> str:
    first, second, *rest = map(int, entry["metadata"]["factors"])
    return f" {arithmetic.TIMES} ".join(map(str, [first * second, *rest]))


NEAR_MISSES: dict[str, tuple[int, Callable[[dict[str, Any]], str]]] = {
    "complex_arithmetic": (7000, lambda e: e["answer"].replace(".0", ".1", 1)),
    "game_of_life": (7000, one_cell_wrong),
    "letter_jumble": (7000, without_last_word),
    "polynomial_equations": (7000, lambda e: f"{e['answer']}, 77"),
    "pool_matrix": (7000, lambda e: "9" + e["answer"][1:]),
    "prime_factorization": (7002, two_factors_merged),
    "spell_backward": (7000, lambda e: e["answer"][:-1] + "#"),
    "time_intervals": (7000, lambda e: e["answer"][:-1] + "0"),
    "word_sorting": (7000, lambda e: e["answer"][:-1]),
}


@pytest.mark.parametrize("task", NEAR_MISSES)
def test_a_near_miss_earns_what_the_library_pays(task: str) -> None:
    seed, miss = NEAR_MISSES[task]
    entry = library.make_entry(task, {}, seed)
    installed, fixed = both_scores(FIXES[task], entry, miss(entry))
    assert 0.0 < installed == fixed < 1.0


@pytest.mark.parametrize(
    ("task", "answer"),
    [
        ("complex_arithmetic", "1+nanj"),
        ("polynomial_multiplication", "expand((x + 1)*(x + 2))"),
        ("simple_integration", "integrate(x, x)"),
        ("game_of_life", json.dumps([[1] * 10] * 10)),
        ("game_of_life_halting", "anything"),
        ("gsm_symbolic", "minus 5"),
        ("number_sorting", "[NaN, NaN, NaN]"),
        ("prime_factorization", f"{arithmetic.TIMES}1{arithmetic.TIMES}1"),
        ("time_intervals", "50 days"),
        ("time_intervals", "50 days, 00:00"),
        ("time_intervals", "06:00"),
    ],
)
def test_a_constant_earns_no_half_on_average(task: str, answer: str) -> None:
    fix = FIXES[task]
    paid = [both_scores(fix, entry, answer)[1] for entry in entries(task)]
    assert sum(paid) / len(paid) < 0.5


def test_the_dead_board_is_paid_only_where_it_is_right() -> None:
    dead = json.dumps([[0] * 10] * 10)
    for entry in entries("game_of_life"):
        _, fixed = both_scores(FIXES["game_of_life"], entry, dead)
        assert fixed == float("1" not in entry["answer"])


def test_a_number_times_one_or_halved_is_no_factorization() -> None:
    fix, number = FIXES["prime_factorization"], 2 * 2 * 2 * 3 * 41
    gold = f" {arithmetic.TIMES} ".join(["2", "2", "2", "3", "41"])
    entry = {"answer": gold, "metadata": {"number": number}}
    assert both_scores(fix, entry, str(number))[1] == 0.0
    halved = f"2 {arithmetic.TIMES} {number // 2}"
    assert both_scores(fix, entry, halved)[1] == pytest.approx(0.125)


def test_a_negative_gold_answer_of_gsm_symbolic_is_right() -> None:
    entry = {"answer": "-1", "metadata": {}}
    fix = FIXES["gsm_symbolic"]
    assert both_scores(fix, entry, "-1")[1] == 1.0
    assert both_scores(fix, entry, "1")[1] < 0.05


@pytest.mark.parametrize("answer", ["", '""', "no real solutions", "None"])
def test_an_equation_without_solution_is_answered_by_saying_so(answer: str) -> None:
    entry = {"answer": "", "metadata": {}}
    fix = FIXES["polynomial_equations"]
    assert both_scores(fix, entry, answer)[1] == 1.0
    assert both_scores(fix, entry, "I do not know")[1] == 0.0


def answers_to_an_integral(entry: dict[str, Any]) -> list[str]:
    """Return right answers in other words, and wrong ones by a number or a sign."""
    gold = entry["answer"].removesuffix(" + C")
    numbers = list(re.finditer(r"\d+", gold))
    wrong = [
        gold[: found.start()] + str(int(found.group()) + 1) + gold[found.end() :]
        for found in numbers[:3]
    ]
    return [gold, f"{gold} + 7", f"C - (-1)*({gold})", f"-({gold})", *wrong]


@pytest.mark.parametrize("task", ["simple_integration", "intermediate_integration"])
def test_a_wrong_slope_is_seen_where_the_library_does_not_pay_and_only_there(
    task: str,
) -> None:
    seen = []
    for entry in entries(task):
        metadata = entry["metadata"]
        installed = library_score(task, entry)
        for answer in answers_to_an_integral(entry):
            is_wrong = has_wrong_slope(
                answer, metadata["integrand"], metadata["variable"]
            )
            assert is_wrong == (installed(answer) == 0.0), answer
            seen.append(is_wrong)
    assert 0.3 < sum(seen) / len(seen) < 0.7


@pytest.mark.parametrize(
    ("answer", "integrand"),
    [
        ("log(x**2)/2", "1/x"),
        ("log(abs(x))", "1/x"),
        ("0.333333333333333333*x**3", "x**2"),
        ("acos(x)", "-1/sqrt(1 - x**2)"),
        ("C*x", "3"),
        ("x**(", "3"),
        ("x*10**400", "3*10**400"),
    ],
)
def test_what_is_not_surely_wrong_is_left_to_the_library(answer, integrand) -> None:
    assert not has_wrong_slope(answer, integrand, "x")


@every_fix
def test_a_fix_bears_any_text_before_the_library_sees_it(fix: ScorerFix) -> None:
    entry = library.make_entry(fix.task, {}, SEEDS[0])
    hostile = (
        "\0",
        "\ud800",
        "[" * 20_000,
        ")" + " " * 20_000,
        "9" * 20_000,
        "5 " * 99,
    )
    for answer in hostile:
        assert fix.score(answer, entry, lambda text: 0.0) == 0.0
