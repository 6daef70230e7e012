"""Replaced functions return what the library's slow functions return."""

import importlib
import json
import operator
import os
import subprocess
import sys
import types

import pytest

from rg_env.library import registry
from rg_env.task_rules.faster_functions import dataset_init, replace, source_digest
from rg_env.task_rules.rules import FasterFunction
from rg_env.task_rules.table import TABLE

ITEMS_OF_A_TASK = 2
TASKS = """
    arc_agi bf codeio countdown figlet_font futoshiki game_of_life game_of_life_halting
    group_anagrams knight_swap n_queens puzzle24 zebra_puzzles
""".split()  # noqa: SIM905 - as a list it would take a line for each
MAKE_ENTRIES = """
import hashlib, json, random, sys
from rg_env.library import datasets, registry, scales
if sys.argv[1] == "own":
    registry.replace = lambda functions: []
shipped, made = scales.load_shipped(), {}
for task in sys.argv[4:]:
    rng = random.Random(11)
    for number in range(int(sys.argv[2])):
        step = shipped.scales[task].step_at(rng.random(), rng.random())
        entry = datasets.make_entry(task, step.params, rng.randrange(2**32), False)
        made[f"{task} {number}"] = hashlib.sha256(repr(entry).encode()).hexdigest()
from reasoning_gym.code.codeio import CodeIODataset
is_ours = CodeIODataset.__init__.__module__.startswith("rg_env.")
assert is_ours == (sys.argv[1] != "own")
open(sys.argv[3], "w").write(json.dumps(made))
"""


@pytest.fixture(scope="module")
def entries(repo_root, tmp_path_factory):
    """Make entries in two other processes, where other tests have replaced nothing."""
    folder = tmp_path_factory.mktemp("entries")
    environment = os.environ | {"PYTHONHASHSEED": "0", "PYTHONPATH": str(repo_root)}
    running = {}
    for whose in ("own", "faster"):
        made = folder / f"{whose}.json"
        program = [sys.executable, "-c", MAKE_ENTRIES, whose, str(ITEMS_OF_A_TASK)]
        running[made] = subprocess.Popen(
            [*program, str(made), *TASKS], cwd=folder, env=environment
        )
    assert [process.wait() for process in running.values()] == [0, 0]
    return {made.stem: json.loads(made.read_bytes()) for made in running}


@pytest.mark.processes
@pytest.mark.parametrize("task", TASKS)
def test_an_entry_is_the_library_s_own_to_the_last_character(entries, task):
    own, faster = (
        {name: text for name, text in entries[whose].items() if name.startswith(task)}
        for whose in ("own", "faster")
    )
    assert len(own) >= ITEMS_OF_A_TASK and own == faster


def test_every_faster_function_is_in_place_in_the_tested_version():
    registry.describe()
    for function in (one for row in TABLE.values() for one in row.faster):
        module = importlib.import_module(function.module)
        ours = operator.attrgetter(function.name)(module)
        is_ours = ours.__module__.startswith("rg_env.task_rules.")
        assert is_ours or hasattr(ours, "cache_info")


@pytest.mark.parametrize("program", ["[<+>-]", "[->>+<<]", "[>+<-<++>]", "[>---<-]"])
def test_a_copying_loop_of_any_direction_is_one_step(program):
    registry.describe()
    bfi = importlib.import_module("bfi")
    assert [step.code for step in bfi.parse(program)] == [bfi.OPCODE_COPY]


# -- replacing -------------------------------------------------------------------------


class Place:
    def slow(self):
        return "slow"

    @staticmethod
    def of_nobody():
        return "slow"


def replaced(name, digest):
    row = FasterFunction(
        __name__, f"Place.{name}", digest, lambda own: lambda *_: "fast"
    )
    return replace([row])


@pytest.fixture
def place(monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "Place", type("Place", (Place,), {}))
    return sys.modules[__name__].Place


@pytest.mark.parametrize("name", ["slow", "of_nobody"])
def test_a_function_of_the_known_text_is_replaced_and_stays_as_bound(place, name):
    digest = source_digest(getattr(place, name))
    assert replaced(name, digest) == [f"{__name__}.Place.{name}"]
    assert getattr(place(), name)() == "fast"


def test_a_function_of_another_text_stays(place):
    assert replaced("slow", "0" * 16) == []
    assert place().slow() == "slow"


@pytest.mark.parametrize("name", ["Place.gone", "Place.slow.gone"])
@pytest.mark.parametrize("module", [__name__, "no_such_module"])
def test_a_function_that_is_gone_is_no_error(name, module):
    assert replace([FasterFunction(module, name, "", str)]) == []


class Base:
    def __init__(self, config, seed, size):
        self.begun = [config, seed, size]


class Dataset(Base):
    def __init__(self, config):
        raise NotImplementedError


def test_a_faster_init_begins_with_the_base_that_the_library_chose(monkeypatch):
    ours = dataset_init(lambda library, dataset, config: dataset.begun.append("filled"))
    monkeypatch.setattr(Dataset, "__init__", ours(Dataset.__init__))
    config = types.SimpleNamespace(seed=3, size=1)
    assert Dataset(config).begun == [config, 3, 1, "filled"]
