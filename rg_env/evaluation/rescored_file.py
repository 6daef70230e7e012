"""The file of `rescore`: a line for each sample, continued where it ended.

A sample that no scorer gave a score is not written, and is tried again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from rg_env.errors import SettingError, shown
from rg_env.evaluation.samples import Sample
from rg_env.rollouts.json_encoding import readable
from rg_env.rollouts.line_file import LineFile
from rg_env.scoring.score import UNSCORED

WRITTEN = {"source", "place", "task", "question", "score", "scores"}
WRITTEN |= {"outcome", "reasoning_gym"}

TRIED_AGAIN = frozenset({"timeout", UNSCORED})
"""Outcomes of samples that may have a score the next time."""


def is_tried_again(row: Mapping[str, Any]) -> bool:
    """Return whether a sample has no score but may get one at the next attempt."""
    return row["score"] is None and row["outcome"] in TRIED_AGAIN


class RescoredFile:
    """Samples that were scored again; each is on disk when `write` returns.

    Args:
        path: The file; what it holds stays.

    Raises:
        OSError: The disk refuses it, or another process is writing it.
    """

    def __init__(self, path: Path, version: str) -> None:
        self._path, self._version = path, version
        self._file = LineFile(path)
        self._done: set[tuple[str, str]] = set()

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield what it holds; to be read to its end before anything is written.

        Raises:
            SettingError: It holds something else, or was made with another library.
        """
        self._file.end = 0
        with self._path.open("rb") as lines:
            for number, line in enumerate(lines):
                is_whole = line.endswith(b"\n")
                if number and not is_whole:
                    return  # torn by a kill; the next line takes its place
                try:
                    row = json.loads(line) if is_whole else {}  # perhaps not ours
                    version = row.keys() >= WRITTEN and row["reasoning_gym"]
                except (ValueError, RecursionError, AttributeError):
                    version = None
                if version != self._version:
                    what = f"line {number + 1} of {shown(str(self._path))}"
                    made = (
                        f"of reasoning-gym {shown(version)}" if version else "foreign"
                    )
                    raise SettingError(f"--out: {what} is {made}; choose another file")
                self._file.end += len(line)
                if is_tried_again(row):
                    continue  # of a version that wrote them
                self._done.add((row["source"], row["place"]))
                yield row

    def missing(self, samples: Iterable[Sample]) -> list[Sample]:
        """Return the samples that it does not hold."""
        return [
            s for s in samples if (s.row["source"], s.row["place"]) not in self._done
        ]

    def write(self, samples: Iterable[Sample]) -> None:
        """Append samples, but those that are tried again.

        Raises:
            OSError: The disk does not take them; no part of a line is in the file.
        """
        for sample in samples:
            if not is_tried_again(sample.row):
                self._file.append(readable(sample.row) + b"\n")

    def close(self) -> None:
        """Close the file; remove it if it holds nothing."""
        self._file.close()
