"""YAML as people write it into a file or an option, and why it cannot be used.

A key that is given twice is refused: it is easily written by mistake, and only one of
the two would count.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import yaml

from rg_env.errors import shown

MAX_CHARS = 2**20
"""Longer than any settings are; of a file that was meant for something else."""

UNREADABLE = (
    yaml.YAMLError,
    ValueError,
    RecursionError,
    # What the library's constructors raise for a value that its tag does not fit.
    AttributeError,
    LookupError,
    TypeError,
)

MERGE = "tag:yaml.org,2002:merge"


class YamlError(ValueError):
    """Why a text cannot be used, and where; the end of a sentence."""


def _place(mark: yaml.Mark) -> str:
    return f"line {mark.line + 1}, column {mark.column + 1}"


def _why(error: Exception) -> str:
    """Return the fault in one line."""
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    if isinstance(error, yaml.MarkedYAMLError) and error.problem:
        where = f"{_place(error.problem_mark)}: " if error.problem_mark else ""
        begun = error.problem.startswith("but ") and error.context
        return (
            f"{where}{error.context}, {error.problem}"
            if begun
            else (f"{where}{error.problem}")
        )
    if isinstance(error, (AttributeError, LookupError, TypeError)):
        return "a value is not what its tag says"
    return str(error).split("\n", 1)[0].split(";", 1)[0]


class _Loader(yaml.SafeLoader):
    """Reads plain values, and refuses a key that is given twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> Any:
        seen = set()
        for key, _ in node.value:
            # A mapping may merge several others.
            if not isinstance(key, yaml.ScalarNode) or key.tag == MERGE:
                continue
            if key.value in seen:
                raise YamlError(
                    f"{_place(key.start_mark)}: {shown(key.value)} is given twice"
                )
            seen.add(key.value)
        return super().construct_mapping(node, deep)


def load(text: str) -> Any:
    """Return what a text says, None if it says nothing.

    Raises:
        YamlError: It is no YAML, or none that settings are written in.
    """
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        # Deep: what holds itself is refused.
        return None if node is None else loader.construct_object(node, deep=True)
    except YamlError:
        raise
    except UNREADABLE as error:
        raise YamlError(_why(error)) from error


def read(path: str) -> Any:
    """Return what a file says, None if it says nothing.

    Raises:
        YamlError: It cannot be read, or is no YAML that settings are written in.
    """
    if not path.strip():
        raise YamlError("the name of a file is needed")
    try:
        # Path.expanduser raises where there is no such user.
        path = os.path.expanduser(path)  # noqa: PTH111
        with Path(path).open(encoding="utf-8-sig") as file:
            text = file.read(MAX_CHARS + 1)
    except OSError as error:
        raise YamlError(error.strerror or str(error)) from error
    except UnicodeDecodeError as error:
        raise YamlError("it is no text in UTF-8") from error
    except ValueError as error:  # a NUL in the name
        raise YamlError(str(error)) from error
    if len(text) > MAX_CHARS:
        raise YamlError(f"it is longer than {MAX_CHARS} characters")
    return load(text)
