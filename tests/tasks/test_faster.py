"""What stands in for slow functions of the library returns what they return."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import itertools
import json
import os
import random
import string
import subprocess
import sys
import textwrap
import tracemalloc
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from rg_env.tasks import library
from rg_env.tasks.faster import (
    brainfuck,
    drawing,
    expressions,
    files,
    futoshiki,
    ladder,
    replacing,
    sokoban,
    sudoku,
)
from rg_env.tasks.faster.replacing import Replacement
from rg_env.tasks.faster.rows import JsonRows, Words
from rg_env.tasks.faster.table import REPLACEMENTS
from rg_env.tasks.unusable_entry import UnusableEntry

ITEMS_OF_A_TASK = 8
TASKS = (
    "arc_agi",
    "bf",
    "codeio",
    "countdown",
    "figlet_font",
    "futoshiki",
    "game_of_life",
    "game_of_life_halting",
    "group_anagrams",
    "knight_swap",
    "n_queens",
    "puzzle24",
    "sokoban",
    "spell_backward",
    "sudoku",
    "word_ladder",
    "zebra_puzzles",
)
MAKE_ENTRIES = """
import hashlib, json, random, sys
from rg_env.tasks import library, scales
if sys.argv[1] == "own":
    library.replace = lambda replacements: []
    library._make_smaller = lambda dataset: None
shipped, made = scales.load_shipped(), {}
for task in sys.argv[4:]:
    rng = random.Random(11)
    for number in range(int(sys.argv[2])):
        step = shipped.scales[task].step_at(rng.random(), rng.random())
        entry = library.make_entry(task, step.params, rng.randrange(2**32))
        made[f"{task} {number}"] = hashlib.sha256(repr(entry).encode()).hexdigest()
