"""The folder of an evaluation: its settings, its samples, and then its numbers."""

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

NUMBERS = "metrics.json"


def _key_of(row: Row) -> str:
    """Return what two lines about one completion have in common."""
    names = ("task", "seed", "index", "question", "completion")
    return json.dumps([row.get(name) for name in names])


def _scored(file: LineFile) -> dict[str, Row]:
    """Return the scored samples by their keys; the next line replaces what follows.

    Those without a score come last, and are tried again.
    """
    found: dict[str, Row] = {}
    file.end = 0
    for end, row in read_lines(file.path, dict[str, Any]):
        if row and row.get("score") is not None:
            row.pop("messages", None)  # which need not be in memory
            found[_key_of(row)] = row
            file.end = end
    return found


class EvaluationFiles:
    """Writes the folder of one evaluation.

        evaluate_config.yaml    the settings and versions, with the first sample
        samples.jsonl           a line for each completion, as it is scored
        metrics.json            the numbers, once all samples are on disk

    `evaluate` continues a folder that lacks `metrics.json` if the settings that affect
    items, completions and scores are the same. Otherwise an existing evaluation is left
    unchanged, and the new one goes to `folder_1`.

    It is the sink of an evaluation's groups: `source_info` of a group is the index of
    its completion.

    Args:
        wanted: The folder; None keeps nothing.
        settings: Those of the run, as YAML.
        known: The fields of each line before its completion, shape (N * k,).
        resumes: Whether an evaluation may be continued, and fails if it cannot be kept;
            not in `serve`, where the model has learned since.
        has_tokens: Whether numbers of tokens are known.

    Attributes:
        missing: Places of the completions that no earlier run has left.
    """

    progress: WorkProgress

    def __init__(
        self,
        wanted: str | None,
        settings: str,
        known: Sequence[Row],
        *,
        resumes: bool,
        has_tokens: bool,
    ) -> None:
        self._wanted = wanted
        self._settings = settings
        self._resumes = resumes
        self._has_tokens = has_tokens
        self._file: ResultFile | None = None
        self.known = known

    async def __aenter__(self) -> EvaluationFiles:
        """Begin the evaluation, or continue one that was ended."""
        scored = {}
        if self._wanted is not None:
            scored = await in_thread(self._begin, Path(self._wanted))
        self._rows: dict[int, Row] = {
            place: {**scored[key], **row}
            for place, row in enumerate(self.known)
            if (key := _key_of(row)) in scored
        }
        self._scores = [float(row["score"]) for row in self.rows]
        self.missing = [i for i in range(len(self.known)) if i not in self._rows]
        return self

    @property
    def rows(self) -> list[Row]:
        """The lines that there are, without messages, in the order of `known`."""
        return [row for _, row in sorted(self._rows.items())]

    async def __aexit__(self, kind: type[BaseException] | None, *error: object) -> None:
        """Close the samples; say where they are if the evaluation was interrupted."""
        if self._file is None:
            return
        self._file.close()
        is_cancelled = kind is not None and issubclass(kind, asyncio.CancelledError)
        if is_cancelled and self._scores:
            self._log_end("was interrupted", self._file)

    def _log_end(self, how: str, file: LineFile) -> None:
        folder = file.path.parent
        refused = len(file.queued) + file.lost
        there = f"{len(self._scores) - refused} of {len(self.known)}"
        option = f"; --env.data_dir_to_save_evals {folder} continues it"
        option = option if self._resumes else ""
        logger.warning(
            "the evaluation %s: %s samples are in %s%s", how, there, folder, option
        )

    def _begin(self, wanted: Path) -> dict[str, Row]:
        """Lock the first folder that is free, or whose evaluation can be continued.

        Returns the scored samples that are there.
        """
        without = Affects.ROWS if self._resumes else None
        for file in result_files(wanted, SAMPLES, self._settings, without):
            self._file = file
            if not file.end or not file.path.with_name(NUMBERS).exists():
                break
        if self._resumes:
            check_writable("env.data_dir_to_save_evals", file.path)
        there = _scored(file) if file.is_open else {}
        text = "samples go to %s: %d of %d are there"
        logger.info(text, file.path.parent, len(there), len(self.known))
        return there

    async def take(self, group: Group) -> None:
        """Write the sample of a scored completion.

        While the disk takes none it waits in memory.
        """
        (rollout,) = group.rollouts
        # A subclass may have queried by itself.
        has_tokens = self._has_tokens and rollout.conversation
        row = {
            **self.known[group.source_info],
            "answer": rollout.answer,
            "score": rollout.score,
            "outcome": rollout.outcome,
            "finish_reason": rollout.finish_reason,
            "prompt_tokens": rollout.prompt_tokens if has_tokens else None,
            "completion_tokens": rollout.completion_tokens if has_tokens else None,
        }
        talk = {"messages": list(rollout.conversation)} if rollout.conversation else {}
        await in_thread(self._write, [{**row, **talk}])
        self._scores.append(rollout.score)
        self._put(group, row)

    async def give_up(self, group: Group, why: Exception) -> None:
        """Note a completion that has no score."""
        outcome = "request_failed" if isinstance(why, Lost) else UNSCORED
        row = {**self.known[group.source_info], "outcome": outcome, "reason": str(why)}
        self._put(group, row)

    def _put(self, group: Group, row: Row) -> None:
        self._rows[group.source_info] = row
        scores = self._scores
        self.progress.advance(f"mean score {fmean(scores):.3f}" if scores else "")

    def _write(self, samples: Iterable[Row]) -> None:
        if self._file is not None:
            for sample in samples:
                self._file.append_or_queue(encode_group(sample) + b"\n")

    async def finish(self, rows: Sequence[Row], *, gave_up: bool) -> Path | None:
        """Write the samples without a score; return the folder if all are there.

        Nothing is written of an evaluation without any score. One whose requests were
        given up can be continued.
        """
        if self._file is None or not self._scores:
            return None
        await in_thread(self._write, [row for row in rows if row.get("score") is None])
        if gave_up or self._file.queued or self._file.lost:
            how = "was given up" if gave_up else "lacks what the disk has refused"
            self._log_end(how, self._file)
            return None
        return self._file.path.parent
