"""Programs print what they print where each of their steps is taken."""

from __future__ import annotations

import importlib
import importlib.util
import random
from types import ModuleType

import pytest

from rg_env.task_rules.code.bf import make_parse
from rg_env.tasks import library


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
        [opcode] = make_parse(own_bfi.parse)(program)
        assert opcode.code == own_bfi.OPCODE_COPY


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_prints_what_it_prints_step_by_step(own_bfi, name):
    parse = make_parse(own_bfi.parse)
    expected, found = (
        own_bfi.execute(opcodes, "hi", buffer_output=True)
        for opcodes in (own_bfi.parse(PROGRAMS[name]), parse(PROGRAMS[name]))
    )
    assert found == expected


def test_programs_of_chance_print_what_they_print_step_by_step(own_bfi):
    parse = make_parse(own_bfi.parse)
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
