"""The folder of an evaluation: its settings, its samples, and then its metrics."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from rg_env.executor import in_thread
from rg_env.group_encoding import encode_group
from rg_env.line_file import LineFile
from rg_env.places import check_writable
from rg_env.results.result_file import SAMPLES, ResultFile, read_lines, result_files
from rg_env.results.samples import Row
from rg_env.results.terminal import WorkProgress
from rg_env.reward.score import UNSCORED
from rg_env.run.group import Group
from rg_env.run.group_loop import Lost
from rg_env.settings.setting_checks import Affects

logger = logging.getLogger(__name__)

METRICS_FILE = "metrics.json"

MAY_DIFFER = (Affects.NOTHING, Affects.FEEDBACK, Affects.ROWS)
"""Settings that affect these may change before an evaluation is continued."""


def _identity(row: Row) -> str:
    """Return the fields of a line that identify its completion."""
    names = ("task", "seed", "index", "question", "completion")
    return json.dumps([row.get(name) for name in names])


def _read_scored(file: LineFile) -> dict[str, Row]:
    """Return the scored samples of a file by `_identity`.

    Sets the file's `end` behind the last one, so the next line overwrites the samples
    without a score, which come last: their completions are requested again.
    """
    scored: dict[str, Row] = {}
    file.end = 0
    for end, row in read_lines(file.path, dict[str, Any]):
        if row.get("score") is not None:
            row.pop("messages", None)  # not needed in memory
            scored[_identity(row)] = row
            file.end = end
    return scored


class EvaluationFiles:
    """Writes the folder of one evaluation.

        evaluate_config.yaml    the settings and versions, with the first sample
        samples.jsonl           a line for each completion, as it is scored
        metrics.json            the metrics, after all samples

    `evaluate` continues a folder that lacks `metrics.json` if the versions, the models
    and all settings that affect items, completions or scores, also those of training,
    are the same. Otherwise an existing evaluation is left unchanged, and the new one is
    written to `folder_1`.

    It is the sink of an evaluation's groups. `source_info` of a group is the index of
    its completion in `planned`.

    Args:
        folder: The folder to write; None to save nothing.
        settings: The settings of the run, as YAML.
        planned: The fields of each line that are known before its completion, shape
            (N * k,).
        may_continue: Whether an earlier evaluation may be continued, and the folder
            must be writable. False in `serve`, whose model has changed since.
        has_tokens: Whether numbers of tokens are known.

    Attributes:
        missing: Indices of the completions that are still to be requested.
        progress: Shows the number of completions. The caller sets it.
    """

    progress: WorkProgress

    def __init__(
        self,
        folder: str | None,
        settings: str,
        planned: Sequence[Row],
        *,
        may_continue: bool,
        has_tokens: bool,
    ) -> None:
        self._folder = folder
        self._settings = settings
        self._planned = planned
        self._may_continue = may_continue
        self._has_tokens = has_tokens
        self._file: ResultFile | None = None
        self._rows: dict[int, Row] = {}
        self._scores: list[float] = []
        self.missing: list[int] = []

    async def __aenter__(self) -> EvaluationFiles:
        """Begin the evaluation, or continue one that was interrupted."""
        scored = {}
        if self._folder is not None:
            scored = await in_thread(self._open, Path(self._folder))
        for index, row in enumerate(self._planned):
            saved = scored.get(_identity(row)) if scored else None
            if saved is None:
                self.missing.append(index)
            else:
                self._rows[index] = {**saved, **row}
                self._scores.append(float(saved["score"]))
        return self

    @property
    def rows(self) -> list[Row]:
        """The lines so far, without messages, in the order of `planned`."""
        return [row for _, row in sorted(self._rows.items())]

    async def __aexit__(self, kind: object, error: object, traceback: object) -> None:
        """Close the samples; log where they are if the evaluation was interrupted."""
        if self._file is None:
            return
        self._file.close()
        if isinstance(error, asyncio.CancelledError) and self._scores:
            self._log_end("was interrupted", self._file)

    def _log_end(self, how: str, file: LineFile) -> None:
        folder = file.path.parent
        written = len(self._scores) - len(file.queued) - file.lost
        samples = f"{written} of {len(self._planned)} samples are in {folder}"
        option = f"--env.data_dir_to_save_evals {folder}"
        hint = f"; {option} continues it" if self._may_continue else ""
        logger.warning("the evaluation %s: %s%s", how, samples, hint)

    def _open(self, wanted: Path) -> dict[str, Row]:
        """Lock the first folder that is free, or whose evaluation can be continued.

        Returns:
            The scored samples in it, by `_identity`.
        """
        may_differ = MAY_DIFFER if self._may_continue else None
        for file in result_files(wanted, self._settings, may_differ, SAMPLES):
            self._file = file
            if not file.end or not file.path.with_name(METRICS_FILE).exists():
                break
        if self._may_continue:
            check_writable("env.data_dir_to_save_evals", file.path)
        scored = _read_scored(file) if file.is_open else {}
        counts = f"{len(scored)} of {len(self._planned)}"
        logger.info("samples go to %s: %s are there", file.path.parent, counts)
        return scored

    async def take(self, group: Group) -> None:
        """Write the sample of a scored completion.

        If the disk does not take it, it waits in memory.
        """
        (rollout,) = group.rollouts
        # A subclass may have queried by itself.
        has_tokens = self._has_tokens and rollout.conversation
        row = {
            **self._planned[group.source_info],
            "answer": rollout.answer,
            "score": rollout.score,
            "outcome": rollout.outcome,
            "finish_reason": rollout.finish_reason,
            "prompt_tokens": rollout.prompt_tokens if has_tokens else None,
            "completion_tokens": rollout.completion_tokens if has_tokens else None,
        }
        line = row
        if rollout.conversation:
            line = {**row, "messages": list(rollout.conversation)}
        await in_thread(self._write, [line])
        self._scores.append(rollout.score)
        self._note(group, row)

    async def give_up(self, group: Group, why: Exception) -> None:
        """Note a completion that has no score."""
        outcome = "request_failed" if isinstance(why, Lost) else UNSCORED
        planned = self._planned[group.source_info]
        self._note(group, {**planned, "outcome": outcome, "reason": str(why)})

    def _note(self, group: Group, row: Row) -> None:
        self._rows[group.source_info] = row
        scores = self._scores
        self.progress.advance(f"mean score {fmean(scores):.3f}" if scores else "")

    def _write(self, samples: Iterable[Row]) -> None:
        if self._file is not None:
            for sample in samples:
                self._file.append_or_queue(encode_group(sample) + b"\n")

    async def finish(self, rows: Sequence[Row], *, gave_up: bool) -> Path | None:
        """Write the samples without a score; return the folder if all are on disk.

        Nothing is written for an evaluation without any score. If `gave_up`, some
        requests were given up, and the evaluation can be continued.
        """
        if self._file is None or not self._scores:
            return None
        await in_thread(self._write, [row for row in rows if row.get("score") is None])
        if gave_up or self._file.queued or self._file.lost:
            how = "was given up" if gave_up else "lacks what the disk has refused"
            self._log_end(how, self._file)
            return None
        return self._file.path.parent
