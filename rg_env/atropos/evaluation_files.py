"""The folder of one evaluation: each sample on disk when it comes, then the numbers.

    evaluate_config.yaml    the settings and versions, with the first sample
    samples.jsonl           a line for each completion, in the order of their scoring
    metrics.json            the numbers, once all samples are on disk

A folder without `metrics.json` contains an interrupted evaluation. `evaluate` continues
it if the settings that affect items, completions and scores are the same. It also
continues an evaluation that lacks scores because workers failed. The folder is locked
while it is written. Otherwise the existing evaluation is left unchanged, and the new
one goes to `folder_1`.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path

from rg_env.atropos.rows import RowWriter
from rg_env.evaluation.samples import Row, read_rows
from rg_env.off_loop import off_loop
from rg_env.rollouts.line_file import LineFile, continued
from rg_env.scoring.score import UNSCORED
from rg_env.settings import kept_settings
from rg_env.settings.environment_settings import OF_EVALUATION, deciding

logger = logging.getLogger(__name__)

METRICS, SAMPLES, SETTINGS = "metrics.json", "samples.jsonl", "evaluate_config.yaml"

DECIDING = deciding(*OF_EVALUATION)
"""Settings of the environment that decide an evaluation, or might."""


class EvaluationFiles:
    """Writes the files of one evaluation.

    Args:
        wanted: `data_dir_to_save_evals`; None keeps nothing.
        settings: What is written beside the samples, as YAML.
        completions: Number of completions that the evaluation needs.
        resumes: Whether an evaluation that was ended may be continued; not in `serve`,
            where the model has learned since.

    Attributes:
        done: Samples that an earlier run has left.
    """

    def __init__(
        self, wanted: str | None, settings: str, completions: int, *, resumes: bool
    ) -> None:
        self._wanted, self._settings = wanted, settings
        self._completions, self._resumes = completions, resumes
        self._folder: Path | None = None
        self._file: LineFile | None = None
        self._rows: RowWriter | None = None
        self._waiting: list[Row] = []
        self._error: OSError | None = None
        self._kept = 0
        self.done: Sequence[Row] = ()

    async def __aenter__(self) -> EvaluationFiles:
        """Begin the evaluation, or continue one that was ended."""
        if self._wanted is not None and self._resumes:
            await off_loop(self._find_ended)
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *error: object) -> None:
        """Close the samples; say where they are if the evaluation was interrupted."""
        if self._rows is not None:
            await off_loop(self._rows.close)
            if kind is not None and issubclass(kind, asyncio.CancelledError):
                self._say_ended("was interrupted")
        if self._file is not None:
            self._file.close()

    def _say_ended(self, how: str) -> None:
        written = len(self.done) + self._kept - len(self._waiting)
        found = f"{written} of {self._completions} samples"
        logger.warning("the evaluation %s: %s are in %s", how, found, self._folder)
        if self._resumes:
            option = f"--env.data_dir_to_save_evals {self._folder}"
            logger.warning("the same command with %s continues it", option)

    def _folders(self) -> Iterator[Path]:
        wanted = str(self._wanted)
        numbered = (f"{wanted.rstrip('/')}_{number}" for number in itertools.count(1))
        return map(Path, itertools.chain([wanted], numbered))

    def _find_ended(self) -> None:
        """Find an evaluation of these settings that was ended, and lock it."""
        for folder in self._folders():
            if not (folder / SAMPLES).exists():
                return
            if not self._is_ended(folder):
                continue
            try:
                file = continued(folder / SAMPLES)
                rows = read_rows(folder / SAMPLES)
            except BlockingIOError:
                continue  # another process writes it
            except OSError as error:
                self._say_refused(error, "it is not continued")
                continue
            self._folder, self._file = folder, file
            self.done = [row for row in rows if row.get("score") is not None]
            logger.info(
                "continuing the evaluation in %s: %d of %d samples are there",
                *(folder, len(self.done), self._completions),
            )
            return

    def _is_ended(self, folder: Path) -> bool:
        numbers = folder / METRICS
        if numbers.exists() and not _lacks_scores(numbers):
            return False
        beside = folder / SETTINGS
        return not kept_settings.why_not(beside, self._settings, DECIDING)

    async def keep(self, sample: Row) -> None:
        """Write a sample; while the disk takes none they wait in memory."""
        self._kept += 1
        if self._wanted is not None:
            self._waiting.append(sample)
            await off_loop(self._write_waiting)

    def _write_waiting(self) -> None:
        try:
            if self._rows is None:
                self._rows = self._open()
            # A sample leaves the list when it is on disk, so a refusal loses none.
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
        if self._file is None:
            self._folder = self._claimed()
            self._file = LineFile(self._folder / SAMPLES)
        beside = self._file.path.with_name(SETTINGS)
        beside.write_text(self._settings, encoding="utf-8")
        return RowWriter(self._file)

    def _claimed(self) -> Path:
        """Create and return the first folder that contains no evaluation."""
        for folder in self._folders():
            folder.mkdir(parents=True, exist_ok=True)
            # Of two processes that start at once, only one makes the file.
            with contextlib.suppress(FileExistsError):
                (folder / SAMPLES).open("xb").close()
                return folder
        raise AssertionError("there is no last number")

    async def finish(
        self,
        rows: Sequence[Row],
        write_numbers: Callable[[Path], Awaitable[None]] | None,
    ) -> bool:
        """Write the samples that have no score, and then the numbers.

        Nothing is written of an evaluation without any score.

        Args:
            rows: Of all completions; those without a score are written.
            write_numbers: Writes them into a folder; None where requests were given up,
                so that the evaluation can be continued.

        Returns:
            Whether everything that was wanted is on disk; if not, it is said.
        """
        if self._wanted is None or not (self._kept or self.done):
            return True
        self._waiting += [row for row in rows if row.get("score") is None]
        await off_loop(self._write_waiting)
        if self._waiting or self._folder is None:
            kept = self._completions - len(self._waiting)
            wanted = self._completions
            logger.error("only %d of %d samples were written", kept, wanted)
            return False
        if write_numbers is None:
            self._say_ended("was given up")
            return False
        try:
            await write_numbers(self._folder)
        except OSError as error:
            # Half a file would make the evaluation a complete one.
            (self._folder / METRICS).unlink(missing_ok=True)
            self._say_refused(error, "there are no numbers")
            return False
        if self._resumes and any(row["outcome"] == UNSCORED for row in rows):
            self._say_ended("lacks scores")
        logger.info("results: %s", self._folder)
        return True


def _lacks_scores(numbers: Path) -> bool:
    """Say whether completions are missing there because workers gave no score."""
    try:
        found = json.loads(numbers.read_text(encoding="utf-8"))["results"]["all"]
        return bool(found.get(f"eval/outcome/{UNSCORED}"))
    except (OSError, ValueError, LookupError, AttributeError, TypeError):
        return False
