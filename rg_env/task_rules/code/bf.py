"""bf: runs loops that only add to cells in one step.

The programs copy cells with loops such as `[<+>-]`. The library recognizes only loops
that go to the right, and takes a hundred thousand steps for the others in an item of
the highest level.
"""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rg_env.task_rules.rules import FasterFunction, TaskRules


def _read_copies(
    bfi: Any, body: Sequence[Any], last_move: int
) -> Mapping[int, int] | None:
    """Return how often a loop adds its first cell to others, by their distance.

    It is None for a loop that does anything else.
    """
    signs = {bfi.OPCODE_ADD: 1, bfi.OPCODE_SUB: -1}
    offset = 0
    added: Counter[int] = Counter()
    for opcode in body:
        if opcode.code == bfi.OPCODE_MOVE:
            offset += opcode.value
        elif opcode.code in signs:
            offset += opcode.move
            added[offset] += signs[opcode.code] * opcode.value
        else:
            return None
    is_counted_down = added.pop(0, 0) == -1
    return added if is_counted_down and offset + last_move == 0 else None


def _make_parse(original: Any) -> Callable[[str], list[Any]]:
    """Return a `parse` that recognizes copying loops in all directions."""
    bfi = importlib.import_module("bfi")

    def parse(program: str) -> list[Any]:
        parsed = original(program)
        # The range of a scan depends on the number of opcodes.
        if any(opcode.code == bfi.OPCODE_SCANR for opcode in parsed):
            return list(parsed)
        opcodes: list[Any] = []
        loop_starts = []
        for opcode in parsed:
            if opcode.code == bfi.OPCODE_OPEN:
                loop_starts.append(len(opcodes))
            elif opcode.code == bfi.OPCODE_CLOSE:
                start = loop_starts.pop()
                added = _read_copies(bfi, opcodes[start + 1 :], opcode.move)
                if added is not None:
                    opcodes[start:] = [bfi.Opcode(bfi.OPCODE_COPY, 0, added)]
                    continue
                opcodes[start].value = len(opcodes)
                opcode.value = start
            opcodes.append(opcode)
        return opcodes

    return parse


BF = TaskRules(
    "bf",
    faster=(
        FasterFunction(
            module="bfi", name="parse", digest="41b60155a91ffb77", make=_make_parse
        ),
    ),
)