open(sys.argv[3], "w").write(json.dumps(made))
"""


def to_json(value: object) -> bytes:
    return json.dumps(value).encode()


def entries_made(whose: str, repo_root: Path, folder: Path) -> dict[str, str]:
    """Make entries in another process; programs of codeio print and write files."""
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
        assert getattr(place, name).__module__.startswith("rg_env.tasks.faster")


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


# -- rows ------------------------------------------------------------------------------

WORDS = ["ant", "", "Ästchen", "🐜🐜", "bee"]


@pytest.mark.parametrize("rows", [Words(WORDS), JsonRows(map(to_json, WORDS))])
def test_rows_are_used_as_the_list_that_they_were_made_of(rows):
    assert list(rows) == WORDS and len(rows) == len(WORDS)
    assert [rows[place] for place in range(-5, 5)] == WORDS * 2
    assert rows[1:4] == WORDS[1:4] and rows[::-2] == WORDS[::-2] and rows[9:] == []
    assert "bee" in rows and "wasp" not in rows
    for draw in (random.Random.choice, random.Random.sample):
        more = (3,) if draw is random.Random.sample else ()
        drawn = (draw(random.Random(4), kept, *more) for kept in (rows, WORDS))
        assert next(drawn) == next(drawn)
    for place in (5, -6):
        with pytest.raises(IndexError):
            rows[place]


def test_words_take_a_quarter_of_the_memory_of_a_list():
    tracemalloc.start()
    words = [f"word{number}" for number in range(50_000)]
    of_list = tracemalloc.get_traced_memory()[0]
    rows = Words(words)
    of_rows = tracemalloc.get_traced_memory()[0] - of_list
    tracemalloc.stop()
    assert len(rows) == 50_000 and of_rows < of_list / 4


# -- each of them ----------------------------------------------------------------------


def as_installed(name: str) -> ModuleType:
    """Return a module of the library with its own functions, beside the one in use."""
    library.describe()
    used = importlib.import_module(name)
    spec = importlib.util.spec_from_file_location(f"own_{used.__name__}", used.__file__)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


READ_MORE = {
    "the clock": "st = datetime.now()",
    "the day": "year = date.today().year",
    "a timer": "began = time.time()",
    "true chance": "key = os.urandom(32)",
    "the machine": "tags = os.environ",
}
READ_THEIR_INPUT = {
    "a moment's time of day": "t = moment.time()",
    "a name like the clock's": "is_monotonic(values)",
    "a word like the machine's": "environment = 3",
}


def program_with(code: str) -> bytes:
    return to_json({"code_sample": f"def main():\n    {code}\n"})


@pytest.mark.parametrize("code", READ_MORE.values(), ids=READ_MORE)
def test_a_program_that_reads_more_than_its_input_is_not_asked(code):
    with pytest.raises(UnusableEntry, match="reads more than its input"):
        files.Programs([program_with(code)])[0]


@pytest.mark.parametrize("code", READ_THEIR_INPUT.values(), ids=READ_THEIR_INPUT)
def test_a_program_that_reads_its_input_is_asked(code):
    assert code in files.Programs([program_with(code)])[0]["code_sample"]


def test_an_item_of_codeio_is_never_made_of_the_clock():
    library.describe()
    dataset = library.build_dataset("codeio", {}, seed=0)
    refused = 0
    for number in range(len(dataset._jsonl_data)):
        try:
            program = dataset._jsonl_data[number]
        except UnusableEntry:
            refused += 1
        else:
            assert "datetime.now()" not in program["input_generator"]
    assert 0 < refused < len(dataset._jsonl_data) / 100


def test_words_share_the_graph_that_their_letters_give():
    rng = random.Random(6)
    words = {"".join(rng.choices("ABCDE", k=4)) for _ in range(300)}
    build = ladder.make_build_word_graph(None)
    first, second = (
        SimpleNamespace(word_sets={4: words}, word_graphs={}) for _ in range(2)
    )
    graph = build(first, 4)
    assert build(second, 4) is graph is first.word_graphs[4]
    assert list(graph) == list(words)
    for word, near in graph.items():
        tried = set()
        for place in range(4):
            for letter in string.ascii_uppercase:
                other = word[:place] + letter + word[place + 1 :]
                if other != word and other in words:
                    tried.add(other)
        # In this order the ladders are searched.
        assert list(near) == list(tried)


@pytest.mark.parametrize("words", [{"C-T"}, {"CAT", "COATS"}, {"cat"}, {"ÄST"}])
def test_other_words_than_of_plain_letters_are_left_to_the_library(words):
    build = ladder.make_build_word_graph(lambda dataset, length: "its own")
    assert build(SimpleNamespace(word_sets={3: words}, word_graphs={}), 3) == "its own"


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
    "no output": "+++",
    "nothing": "",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_prints_what_the_interpreter_prints(own_bfi, name):
    execute = brainfuck.make_execute(None)
    opcodes = own_bfi.parse(PROGRAMS[name])
    expected = own_bfi.execute(opcodes, buffer_output=True)
    assert execute(opcodes, buffer_output=True) == expected


def test_programs_of_chance_print_what_the_interpreter_prints(own_bfi):
    execute = brainfuck.make_execute(None)
    rng = random.Random(5)
    for _ in range(300):
        body = "".join(rng.choice("+-<>.+>") for _ in range(12))
        inner = "".join(rng.choice("+.>") for _ in range(4))
        program = (
            f"{'>' * 30}{'+' * rng.randint(1, 9)}[>[-]{inner}{'<' * inner.count('>')}"
        )
        program = f"{program}<-]{body}"
        opcodes = own_bfi.parse(program)
        expected = own_bfi.execute(opcodes, buffer_output=True)
        assert execute(opcodes, buffer_output=True) == expected


def test_a_program_that_reads_or_nests_deep_is_left_to_the_interpreter(own_bfi):
    execute = brainfuck.make_execute(own_bfi.execute)
    deep = "+" + "[>+" * 30 + "<-]" * 30 + "."
    for program, given in ((",.,.", "hi"), (deep, None)):
        opcodes = own_bfi.parse(program)
        expected = own_bfi.execute(opcodes, given, buffer_output=True)
        assert execute(opcodes, given, buffer_output=True) == expected


def test_output_for_a_callback_is_left_to_the_interpreter(own_bfi):
    execute, said = brainfuck.make_execute(own_bfi.execute), []
    assert execute(own_bfi.parse("+++."), write_byte=said.append) is None
    assert said == [3]


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


SOLVED_SUDOKU = [
    [(row * 3 + row // 3 + at) % 9 + 1 for at in range(9)] for row in range(9)
]


@pytest.mark.parametrize(("emptied", "ways"), [(0, 1), (20, 1), (64, 2), (81, 2)])
def test_the_ways_to_fill_a_sudoku_are_counted_to_the_limit(emptied, ways):
    count = sudoku.make_count_solutions(None)
    board = [list(row) for row in SOLVED_SUDOKU]
    cells = [(row, column) for row in range(9) for column in range(9)]
    for row, column in random.Random(1).sample(cells, emptied):
        board[row][column] = 0
    before = [list(row) for row in board]
    assert count(None, board) == ways
    assert count(None, board, 1) == 1
    assert board == before


def test_a_sudoku_that_breaks_its_rules_cannot_be_filled():
    board = [[0] * 9 for _ in range(9)]
    board[0] = [1, 2, 3, 4, 5, 6, 7, 8, 0]
    board[1][8] = 9
    assert sudoku.make_count_solutions(None)(None, board) == 0


SOKOBAN = "reasoning_gym.games.contrib.sokoban.src.utils"


@pytest.mark.parametrize("shape", [(4, 4), (5, 7), (8, 6)])
def test_boards_of_sokoban_are_read_as_the_library_reads_them(shape):
    own = as_installed(SOKOBAN)
    is_deadlock = sokoban.make_is_deadlock(None)
    find = sokoban.make_find_boxes_and_goals(None)
    rng, verdicts = random.Random(2), set()
    for _ in range(2000):
        board = np.full(shape, "+")
        inner = board[1:-1, 1:-1]
        squares = rng.choices("-----------@@X%$+", k=inner.size)
        inner[:] = np.reshape(squares, inner.shape)
        state = "".join(board.flat)
        verdicts.add(own.is_deadlock(state, shape))
        assert is_deadlock(state, shape) == own.is_deadlock(state, shape)
        assert find(state, shape) == own.find_boxes_and_goals(state, shape)
    assert verdicts == {True, False}


@pytest.mark.parametrize("state", [None, "", "+++"])
def test_no_whole_board_of_sokoban_is_no_deadlock(state):
    assert sokoban.make_is_deadlock(None)(state, (4, 4)) is False


# -- matplotlib ------------------------------------------------------------------------

LOAD_LIBRARY = """
import sys
from rg_env.tasks import library
library.describe()
print("matplotlib" in sys.modules)
import cellpylib
try:
    cellpylib.plot([[0, 1]])
