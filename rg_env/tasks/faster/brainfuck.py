"""bf: the output of a program.

The library's interpreter looks at one instruction at a time, a hundred thousand for
an item of the highest level. Here its instructions become a function of Python.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

MOST_NESTED = 15
"""Loops within loops; Python's own limit is 20 blocks."""


def _written(opcodes: Sequence[Any], codes: Any) -> str | None:
    """Return the function `run(tape, out)` as text, made of the opcodes' numbers alone.

    Args:
        opcodes: As `bfi.parse` returns them.
        codes: The module that names the values of `code`.

    Returns:
        The text; None if the program reads input or nests its loops too deep.
    """
    depth = 1
    lines = ["def run(tape, out):", " at = 0"]

    def line(text: str) -> None:
        lines.append(" " * depth + text)

    for opcode in opcodes:
        code, value = opcode.code, opcode.value
        if code == codes.OPCODE_MOVE:
            line(f"at += {value:d}")
            continue
        if opcode.move:
            line(f"at += {opcode.move:d}")
        if code == codes.OPCODE_ADD:
            line(f"tape[at] = tape[at] + {value:d} & 255")
        elif code == codes.OPCODE_SUB:
            line(f"tape[at] = tape[at] - {value:d} & 255")
        elif code == codes.OPCODE_OPEN and depth <= MOST_NESTED:
            line("while tape[at]:")
            depth += 1
            line("pass")
        elif code == codes.OPCODE_CLOSE:
            depth -= 1
        elif code == codes.OPCODE_OUTPUT:
            line("out(tape[at])")
        elif code == codes.OPCODE_CLEAR:
            line("tape[at] = 0")
        elif code == codes.OPCODE_COPY:
            line("if tape[at]:")
            for offset, factor in value.items():
                there = f"tape[at + {offset:d}]"
                line(f" {there} = {there} + tape[at] * {factor:d} & 255")
            line(" tape[at] = 0")
        elif code == codes.OPCODE_SCANL:
            line("while at > 0 and tape[at]: at -= 1")
        elif code == codes.OPCODE_SCANR:
            line(f"while at < {len(opcodes) - 1:d} and tape[at]: at += 1")
        else:
            return None
    return "\n".join(lines)


def make_execute(own: Any) -> Callable[..., Any]:
    """Return `execute`, faster for programs whose output is asked for as text."""
    codes = importlib.import_module("bfi")

    def execute(
        opcodes: Sequence[Any],
        input_data: Any = None,
        time_limit: float | None = None,
        tape_size: int = 30000,
        buffer_output: bool = False,
        write_byte: Any = None,
        read_byte: Any = None,
    ) -> Any:
        asked = (input_data, time_limit, write_byte, read_byte)
        text = None
        if buffer_output and all(each is None for each in asked):
            text = _written(opcodes, codes)
        if text is None:
            return own(
                opcodes,
                input_data,
                time_limit,
                tape_size,
                buffer_output,
                write_byte,
                read_byte,
            )
        names: dict[str, Any] = {}
        exec(text, {}, names)  # noqa: S102 - all that varies in it are whole numbers
        output: list[int] = []
        names["run"](bytearray(tape_size), output.append)
        return "".join(map(chr, output))

    return execute
