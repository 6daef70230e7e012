"""A statement does one thing, and the examples in docstrings are right."""

import ast
import doctest
import importlib
from collections import Counter

import pytest

from tests.support.documents import ROOT

MODULES = list(ROOT.glob("rg_env/**/*.py"))
MOST = {"a, b = x, y": 2, "made to be splatted": 3, "local: Any": 0}
EXAMPLES = [p for p in MODULES if ">>> " in p.read_text()]


def packing(function):
    """Yield what saves lines and costs a reader."""
    made = set()  # names of tuples and dicts
    for node in ast.walk(function):
        match node:
            case ast.Assign([ast.Name(name)], ast.Tuple() | ast.Dict()):
                made.add(name)
            case ast.Assign([ast.Tuple()], ast.Tuple()):
                yield "a, b = x, y"
            case ast.AnnAssign(ast.Name(), ast.Name("Any")):
                yield "local: Any"
            case ast.Starred(ast.Tuple()) | ast.keyword(None, ast.Dict()):
                yield "made to be splatted"
            case ast.Starred(ast.Name(name)) | ast.keyword(None, ast.Name(name)):
                if name in made:  # statements come before the parts of later ones
                    yield "made to be splatted"


def test_a_statement_does_one_thing():
    nodes = [node for path in MODULES for node in ast.walk(ast.parse(path.read_text()))]
    functions = [
        n for n in nodes if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    found = Counter(kind for function in functions for kind in packing(function))
    assert all(found[kind] <= most for kind, most in MOST.items()), found


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_examples_in_docstrings_are_right(path):
    name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    result = doctest.testmod(importlib.import_module(name))
    assert result.attempted
    assert not result.failed
