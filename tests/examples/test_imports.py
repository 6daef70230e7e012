"""The names that examples import, also where torch or TRL is not installed."""

import ast
from importlib import import_module
from importlib.util import find_spec

import pytest

from rg_env.installation import PROJECT

PRIVATE = {"ray_serve.py", "small_llama.py", "roman_numerals.py"}
"""Examples of a part of the library that has no public name."""

FILES = sorted((PROJECT / "examples").rglob("*.py"))


@pytest.mark.parametrize("file", FILES, ids=lambda f: str(f.relative_to(PROJECT)))
def test_an_example_imports_public_names_that_exist(file):
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("rg_env"):
            assert find_spec(node.module)
            is_public = node.module.split(".")[1:2] in ([], ["adapters"])
            assert is_public or file.name in PRIVATE
            if node.module.startswith("rg_env.adapters"):  # they need a trainer
                continue
            known = dir(import_module(node.module))
            for name in (each.name for each in node.names):
                assert name in known or find_spec(f"{node.module}.{name}")
