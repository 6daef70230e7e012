"""The fixes of arc, code, cognition, games and the rest, against the installed ones."""

from __future__ import annotations

import functools
import hashlib
import inspect
import itertools
import json
import string
from collections.abc import Callable
from typing import Any

import pytest

from rg_env.answers.fixes import arc_code_cognition, games, others
from rg_env.answers.fixes.box_plans import agent_at
from rg_env.answers.fixes.car_moves import SIDE, read_board
from rg_env.answers.fixes.fix import ScorerFix
from rg_env.answers.fixes.propositions import read_formula
from rg_env.answers.fixes.sums import read_sum
from rg_env.answers.fixes.talk import is_talk
from rg_env.answers.scoring import as_unit
from rg_env.tasks import library
from rg_env.tasks.solutions import solution

ROWS = arc_code_cognition.FIXES + games.FIXES + others.FIXES
FIXES = {fix.task: fix for fix in ROWS}
SEEDS = range(7000, 7008)

FAULTY_FOR_SOME_ENTRIES = {"advanced_geometry", "codeio", "rush_hour"}
"""There the fault shows in one kind of entry, or in entries that luck can solve."""

MOVES_THAT_ADD_UP = {"quantum_lock", "sokoban"}
"""There two sequences are one longer sequence, which is played to its end."""

OR = "\N{LOGICAL OR}"

MAX_GOLD_CHARS = 400
"""The library compares JSON objects slowly; codeio's entries are chosen by this."""

every_fix = pytest.mark.parametrize("fix", FIXES.values(), ids=FIXES.keys())


def both_scores(
    fix: ScorerFix, entry: dict[str, Any], answer: str
) -> tuple[float, float]:
    """Return what the library pays for an answer and what the fix does."""
    scorer = library.scoring_dataset(fix.task, {}).score_answer

    def installed(text: str) -> float:
        return as_unit(scorer(text, entry))

    return installed(answer), fix.score(answer, entry, installed)


def fixed_score(task: str, entry: dict[str, Any], answer: str) -> float:
    """Return what the fix pays; the library sees the answer only if the fix asks it."""
    scorer = library.scoring_dataset(task, {}).score_answer
    return FIXES[task].score(answer, entry, lambda text: as_unit(scorer(text, entry)))


@functools.cache
def entries(task: str) -> list[dict[str, Any]]:
    made = [library.make_entry(task, {}, seed) for seed in SEEDS]
    return [
        e
        for e in made
        if len(solution(task, e) or "") < MAX_GOLD_CHARS or task != "codeio"
    ]


def test_a_task_has_one_fix_at_most() -> None:
    assert len(ROWS) == len(FIXES)


@every_fix
def test_the_fix_is_for_the_installed_scorer(fix: ScorerFix) -> None:
    source = inspect.getsource(type(library.scoring_dataset(fix.task, {})).score_answer)
    assert hashlib.sha256(source.encode()).hexdigest() == fix.scorer_sha256
    assert fix.library_version == library.describe().version


@every_fix
def test_the_proof_is_overpaid_by_the_library_and_not_by_the_fix(
    fix: ScorerFix,
) -> None:
    paid = [both_scores(fix, e, fix.proof(e)) for e in entries(fix.task)]
    overpaid = [installed >= fix.proof_pays for installed, _ in paid]
    assert any(overpaid) if fix.task in FAULTY_FOR_SOME_ENTRIES else all(overpaid)
    assert all(fixed < min(0.5, fix.proof_pays) for _, fixed in paid)


@every_fix
def test_the_gold_answer_is_right(fix: ScorerFix) -> None:
    for entry in entries(fix.task):
        gold = solution(fix.task, entry)
        assert gold is None or fixed_score(fix.task, entry, gold) == 1.0


@pytest.mark.parametrize("task", sorted(FIXES.keys() - {"boxnet"}))
def test_a_fix_pays_no_more_than_the_library(task: str) -> None:
    first, *more = entries(task)
    golds = [solution(task, entry) or "A+1" for entry in (first, *more)]
    for answer in (*golds[1:], f"{golds[0]}.", f"{golds[0]} {golds[1]}"):
        installed, fixed = both_scores(FIXES[task], first, answer)
        assert 0.0 <= fixed <= installed


