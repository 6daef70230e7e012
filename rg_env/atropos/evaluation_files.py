"""The folder of one evaluation: each sample on disk when it comes, then the numbers.

    evaluate_config.yaml    the settings, with the first sample
    samples.jsonl           a line for each item, in the order in which they are scored
    metrics.json            the numbers, once all samples are on disk

A folder that holds an evaluation is left as it is: the next one goes into `folder_1`.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rg_env.off_loop import off_loop
from rg_env.reports.evaluation_summary import EvalResult
from rg_env.rollouts.row_writer import RowWriter

logger = logging.getLogger(__name__)

METRICS, SAMPLES, SETTINGS = "metrics.json", "samples.jsonl", "evaluate_config.yaml"


class EvaluationFiles:
    """Writes the files of one evaluation.

    Args:
        wanted: `data_dir_to_save_evals`; None keeps nothing.
        settings: What is written beside the samples.
        items: To be evaluated.
    """

    def __init__(self, wanted: str | None, settings: str, items: int) -> None:
        self._wanted, self._settings, self._items = wanted, settings, items
        self._folder: Path | None = None
        self._rows: RowWriter | None = None
        self._waiting: list[Mapping[str, Any]] = []
        self._error: OSError | None = None

    async def __aenter__(self) -> EvaluationFiles:
        """Begin the evaluation."""
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *error: object) -> None:
        """Close the samples; say where they are if the evaluation was interrupted."""
        if self._rows is None:
            return
        await off_loop(self._rows.close)
        if kind is not None and issubclass(kind, asyncio.CancelledError):
            found = f"{self._rows.rows} of {self._items} samples are in {self._folder}"
            logger.warning("the evaluation was interrupted: %s", found)

    async def keep(self, sample: Mapping[str, Any]) -> None:
        """Write a sample; while the disk takes none they wait in memory."""
        if self._wanted is not None:
            self._waiting.append(sample)
            await off_loop(self._write_waiting)

    def _write_waiting(self) -> None:
        try:
            if self._rows is None:
                self._rows = self._open()
            while self._waiting:
                self._rows.write(self._waiting[0])
                del self._waiting[0]
        except OSError as error:
            if self._error is None:
                self._say_refused(error, "samples wait in memory")
            self._error = error

    def _say_refused(self, error: OSError, so: str) -> None:
        where = self._folder or self._wanted
        logger.error("env.data_dir_to_save_evals: %s: %s; %s", where, error, so)

    def _open(self) -> RowWriter:
        self._folder = self._folder or self._claimed(str(self._wanted))
        (self._folder / SETTINGS).write_text(self._settings, encoding="utf-8")
        return RowWriter(self._folder / SAMPLES)

    @staticmethod
    def _claimed(wanted: str) -> Path:
        """Return the first folder that holds no evaluation, and no other will take."""
        numbered = (f"{wanted.rstrip('/')}_{number}" for number in itertools.count(1))
        for folder in map(Path, itertools.chain([wanted], numbered)):
            folder.mkdir(parents=True, exist_ok=True)
            with contextlib.suppress(FileExistsError):
                (folder / SAMPLES).open("xb").close()
                return folder
        raise AssertionError("there is no last number")

    async def finish(
        self,
        results: Sequence[EvalResult],
        write_numbers: Callable[[Path], Awaitable[None]],
    ) -> bool:
        """Write the samples that have no score, and then the numbers.

        Nothing is written of an evaluation without any score.

        Args:
            results: Of all items.
            write_numbers: Writes them into a folder.

        Returns:
            Whether everything that was wanted is on disk; if not, it is said.
        """
        if self._wanted is None or all(result.score is None for result in results):
            return True
        self._waiting += [result.sample for result in results if result.score is None]
        await off_loop(self._write_waiting)
        if self._waiting or self._folder is None:
            kept = self._items - len(self._waiting)
            logger.error("only %d of %d samples were written", kept, self._items)
            return False
        try:
            await write_numbers(self._folder)
        except OSError as error:
            (self._folder / METRICS).unlink(missing_ok=True)
            self._say_refused(error, "there are no numbers")
            return False
        logger.info("results: %s", self._folder)
        return True
