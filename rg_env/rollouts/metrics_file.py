"""The numbers of a run on this machine: one JSON object a line, a line each log.

The names are those of W&B, without the one that the framework puts before them.

{"step": 12, "time": "2026-01-31T12:00:00+00:00", "kind": "serve",
 "train/mean_score": 0.54, "outcomes/right": 0.51, ...,
 "alarms": [["no_variance", "gcd", 1, "32 groups in a row of ...", ["..."]]]}

`alarms`, where one has rung since the last line, has all of the run: name, task, count,
newest sentence and examples.
"""

from __future__ import annotations

import logging
import math
import numbers
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from rg_env.rollouts.json_encoding import readable
from rg_env.rollouts.line_file import LineFile

logger = logging.getLogger(__name__)


def line_of(
    step: int, kind: str, values: Mapping[str, Any], alarms: Sequence[Any] = ()
) -> bytes:
    """Return a line: of the values those that are finite numbers, tables are not."""
    now = datetime.now(timezone.utc).isoformat(timespec="seconds")
    line: dict[str, Any] = {"step": step, "time": now, "kind": kind}
    for name, value in values.items():
        if isinstance(value, numbers.Real) and math.isfinite(value):
            number = float(value)  # of numpy perhaps
            line.setdefault(name, int(number) if number.is_integer() else number)
    if alarms:
        line["alarms"] = alarms
    return readable(line) + b"\n"


class MetricsFile:
    """Appends lines, each on disk when `write` returns; what is refused is lost.

    Calls block on the disk, so they belong off the event loop, one at a time.

    Args:
        path: The file, made with its folder at the first line.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: LineFile | None = None
        self._has_refused = False

    def write(self, line: bytes) -> None:
        """Append a line; that the disk refuses one is said once."""
        try:
            self._file = self._file or LineFile(self.path)
            self._file.restore()
            self._file.append(line)
        except OSError as error:
            if not self._has_refused:
                logger.error("%s takes no metrics (%s)", self.path, error)
            self._has_refused = True

    def close(self) -> None:
        """Close it; may be called twice."""
        if self._file is not None:
            self._file.close()
            self._file = None