@pytest.mark.parametrize(
    "task", sorted(FIXES.keys() - MOVES_THAT_ADD_UP - {"boxnet", "rush_hour"})
)
def test_a_second_answer_beside_the_gold_one_earns_no_half(task: str) -> None:
    for entry, other in itertools.pairwise(entries(task)):
        gold, second = solution(task, entry), solution(task, other)
        if gold == second:
            continue
        for between in (" or ", "; ", "\n", " # "):
            answer = f"{gold}{between}{second}"
            assert fixed_score(task, entry, answer) < 0.5, answer


@every_fix
def test_a_fix_bears_any_text_before_the_library_sees_it(fix: ScorerFix) -> None:
    hostile = (
        "\0",
        "\ud800",
        "[" * 20_000,
        "(" * 20_000,
        "-" * 300,
        "¬" * 20_000,
        ")" + " " * 20_000,
        "9" * 20_000,
        "5 " * 99,
        '{"a":' * 4_000,
        "A+99999",
        " " * 19_000 + "P",
    )
    for answer in hostile:
        assert fix.score(answer, entries(fix.task)[0], lambda text: 0.0) <= 0.05


@pytest.mark.parametrize(
    ("task", "answer"),
    [
        ("coin_flip", "0"),
        ("coin_flip", "0.5"),
        ("coin_flip", "0.0"),
        ("coin_flip", "1e-5"),
        ("boxnet", '[{"Agent[0.5, 0.5]": "move(box_red, target_red)"}]'),
        ("knights_knaves", "everyone is a knight"),
        ("mini_sudoku", "1 2 3 4\n3 4 1 2\n2 1 4 3\n4 3 2 1"),
        ("propositional_logic", f"P {OR} Q"),
        ("propositional_logic", "P ∧ ¬P"),
        ("propositional_logic", f"¬P {OR} ¬Q"),
        ("puzzle24", "1*2*3*4"),
        ("rush_hour", "A+4"),
        ("syllogism", "Yes No"),
    ],
)
def test_a_constant_earns_no_half_on_average(task: str, answer: str) -> None:
    made = [library.make_entry(task, {}, seed) for seed in range(7000, 7040)]
    assert sum(fixed_score(task, e, answer) for e in made) / len(made) < 0.5


def all_knights(entry: dict[str, Any]) -> str:
    knight = entry["metadata"]["knight_knave_terms"]["a_knight"]
    return ", ".join(f"{name} is {knight}" for name in entry["metadata"]["names"])


def missing_in_order(entry: dict[str, Any]) -> str:
    filled = []
    for row in entry["metadata"]["puzzle"]:
        missing = iter(sorted(set(range(1, len(row) + 1)) - set(row)))
        filled.append(" ".join(str(cell or next(missing)) for cell in row))
    return "\n".join(filled)


def shortest_premises(entry: dict[str, Any]) -> str:
    return " ∧ ".join(sorted(entry["metadata"]["premises"], key=len)[:2])


@pytest.mark.parametrize(
    ("task", "trick"),
    [
        ("knights_knaves", all_knights),
        ("mini_sudoku", missing_in_order),
        ("sudoku", missing_in_order),
        ("futoshiki", missing_in_order),
        ("propositional_logic", shortest_premises),
        ("propositional_logic", lambda e: e["metadata"]["premises"][0]),
    ],
)
def test_a_trick_earns_no_half_on_average(
    task: str, trick: Callable[[dict[str, Any]], str]
) -> None:
    seeds = range(7000, 7008 if task == "futoshiki" else 7040)
    made = [library.make_entry(task, {}, seed) for seed in seeds]
    assert sum(fixed_score(task, e, trick(e)) for e in made) / len(made) < 0.5


def one_cell_wrong(entry: dict[str, Any]) -> str:
    gold: str = entry["answer"]
    return ("2" if gold[0] == "1" else "1") + gold[1:]


NEAR_MISSES: dict[str, tuple[dict[str, Any], Callable[[dict[str, Any]], str]]] = {
    "figlet_font": ({}, lambda e: e["answer"][:-1] + "#"),
    "futoshiki": ({}, one_cell_wrong),
    "mini_sudoku": ({}, one_cell_wrong),
    "sudoku": ({}, one_cell_wrong),
    "arc_1d": ({}, lambda e: f"The answer is {e['answer']}"),
    "maze": ({}, lambda e: f"{e['answer']} steps"),
}


@pytest.mark.parametrize("task", NEAR_MISSES)
def test_a_near_miss_earns_what_the_library_pays(task: str) -> None:
    params, miss = NEAR_MISSES[task]
    entry = library.make_entry(task, params, 7000)
    installed, fixed = both_scores(FIXES[task], entry, miss(entry))
    assert 0.0 < installed == fixed < 1.0


