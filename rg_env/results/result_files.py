"""The files of `process` and of `evaluate`, continued by the same command.

The settings with which results were made are stored beside them. A run may continue the
results of another one if all settings that affect the results are the same; how fast
and where they were made does not matter.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
import yaml

from rg_env.executor import in_thread, release_gil
from rg_env.installation import VERSION
from rg_env.line_file import LineFile, encode_group, quick, readable
from rg_env.logs import is_sampled
from rg_env.places import check_writable
from rg_env.results.samples import Row, brief, key_of, read_rows
from rg_env.results.terminal import WorkProgress
from rg_env.reward.score import UNSCORED
from rg_env.run.group import Ending, Group, has_variance, listed, rollouts_in
from rg_env.run.loop import Lost, RunStoppedError
from rg_env.settings.environment_settings import affecting
from rg_env.settings.setting_types import Affects, without_path
from rg_env.stream.adaptive_weights import Share
from rg_env.stream.curriculum import Count

logger = logging.getLogger(__name__)

NUMBERS = "metrics.json"
SAMPLES = "samples.jsonl"
SETTINGS = "evaluate_config.yaml"


# -- the settings beside results -------------------------------------------------------


def settings_path(rows: Path) -> Path:
    """Return where the settings stand that a file of rows was made with."""
    return rows.with_name(f"{rows.name}.settings.yaml")


def env_settings(config: Any) -> dict[str, Any]:
    """Return the settings of an environment as they are kept, without a secret."""
    url = without_path(config.rollout_server_url)
    return {**config.model_dump(mode="json"), "rollout_server_url": url}


def settings_text(
    config: Any, servers: Iterable[Any], versions: Mapping[str, str]
) -> str:
    """Return the settings of a run and versions as YAML, without keys."""
    openai = [server.config.model_dump(mode="json") for server in servers]
    for server in openai:
        server["api_key"] = ""
        if "headers" in server:
            server["headers"] = dict.fromkeys(server["headers"], "")
    used = {"reasoning_gym_environment": VERSION, **versions}
    settings = {"versions": used, "env": env_settings(config), "openai": openai}
    return str(yaml.safe_dump(settings, sort_keys=False))


_NO_FORM = AttributeError, LookupError, TypeError, ValueError, yaml.YAMLError


def _why_not(path: Path, settings: str, *without: Affects) -> str:
    """Say why results made with the settings at `path` cannot be continued, or ""."""
    names = affecting(*{*Affects} - {Affects.NOTHING, *without})

    def of_results(text: str) -> dict[str, Any]:
        part = yaml.safe_load(text)
        servers = part["openai"]
        # Where a server is and how it is queried changes nothing.
        fields = "model_name", "server_type", "extra_body"
        return {
            **{f"env.{name}": v for name, v in part["env"].items() if name in names},
            **{f"openai.{name}": [s.get(name) for s in servers] for name in fields},
            **{f"version of {name}": v for name, v in part["versions"].items()},
        }

    try:
        then = of_results(path.read_text(encoding="utf-8"))
    except (OSError, *_NO_FORM):
        return "has no settings of a run beside it"
    now = of_results(settings)
    both = [*now, *(name for name in then if name not in now)]
    different = [name for name in both if then.get(name) != now.get(name)]
    return f"was made with another {', '.join(different)}" if different else ""


# -- rows ------------------------------------------------------------------------------


class RowWriter:
    """The sink of rows: appends them to a JSONL file, each on disk at once.

    It stands in for the framework's writer, which buffers and fails on lone surrogates.
    `path` is free; `wanted` is the name in the settings, which may have been taken.
    """

    def __init__(self, path: Path, wanted: Path, *, with_tokens: bool = True) -> None:
        self._file = LineFile(path).open()
        self._wanted = wanted
        self.with_tokens = with_tokens
        self._settings = ""
        self.rows_lost = 0

    @property
    def path(self) -> Path:
        """Where the rows go."""
        return self._file.path

    def write(self, row: Mapping[str, Any]) -> None:
        """Write one row, whole or not at all: what people read comes first."""
        names = ("tokens", "masks", "inference_logprobs")
        lists = {key: row[key] for key in names if key in row}
        first = {key: value for key, value in row.items() if key not in lists}
        last = lists if self.with_tokens else {}
        # `readable` keeps every text; the lists are numbers, and `quick` is faster.
        head = encode_group(first, readable)
        tail = encode_group(last, quick, release_gil)
        comma = b", " if first and last else b""
        try:
            if self._file.end == 0 and self._settings:
                beside = settings_path(self.path)
                beside.write_text(self._settings, encoding="utf-8")
            self._file.append(b"%s%s%s\n" % (head[:-1], comma, tail[1:]))
        except OSError:
            self.rows_lost += 1
            raise

    def close(self) -> None:
        """Close the file, and remove it if it holds nothing; may be called twice."""
        self._file.close()

    async def take(self, group: Group) -> None:
        """Write the row of a group; the ending of one that nobody else gets."""
        for part in listed(group.data):
            try:
                await in_thread(self.write, part)
            except OSError as error:
                why = f"env.data_path_to_save_groups: {self.path}: {error}"
                if not group.is_for_trainer:
                    raise RunStoppedError(why) from error
                # The trainer's group is worth more than the copy of it.
                if is_sampled(self.rows_lost):
                    logger.error("row %d is lost: %s", self.rows_lost, why)
            if not group.is_for_trainer:
                group.end(Ending.WRITTEN, rollouts_in(part))

    def resume(
        self, settings: str, total: int, *, even_complete: bool = False
    ) -> Resumed:
        """Continue the file of an ended run of the same settings, if there is one.

        The name in the settings is tried first, then the numbered names that exist. A
        file that has its `total` of rows is taken only if `even_complete`. The settings
        are written beside the first row.
        """
        self._settings = settings
        reasons = list[OSError]()
        numbered = (f"{self._wanted.stem}_{n}" for n in itertools.count(1))
        names = itertools.chain([self._wanted], map(self._wanted.with_stem, numbered))
        for path in itertools.takewhile(lambda path: path != self.path, names):
            file = LineFile(path)
            try:
                why = _why_not(settings_path(path), settings, Affects.EVAL_COMPLETIONS)
                if why and path.stat().st_size:
                    raise FileExistsError(f"{path} {why}")
                # Locked before it is read: nobody adds rows in between.
                file.open().cut()
                sampled, results = read_resumed(path)
                there = len(results)
                if there >= total and not even_complete:
                    raise FileExistsError(f"{path} is complete ({there} rows)")
            except OSError as reason:
                file.close()
                reasons.append(reason)
                continue
            self.close()
            self._file = file
            logger.info("continuing %s: rows written %d, wanted %d", path, there, total)
            return sampled, results
        if reasons:
            logger.info("rows go to %s: %s", self.path, reasons[0])
        return set(), []


def take_over_rows(env: Any, wanted: str | None, *, with_tokens: bool) -> None:
    """Replace the writer of the file that the framework has opened, if any."""
    if env.jsonl_writer is not None:
        env.jsonl_writer.close()
        path = Path(env.config.data_path_to_save_groups)
        wanted = wanted or str(path)
        env.jsonl_writer = RowWriter(path, Path(wanted), with_tokens=with_tokens)


Resumed = tuple[set[int], list[tuple[str, float, float | None, bool]]]
"""The global index of each item, and what `Feedback.take` takes of each row, in the
order of the file."""


class _Row(msgspec.Struct):
    task: str
    question: str
    scores: list[float]
    task_scores: Annotated[list[Share], msgspec.Meta(min_length=1)]
    index: Count | None = None  # the item of a subclass has none
    level: Share | None = None


def read_resumed(path: Path) -> Resumed:
    """Read a file of rows; lines that are none are passed over, which is logged."""
    decoder = msgspec.json.Decoder(_Row)
    sampled = set[int]()
    results = []
    damaged = 0
    with path.open("rb") as lines:
        for line in lines:
            release_gil()
            try:
                row = decoder.decode(line)
            except (ValueError, RecursionError):
                damaged += 1
                continue
            mean_score = sum(row.task_scores) / len(row.task_scores)
            results.append((row.task, mean_score, row.level, has_variance(row.scores)))
            if row.index is not None:
                sampled.add(row.index)
    if damaged:
        logger.warning("%s: %d lines are no rows", path, damaged)
    return sampled, results


# -- samples of an evaluation ---------------------------------------------------------


class EvaluationFiles:
    """Writes the folder of one evaluation.

        evaluate_config.yaml    the settings and versions, with the first sample
        samples.jsonl           a line for each completion, as it is scored
        metrics.json            the numbers, once all samples are on disk

    `evaluate` continues a folder that lacks `metrics.json` if the settings that affect
    items, completions and scores are the same. Otherwise an existing evaluation is left
    unchanged, and the new one goes to `folder_1`.

    It is the sink of an evaluation's groups: `known` of a group is the place of its
    completion.

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
        self._file: LineFile | None = None
        self._kept = 0
        self._done: Sequence[Row] = ()
        self.known = known

    async def __aenter__(self) -> EvaluationFiles:
        """Begin the evaluation, or continue one that was ended."""
        if self._wanted is not None:
            await in_thread(self._begin, self._wanted.rstrip("/"))
        there = {key_of(row): row for row in self._done}
        self._rows = [there.get(key_of(row)) for row in self.known]
        self._scores = [float(row["score"]) for row in self.rows]
        self.missing = [i for i, row in enumerate(self._rows) if row is None]
        return self

    @property
    def rows(self) -> list[Row]:
        """The lines that there are, without messages, in the order of `known`."""
        return [row for row in self._rows if row is not None]

    async def __aexit__(self, kind: type[BaseException] | None, *error: object) -> None:
        """Close the samples; say where they are if the evaluation was interrupted."""
        if self._file is None:
            return
        self._file.close()
        if kind is not None and issubclass(kind, asyncio.CancelledError) and self._kept:
            self._log_end("was interrupted", self._file)
        with contextlib.suppress(OSError):  # it holds an evaluation
            self._file.path.parent.rmdir()

    def _log_end(self, how: str, file: LineFile) -> None:
        folder = file.path.parent
        refused = len(file.waiting) + file.lost
        there = f"{len(self._done) + self._kept - refused} of {len(self.known)}"
        option = f"; --env.data_dir_to_save_evals {folder} continues it"
        option = option if self._resumes else ""
        logger.warning(
            "the evaluation %s: %s samples are in %s%s", how, there, folder, option
        )

    def _begin(self, wanted: str) -> None:
        """Lock the first folder that is free, or whose evaluation can be continued."""
        for number in itertools.count():
            folder = Path(f"{wanted}_{number}" if number else wanted)
            path = folder / SAMPLES
            is_there = path.exists() and path.stat().st_size > 0
            if is_there and (
                not self._resumes
                or (folder / NUMBERS).exists()
                or _why_not(folder / SETTINGS, self._settings, Affects.ROWS)
            ):
                continue
            if self._resumes:
                check_writable("env.data_dir_to_save_evals", path)
            self._file = LineFile(path)
            try:
                self._file.open().cut()
                if is_there:
                    rows = read_rows(path)
                    self._done = [row for row in rows if row.get("score") is not None]
                    logger.info(
                        "continuing the evaluation in %s: %d of %d samples are there",
                        folder,
                        len(self._done),
                        len(self.known),
                    )
            except BlockingIOError:
                continue  # another process writes it
            except OSError as error:
                logger.error("env.data_dir_to_save_evals: %s: %s", folder, error)
            return

    async def take(self, group: Group) -> None:
        """Write the sample of a scored completion.

        While the disk takes none it waits in memory.
        """
        (rollout,) = group.rollouts
        row = {"score": rollout.score, "outcome": rollout.outcome}
        if rollout.conversation:  # else a subclass has queried by itself
            has_tokens = self._has_tokens
            row = {
                "answer": rollout.answer,
                **row,
                "finish_reason": rollout.finish_reason,
                "prompt_tokens": rollout.prompt_tokens if has_tokens else None,
                "completion_tokens": rollout.completion_tokens if has_tokens else None,
                "messages": list(rollout.conversation),
            }
        row = {**self.known[group.known], **row}
        self._kept += 1
        await in_thread(self._write, [row])
        self._scores.append(rollout.score)
        self._put(group, row)

    async def give_up(self, group: Group, why: Exception) -> None:
        """Note a completion that has no score."""
        outcome = "request_failed" if isinstance(why, Lost) else UNSCORED
        row = {**self.known[group.known], "outcome": outcome, "reason": str(why)}
        self._put(group, row)

    def _put(self, group: Group, row: Row) -> None:
        self._rows[group.known] = brief(row)
        scores = self._scores
        mean = f"mean score {sum(scores) / len(scores):.3f}" if scores else ""
        self.progress.advance(mean)

    def _write(self, samples: Iterable[Row]) -> None:
        if self._file is None:
            return
        for sample in samples:
            self._file.put(encode_group(sample) + b"\n")
        beside = self._file.path.with_name(SETTINGS)
        if self._file.end and not beside.exists():
            with contextlib.suppress(OSError):
                beside.write_text(self._settings, encoding="utf-8")

    async def finish(self, rows: Sequence[Row], *, gave_up: bool) -> Path | None:
        """Write the samples without a score; return the folder if all are there.

        Nothing is written of an evaluation without any score. One whose requests were
        given up can be continued.
        """
        if self._file is None or not (self._kept or self._done):
            return None
        await in_thread(self._write, [row for row in rows if row.get("score") is None])
        if gave_up or self._file.waiting or self._file.lost:
            how = "was given up" if gave_up else "lacks what the disk has refused"
            self._log_end(how, self._file)
            return None
        return self._file.path.parent
