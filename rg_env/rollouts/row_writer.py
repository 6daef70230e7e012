"""The JSONL file of `process`: one row a group, each on disk when it is written."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rg_env.off_loop import release_gil
from rg_env.rollouts.json_encoding import encode_group, quick, readable
from rg_env.rollouts.line_file import LineFile

logger = logging.getLogger(__name__)

TOKEN_LISTS = ("tokens", "masks", "inference_logprobs")


def settings_path(rows: Path) -> Path:
    """Return where the settings stand that a file of rows was made with."""
    return rows.with_name(f"{rows.name}.settings.yaml")


class RowWriter:
    """Appends rows to a JSONL file, each on disk when `write` returns.

    It stands in for the framework's writer, which buffers and fails on lone surrogates.

    Args:
        file: Where they go.
        made: Folders that were made for it, inner ones first; they go with a file that
            holds nothing.

    Attributes:
        wanted: The name in the settings, which may have been taken.
        settings: What is written beside a file with its first row; None for nothing.
        rows_lost: Rows that the disk did not take.
        with_tokens: Whether rows have their lists of tokens.
    """

    def __init__(self, file: LineFile, made: Sequence[Path] = ()) -> None:
        self._made = made
        self._file = file
        self.wanted = file.path
        self.settings: str | None = None
        self.rows = self.rows_lost = 0
        self.with_tokens = True

    @property
    def path(self) -> Path:
        """Where the rows go."""
        return self._file.path

    def say_where(self) -> None:
        """Log where the rows go, if the name in the settings was taken."""
        if self.path != self.wanted:
            logger.info("%s exists: rows go to %s", self.wanted, self.path)

    def continue_in(self, file: LineFile) -> None:
        """Write to a file that was left instead of this one, which holds nothing."""
        self.close()
        self._made, self._file = (), file

    def write(self, row: Mapping[str, Any]) -> None:
        """Write one row: what people read first, the token lists last.

        Blocks on the disk, and on a long row for a while, and releases the GIL.

        Raises:
            OSError: The disk does not take it; nothing of it is in the file.
        """
        lists = {key: row[key] for key in TOKEN_LISTS if key in row}
        first = {key: value for key, value in row.items() if key not in lists}
        last = lists if self.with_tokens else {}
        # `readable` keeps every text; the lists are numbers, and `quick` is faster.
        head = encode_group(first, readable)
        tail = encode_group(last, quick, release_gil)
        comma = b", " if first and last else b""
        try:
            self._file.restore()
            if self._file.end == 0 and self.settings is not None:
                settings_path(self.path).write_text(self.settings, encoding="utf-8")
            self._file.append(b"%s%s%s\n" % (head[:-1], comma, tail[1:]))
        except OSError:
            self.rows_lost += 1
            raise
        self.rows += 1

    def close(self) -> None:
        """Close the file, and remove it if it holds nothing; may be called twice."""
        self._file.close()
        for folder in self._made:
            with contextlib.suppress(OSError):  # it holds something
                folder.rmdir()
