"""What stands in for slow functions of the library returns what they return."""

from __future__ import annotations

import importlib
import importlib.util
import itertools
import json
import os
import random
import subprocess
import sys
import textwrap
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from rg_env.task_rules.faster import (
    brainfuck,
    expressions,
    futoshiki,
    replacing,
)
from rg_env.task_rules.faster.replacing import Replacement
from rg_env.task_rules.faster.table import REPLACEMENTS
from rg_env.tasks import library

ITEMS_OF_A_TASK = 8
TASKS = (
    "bf",
    "countdown",
    "futoshiki",
    "game_of_life",
    "game_of_life_halting",
    "knight_swap",
    "n_queens",
    "puzzle24",
    "zebra_puzzles",
)
MAKE_ENTRIES = """
import hashlib, json, random, sys
from rg_env.tasks import library, scales
if sys.argv[1] == "own":
    library.replace = lambda replacements: []
shipped, made = scales.load_shipped(), {}
for task in sys.argv[4:]:
    rng = random.Random(11)
    for number in range(int(sys.argv[2])):
        step = shipped.scales[task].step_at(rng.random(), rng.random())
        entry = library.make_entry(task, step.params, rng.randrange(2**32), False)
        made[f"{task} {number}"] = hashlib.sha256(repr(entry).encode()).hexdigest()
open(sys.argv[3], "w").write(json.dumps(made))
"""


def entries_made(whose: str, repo_root: Path, folder: Path) -> dict[str, str]:
    """Make entries in another process, where nothing is replaced by other tests."""
    made = folder / f"{whose}.json"
    program = [sys.executable, "-c", MAKE_ENTRIES, whose, str(ITEMS_OF_A_TASK)]
    environment = os.environ | {"PYTHONHASHSEED": "0", "PYTHONPATH": str(repo_root)}
    subprocess.run(
        [*program, str(made), *TASKS],
        cwd=folder,
        env=environment,
        capture_output=True,
        check=True,
    )
    return json.loads(made.read_bytes())


@pytest.fixture(scope="module")
def entries(repo_root, tmp_path_factory) -> dict[str, dict[str, str]]:
    folder = tmp_path_factory.mktemp("entries")
    return {
        whose: entries_made(whose, repo_root, folder) for whose in ("own", "faster")
    }


@pytest.mark.processes
@pytest.mark.parametrize("task", TASKS)
def test_an_entry_is_the_library_s_own_to_the_last_character(entries, task):
    own, faster = (
        {name: text for name, text in entries[whose].items() if name.startswith(task)}
        for whose in ("own", "faster")
    )
    assert len(own) >= ITEMS_OF_A_TASK and own == faster


def test_every_replacement_is_in_place_in_the_tested_version():
    library.describe()
    for replacement in REPLACEMENTS:
        place = importlib.import_module(replacement.module)
        *holders, name = replacement.name.split(".")
        for holder in holders:
            place = getattr(place, holder)
        assert getattr(place, name).__module__.startswith("rg_env.task_rules.")


# -- replacing -------------------------------------------------------------------------


class Place:
    def slow(self) -> str:
        return "slow"

    @staticmethod
    def of_nobody() -> str:
        return "slow"


def replaced(name: str, digest: str) -> list[str]:
    row = Replacement(__name__, f"Place.{name}", digest, lambda own: lambda *_: "fast")
    return replacing.replace([row])


@pytest.fixture
def place(monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "Place", type("Place", (Place,), {}))
    return sys.modules[__name__].Place


@pytest.mark.parametrize("name", ["slow", "of_nobody"])
def test_a_function_of_the_known_text_is_replaced_and_stays_as_bound(place, name):
    digest = replacing.source_digest(getattr(place, name))
    assert replaced(name, digest) == [f"{__name__}.Place.{name}"]
    assert getattr(place(), name)() == "fast"


def test_a_function_of_another_text_stays(place):
    assert replaced("slow", "0" * 16) == []
    assert place().slow() == "slow"


@pytest.mark.parametrize("name", ["gone", "slow.gone"])
def test_a_function_that_is_gone_is_no_error(place, name):
    assert replaced(name, "") == []