def test_one_of_three_roles_wrong_is_paid_above_the_coin() -> None:
    entry = library.make_entry("knights_knaves", {"n_people": 3}, 7000)
    terms, metadata = entry["metadata"]["knight_knave_terms"], entry["metadata"]
    roles = [
        terms["a_knight" if knight else "a_knave"]
        for knight in (not metadata["solution"][0], *metadata["solution"][1:])
    ]
    answer = ", ".join(
        f"{n} is {r}" for n, r in zip(metadata["names"], roles, strict=True)
    )
    assert fixed_score("knights_knaves", entry, answer) == pytest.approx(1 / 3)


def test_a_name_with_both_roles_says_nothing() -> None:
    entry = entries("knights_knaves")[0]
    name, terms = entry["metadata"]["names"][0], entry["metadata"]["knight_knave_terms"]
    answer = f"{name} is {terms['a_knight']} and {name} is {terms['a_knave']}"
    assert both_scores(FIXES["knights_knaves"], entry, answer)[1] == 0.0


@pytest.mark.parametrize(
    ("answer", "fixed"),
    [("0.3125", 1.0), ("5/16", 1.0), ("0.31", 1.0), ("0.3", 0.2), ("-0.3125", 0.0)],
)
def test_a_probability_is_paid_by_how_close_it_is(answer: str, fixed: float) -> None:
    entry = {"answer": "0.3125", "metadata": {}}
    assert fixed_score("coin_flip", entry, answer) == pytest.approx(fixed)


def test_zero_is_no_small_probability() -> None:
    entry = {"answer": "3.051757812e-05", "metadata": {}}
    assert both_scores(FIXES["coin_flip"], entry, "0") == (1.0, 0.0)
    assert fixed_score("coin_flip", entry, "0.00003") == 1.0


@pytest.mark.parametrize(
    "answer", ["", "4*6", "8*5*10*6", "(8+5)*10/6 + 7/3", "10*(8 - 5) - 6.0", "24"]
)
def test_only_the_numbers_given_make_24(answer: str) -> None:
    entry = {"answer": "10*(8 - 5) - 6", "metadata": {"numbers": [8, 5, 10, 6]}}
    assert fixed_score("puzzle24", entry, answer) <= 0.05
    assert fixed_score("puzzle24", entry, " 10 * (8-5) - 6\n") == 1.0


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


def box_by_box(entry: dict[str, Any], boxes: int) -> str:
    """Carry the first boxes to their targets, rows first."""
    initial = entry["metadata"]["initial_state"]
    place = {
        i: tuple(map(float, name.split("_")))
        for name, items in initial.items()
        for i in items
    }
    steps = []
    for box in sorted(i for i in place if i.startswith("box_"))[:boxes]:
        target = f"target_{box[4:]}"
        at, goal = place[box], place[target]
        while at != goal:
            axis = 0 if at[0] != goal[0] else 1
            to = list(at)
            to[axis] += 1.0 if goal[axis] > at[axis] else -1.0
            steps.append({agent_at(at): f"move({box}, square[{to[0]}, {to[1]}])"})
            at = (to[0], to[1])
        steps.append({agent_at(at): f"move({box}, {target})"})
    return json.dumps(steps)


@pytest.mark.parametrize("boxes", [0, 1, 2, 3])
def test_a_plan_of_possible_actions_is_paid_as_the_library_pays_it(boxes: int) -> None:
    for entry in entries("boxnet"):
        installed, fixed = both_scores(FIXES["boxnet"], entry, box_by_box(entry, boxes))
        assert installed == fixed == max(0.05, boxes / 3)


@pytest.mark.parametrize(
    "answer",
    [
        "[1]",
        "{}",
        "1",
        '["a"]',
        '[{"x": "move(box_red, target_red)"}]',
        '[{"": 1}]',
        '[{"Agent[9.5, 9.5]": "move(box_red, square[0.5, 0.5])"}]',
    ],
)
def test_a_plan_that_is_none_is_worth_nothing_and_raises_nothing(answer: str) -> None:
    assert fixed_score("boxnet", entries("boxnet")[0], answer) <= 0.05


