"""The parts of the library that examples use, which are public."""

import ast

import pytest

import rg_env
from rg_env.installation import PROJECT

PRIVATE = {"ray_serve.py", "small_llama.py", "roman_numerals.py"}
"""Examples of a part of the library that has no public name."""

FILES = sorted((PROJECT / "examples").rglob("*.py"))


@pytest.mark.parametrize("file", FILES, ids=lambda f: str(f.relative_to(PROJECT)))
def test_an_example_imports_public_names(file):
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("rg_env"):
            names = {each.name for each in node.names}
            is_public = node.module.startswith("rg_env.adapters") or (
                node.module == "rg_env" and names <= {*rg_env.__all__, "adapters"}
            )
            assert is_public or file.name in PRIVATE