@pytest.mark.parametrize("text", ["known", "changed"])
def test_a_function_is_replaced_only_with_the_texts_that_ours_relies_on(place, text):
    reads = {"known": replacing.source_digest(textwrap.dedent), "changed": "0" * 16}
    row = Replacement(
        __name__,
        "Place.slow",
        replacing.source_digest(place.slow),
        lambda own: lambda *_: "fast",
        {"textwrap:dedent": reads[text]},
    )
    replacing.replace([row])
    assert place().slow() == ("fast" if text == "known" else "slow")


def test_a_module_that_is_gone_is_no_error():
    assert replacing.replace([Replacement("no_such_module", "f", "", str)]) == []


# -- each of them ----------------------------------------------------------------------


def as_installed(name: str) -> ModuleType:
    """Return a module of the library with its own functions, beside the one in use."""
    library.describe()
    used = importlib.import_module(name)
    spec = importlib.util.spec_from_file_location(f"own_{used.__name__}", used.__file__)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def own_bfi():
    return as_installed("bfi")


PROGRAMS = {
    "adds and wraps": "-.+.++++[->+++>+<<]>.>.",
    "copies": "+++++[->+>++>+++<<<]>.>.>.",
    "clears": "+++++[-]." + "+" * 65 + ".",
    "scans right": "+>+>+>>+<<<<[>]+.",
    "scans left": ">>+>+>+[<]+.",
    "nests": "+++[>+++[>+++[>+++<-]<-]<-]>>>.",
    "moves alone": "+>>><<<.>",
    "a loop never entered": "[.>[.]]+.",
    "a loop whose end moves": "++++[>+++>++<<-]>[>+<-]>.",
    "cells left of the first": "<+++.>[<.>-]",
    "copies to the left": ">>+++++[<<++>+>-]<.<.",
    "takes away": ">+++++++>+++[<-->-]<.",
    "counts up": "----[>+<+]>.",
    "ends elsewhere": "+++>++>+<<[>-]>.",
    "copies within loops": "+++[>++[<<+>>>+<-]>[<+>-]<<-]<.>>.",
    "reads": ",[>+<-]>.,.",
    "nests deep": "+" + "[>+" * 30 + "<-]" * 30 + ".",
    "no output": "+++",
    "nothing": "",
}


def test_a_copying_loop_of_any_direction_is_one_step(own_bfi):
    for program in ("[<+>-]", "[->>+<<]", "[>+<-<++>]", "[>---<-]"):
        [opcode] = brainfuck.make_parse(own_bfi.parse)(program)
        assert opcode.code == own_bfi.OPCODE_COPY


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_prints_what_it_prints_step_by_step(own_bfi, name):
    parse = brainfuck.make_parse(own_bfi.parse)
    expected, found = (
        own_bfi.execute(opcodes, "hi", buffer_output=True)
        for opcodes in (own_bfi.parse(PROGRAMS[name]), parse(PROGRAMS[name]))
    )
    assert found == expected


def test_programs_of_chance_print_what_they_print_step_by_step(own_bfi):
    parse = brainfuck.make_parse(own_bfi.parse)
    rng = random.Random(5)
    shorter = 0
    for _ in range(600):
        body = "".join(rng.choice("+-<>.+>") for _ in range(12))
        inner = "".join(rng.choice("+->") for _ in range(4))
        clearing = rng.choice(["", "", "[-]"])
        loop = f"[>{clearing}{inner}{'<' * inner.count('>')}<-]"
        if rng.random() < 0.5:
            loop = loop.translate(str.maketrans("<>", "><"))
        # The loop around is counted where the loop inside never comes.
        around = f"[{'>' * 9}+++++{loop}{'<' * 9}-]"
        program = f"{'>' * 30}{'+' * rng.randint(1, 9)}{around}{body}."
        own, ours = own_bfi.parse(program), parse(program)
        shorter += len(ours) < len(own)
        expected = own_bfi.execute(own, buffer_output=True)
        assert own_bfi.execute(ours, buffer_output=True) == expected
    assert shorter > 100