except RuntimeError as error:
    print(error)
import matplotlib
print(matplotlib.__version__)
"""


@pytest.fixture(scope="module")
def loaded(repo_root, tmp_path_factory) -> list[str]:
    """What a process says that loads the library."""
    done = subprocess.run(
        [sys.executable, "-c", LOAD_LIBRARY],
        cwd=tmp_path_factory.mktemp("loaded"),
        env=os.environ | {"PYTHONPATH": str(repo_root)},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()


def test_the_library_is_loaded_without_matplotlib(loaded):
    assert loaded[0] == "False"


def test_drawing_with_what_was_left_out_is_refused_by_name(loaded):
    assert loaded[1] == "matplotlib.pyplot.get_cmap is not loaded where items are made"


@pytest.mark.parametrize(
    "uses", ["plt.figure()", "class Own(plt.Figure): pass", "raise ImportError('gone')"]
)
def test_a_cellpylib_that_draws_while_it_is_loaded_is_left_to_the_library(
    uses, tmp_path, monkeypatch
):
    packages = {"cellpylib", *drawing.DRAWING}
    for name in [n for n in sys.modules if n.partition(".")[0] in packages]:
        monkeypatch.delitem(sys.modules, name)
    package = tmp_path / "cellpylib"
    package.mkdir()
    (package / "__init__.py").write_text("from . import drawn")
    (package / "drawn.py").write_text(f"import matplotlib.pyplot as plt\n{uses}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    drawing.load_cellpylib()
    assert not any(name.startswith("cellpylib") for name in sys.modules)


def test_matplotlib_can_be_imported_afterwards(loaded):
    assert loaded[2] == importlib.metadata.version("matplotlib")
