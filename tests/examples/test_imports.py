"""The names that examples import, also where torch or TRL is not installed."""

import ast
from importlib import import_module
from importlib.util import find_spec

import pytest

from rg_env.installation import PROJECT

FILES = sorted((PROJECT / "examples").rglob("*.py"))


@pytest.mark.parametrize("file", FILES, ids=lambda f: str(f.relative_to(PROJECT)))
def test_an_example_imports_modules_and_names_that_exist(file):
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("rg_env"):
            assert find_spec(node.module)
            if node.module.startswith("rg_env.adapters"):  # they need a trainer
                continue
            known = dir(import_module(node.module))
            for name in (each.name for each in node.names):
                assert name in known or find_spec(f"{node.module}.{name}")