@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (2, 2), (2, 3), (3, 3), (8, 5)])
def test_boards_of_life_of_any_shape_evolve_as_the_library_lets_them(shape):
    library.describe()
    cellpylib = importlib.import_module("cellpylib")
    own = importlib.import_module("cellpylib.ca_functions2d").evolve2d
    assert own is not cellpylib.evolve2d
    rng = np.random.default_rng(3)
    for _ in range(5):
        board = rng.integers(0, 2, (1, *shape))
        rule = cellpylib.game_of_life_rule
        expected = own(board, timesteps=6, apply_rule=rule, memoize="recursive")
        found = cellpylib.evolve2d(board, timesteps=6, apply_rule=rule)
        assert found.dtype == expected.dtype and found.tolist() == expected.tolist()


def test_another_rule_than_life_s_is_the_library_s_own_matter():
    library.describe()
    cellpylib = importlib.import_module("cellpylib")
    board = np.array([[[0, 1], [1, 1]]])
    grown = cellpylib.evolve2d(board, timesteps=2, apply_rule=lambda n, c, t: 7)
    assert grown[-1].tolist() == [[7, 7], [7, 7]]


QUEENS = {1: 1, 2: 0, 3: 0, 4: 2, 5: 10, 6: 4, 7: 40, 8: 92, 9: 352}
"""Ways to place n queens, sequence A000170."""


@pytest.mark.parametrize("n", QUEENS)
def test_all_boards_of_queens_are_found_in_the_order_of_their_columns(n):
    library.describe()
    games = importlib.import_module("reasoning_gym.games.n_queens")
    boards = games.NQueensDataset._get_all_solutions(None, n)
    placed = [tuple(row.index("Q") for row in board) for board in boards]
    assert len(placed) == QUEENS[n] and placed == sorted(set(placed))
    for columns in placed:
        falling = {column - row for row, column in enumerate(columns)}
        rising = {column + row for row, column in enumerate(columns)}
        assert len(set(columns)) == len(falling) == len(rising) == n


@pytest.mark.parametrize("known", [True, False])
def test_a_puzzle_has_one_solution_with_all_clues_and_several_with_none(known):
    library.describe()
    room = "reasoning_gym.logic.contrib.logic_puzzle"
    generate = importlib.import_module(f"{room}.generate")
    rng = random.Random(1)
    kinds = [generate.Name, generate.Color]
    solution = generate.generate_solution_dict(rng, kinds, 3)
    puzzle = generate.Puzzle(
        rng=rng, element_types=kinds, elements=solution.keys(), n_houses=3
    ).set_constraints()
    puzzle.solution = solution if known else None
    clues = generate.generate_found_at(puzzle, solution)
    assert generate.has_unique_solution(puzzle, clues)
    assert not generate.has_unique_solution(puzzle, set())
    assert puzzle.clues == set()


def board_by_trying_all_orders(size: int, rng: random.Random) -> list[list[int]]:
    grid: list[list[int]] = []

    def fill() -> bool:
        if len(grid) == size:
            return True
        numbers = list(range(1, size + 1))
        rng.shuffle(numbers)
        for row in itertools.permutations(numbers):
            if all(row[at] != above[at] for above in grid for at in range(size)):
                grid.append(list(row))
                if fill():
                    return True
                grid.pop()
        return False

    assert fill()
    return grid


@pytest.mark.parametrize("size", [1, 2, 4, 6])
def test_boards_of_futoshiki_are_those_found_by_trying_all_orders(size):
    generate = futoshiki.make_generate_random_solution(None)
    for seed in range(20):
        rng, same = random.Random(seed), random.Random(seed)
        assert generate(None, size, rng) == board_by_trying_all_orders(size, same)
        assert rng.getstate() == same.getstate()


@pytest.mark.parametrize("operators", [("+",), ("-", "/"), ("+", "-", "*", "/")])
@pytest.mark.parametrize("least", [-3, 0, 1])
def test_an_expression_has_the_value_of_its_formula(operators, least):
    sympy = importlib.import_module("sympy")
    config = SimpleNamespace(min_value=least, max_value=9, operators=operators)
    for seed in range(60):
        expression = expressions.Expression(random.Random(seed), config, 5)
        symbols = sympy.symbols("x:5")
        formula = expression.formula(symbols)
        values = dict(zip(symbols, expression.numbers, strict=True))
        assert formula.subs(values) == expression.value
