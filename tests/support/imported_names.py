"""What a file of Python imports, read from its source."""

import ast
import functools
from pathlib import Path


def is_import_call(node):
    if not isinstance(node, ast.Call) or not node.args:
        return False
    name = getattr(node.func, "attr", getattr(node.func, "id", ""))
    return name in ("import_module", "__import__")


def imported_names(tree):
    """Every dotted name that a file imports, those inside functions included.

    A relative import begins with its dots. From a call of `import_module`, the name
    if it is written out.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            yield from (f"{module}.{alias.name}" for alias in node.names)
        elif is_import_call(node) and isinstance(node.args[0], ast.Constant):
            yield str(node.args[0].value)


@functools.cache
def imports_of(path):
    tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
    return frozenset(imported_names(tree))


def top_names(path):
    return {name.split(".")[0] for name in imports_of(path)}


def collected_names():
    """Return the names of the tests that `make test` collects."""
    names = set()
    for path in Path(__file__).parents[1].rglob("test_*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        names |= {
            node.name
            for node in tree.body
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            and "commands" not in " ".join(map(ast.unparse, node.decorator_list))
        }
    return names
