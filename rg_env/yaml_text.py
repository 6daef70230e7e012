"""YAML as people write it into a file or an option, and why it cannot be used.

Read with care for what is easily written by mistake, and what a file from elsewhere may
hold: a key that is given twice, aliases that multiply, more than fits into memory.
"""

from __future__ import annotations

import os
import select
from typing import Any

import yaml

from rg_env.errors import shown

MAX_BYTES = 2**20
"""Longer than any settings are."""

MAX_VALUES = 100_000
"""Values of a text, each alias counted for all that it stands for."""

UNREADABLE = (
    yaml.YAMLError,
    ValueError,
    RecursionError,
    # What the library's constructors raise for a value that its tag does not fit.
    AttributeError,
    LookupError,
    TypeError,
)

PIPE_PATIENCE_S = 5.0

MERGE = "tag:yaml.org,2002:merge"


class YamlFault(ValueError):
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


def _refuse_repeated_keys(node: yaml.MappingNode) -> None:
    seen = set()
    for key, _ in node.value:
        if not isinstance(key, yaml.ScalarNode) or key.tag == MERGE:
            continue
        if key.value in seen:
            raise YamlFault(
                f"{_place(key.start_mark)}: {shown(key.value)} is given twice"
            )
        seen.add(key.value)


def _count(node: yaml.Node, counted: dict[int, int], around: frozenset[int]) -> int:
    """Return how many values a node stands for, aliases written out.

    Raises:
        YamlFault: There are too many, a node holds itself or a key twice.
    """
    own = id(node)
    if own in around:
        raise YamlFault(f"{_place(node.start_mark)}: it holds itself")
    if own not in counted:
        parts: list[yaml.Node] = []
        if isinstance(node, yaml.MappingNode):
            _refuse_repeated_keys(node)
            parts = [part for pair in node.value for part in pair]
        elif isinstance(node, yaml.SequenceNode):
            parts = node.value
        inside = around | {own} if parts else around
        counted[own] = 1 + sum(_count(part, counted, inside) for part in parts)
        if counted[own] > MAX_VALUES:
            raise YamlFault(f"it holds more than {MAX_VALUES} values")
    return counted[own]


def load(text: str) -> Any:
    """Return what a text says, None if it says nothing.

    Raises:
        YamlFault: It is no YAML, or none that settings are written in.
    """
    if len(text) > MAX_BYTES:
        raise YamlFault(f"it is longer than {MAX_BYTES} characters")
    try:
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        if node is None:
            return None
        _count(node, {}, frozenset())
        return loader.construct_document(node)
    except YamlFault:
        raise
    except UNREADABLE as error:
        raise YamlFault(_why(error)) from error


def _bytes_of(path: str) -> bytes:
    """Return the beginning of a file, a byte more than may be.

    What comes through a pipe, as from <(...), is waited for a while.

    Raises:
        YamlFault: Nothing comes.
    """
    raw = b""
    # Not blocking: to open a pipe that nobody writes to would take for ever.
    path = os.path.expanduser(path)  # noqa: PTH111 - Path raises where there is no user
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        while len(raw) <= MAX_BYTES:
            if not select.select([file], [], [], PIPE_PATIENCE_S)[0]:
                raise YamlFault(f"nothing came through it in {PIPE_PATIENCE_S:g} s")
            part = os.read(file, MAX_BYTES + 1 - len(raw))
            if not part:
                break
            raw += part
    finally:
        os.close(file)
    return raw


def read(path: str) -> Any:
    """Return what a file says, None if it says nothing.

    Raises:
        YamlFault: It cannot be read, or is no YAML that settings are written in.
    """
    if not path.strip():
        raise YamlFault("the name of a file is needed")
    try:
        return load(_bytes_of(path).decode("utf-8-sig"))
    except OSError as error:
        raise YamlFault(error.strerror or str(error)) from error
    except UnicodeDecodeError as error:
        raise YamlFault("it is no text in UTF-8") from error
    except YamlFault:
        raise
    except ValueError as error:  # a NUL in the name
        raise YamlFault(str(error)) from error