def solve_cars(config: str) -> str:
    """Search for moves that free the red car, breadth first."""
    cars, walls = read_board(config)
    start = tuple((letter, *cars[letter]) for letter in sorted(cars))
    waiting, seen = [(start, "")], {start}
    for state, moves in waiting:
        taken = {cell for _, *cells in state for cell in cells} | walls
        if (2, SIDE - 1) in state[0]:
            return moves.strip()
        for index, (letter, *cells) in enumerate(state):
            down = int(cells[0][0] != cells[1][0])
            for sign in (1, -1):
                moved = [(r + sign * down, c + sign * (1 - down)) for r, c in cells]
                free = taken.isdisjoint(set(moved) - set(cells))
                if not free or not all(0 <= i < SIDE for cell in moved for i in cell):
                    continue
                after = (*state[:index], (letter, *moved), *state[index + 1 :])
                if after not in seen:
                    seen.add(after)
                    waiting.append((after, f"{moves} {letter}{sign:+d}"))
    raise AssertionError("no solution")


def test_a_legal_solution_frees_the_car_and_a_blocked_move_spoils_it() -> None:
    params = {"min_moves": 1, "max_moves": 8}
    for seed in range(3):
        entry = library.make_entry("rush_hour", params, seed)
        moves = solve_cars(entry["metadata"]["board_config"])
        assert fixed_score("rush_hour", entry, moves) == 1.0
        assert both_scores(FIXES["rush_hour"], entry, f"{moves} A+4") == (1.0, 0.01)
        assert fixed_score("rush_hour", entry, f"{moves} or not") == 0.0


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("P", 0b1010),
        ("¬P ∧ Q", 0b0100),
        ("P → Q → P", 0b1010 | 0b0000),
        (f"P {OR} Q ∧ ¬P", 0b1110),
        ("¬(P ↔ Q)", 0b0110),
        ("¬¬P", 0b1010),
    ],
)
def test_a_formula_is_read_with_the_librarys_precedence(text: str, rows: int) -> None:
    found = read_formula(text, ["P", "Q"])
    assert found is not None
    assert found.rows == rows


@pytest.mark.parametrize(
    "text", ["", "P Q", "P ∧", "(P", "P)", "()", "R", "P ¬ Q", "∧ P", "p", "P(Q)"]
)
def test_what_is_no_formula_of_the_letters_is_not_read(text: str) -> None:
    assert read_formula(text, ["P", "Q"]) is None


@pytest.mark.parametrize(
    ("answer", "fixed"),
    [
        ("P ∧ Q", 1.0),
        ("Q ∧ Q", 1.0),
        (f"P {OR} Q", 0.25),
        ("Q ∧ (Q → P)", 0.25),
        ("Q → P", 0.25),
        ("P", 0.25),
        ("¬P ∧ Q", 0.05),
    ],
)
def test_a_conclusion_is_paid_for_an_inference(answer: str, fixed: float) -> None:
    metadata = {"premises": ["Q", "(Q → P)"], "variables": ["P", "Q"]}
    entry = {"answer": None, "metadata": {**metadata, "example_answer": "(Q ∧ Q)"}}
    assert fixed_score("propositional_logic", entry, answer) == fixed


@pytest.mark.parametrize(
    ("gold", "answer", "fixed"),
    [
        ('{"a": 5}', '{"a": -5}', 0.0),
        ('{"a": 5}', '{"a": 0, "a": 5}', 0.0),
        ('{"a": 5}', '```json\n{"a": 5}\n```', None),
        ('{"a": 5}', '{"a": 6}', None),
        ('{"a": 5}', '{"a": 5} or {"a": 6}', 0.0),
        ("5", "5", 1.0),
        ("5", "-5", 0.0),
    ],
)
def test_an_object_is_paid_alone(gold: str, answer: str, fixed: float | None) -> None:
    entry = {"answer": gold, "metadata": {}}
    installed, paid = both_scores(FIXES["codeio"], entry, answer)
    assert paid == (installed if fixed is None else fixed)


@pytest.mark.parametrize("text", ["", "The answer is", "so: ", "**", "\\boxed{}"])
def test_talk_is_no_answer(text: str) -> None:
    assert is_talk(text)


@pytest.mark.parametrize("text", ["or", "5", "not", "#", *string.ascii_lowercase])
def test_what_may_be_an_answer_is_no_talk(text: str) -> None:
    assert not is_talk(text)


def test_every_near_miss_that_is_listed_is_of_a_known_task() -> None:
    listed = (*arc_code_cognition.NEAR_MISS, *games.NEAR_MISS, *others.NEAR_MISS)
    assert set(listed) <= set(library.describe().tasks)
