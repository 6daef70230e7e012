"""The rows of `process`, and how results are continued by the same command.

The settings with which results were made are stored beside them. A run may continue the
results of another one if all settings that affect the results are the same; how fast
and where they were made does not matter.
"""

from __future__ import annotations

import itertools
import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec
import yaml

from rg_env.executor import in_thread, release_gil
from rg_env.installation import VERSION
from rg_env.line_file import LineFile, encode_group, quick, readable
from rg_env.logs import is_sampled
from rg_env.results.sources import METRICS
from rg_env.run.dumps import METRICS_FOLDER
from rg_env.run.group import Ending, Group, has_variance, listed, rollouts_in
from rg_env.run.loop import RunStoppedError
from rg_env.settings.environment_settings import affecting
from rg_env.settings.setting_types import Affects, without_path
from rg_env.stream.adaptive_weights import Share
from rg_env.stream.curriculum import Count

logger = logging.getLogger(__name__)

SAMPLES = "samples.jsonl"
SETTINGS = "evaluate_config.yaml"


# -- the settings beside results -------------------------------------------------------


def settings_path(results: Path) -> Path:
    """Return where the settings stand that rows or samples were made with."""
    is_evaluation = results.name == SAMPLES
    name = SETTINGS if is_evaluation else f"{results.name}.settings.yaml"
    return results.with_name(name)


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


def _why_not(path: Path, settings: str, without: Affects) -> str:
    """Say why results made with the settings at `path` cannot be continued, or ""."""
    names = affecting(*{*Affects} - {Affects.NOTHING, without})

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
    different = [name for name in now | then if then.get(name) != now.get(name)]
    return f"was made with another {', '.join(different)}" if different else ""


class ResultFile(LineFile):
    """A file of results; the settings are written beside it with the first line."""

    def __init__(self, path: Path, settings: str = "") -> None:
        super().__init__(path)
        self._settings = settings

    def append(self, line: bytes) -> None:
        """Append a whole line or nothing."""
        if not self.is_open:
            self.open()
        beside = settings_path(self.path)
        if self._settings and (self.end == 0 or not beside.exists()):
            beside.write_text(self._settings, encoding="utf-8")
        super().append(line)


def result_files(
    wanted: Path, inside: str, settings: str, without: Affects | None
) -> Iterator[ResultFile]:
    """Yield files that are empty or can be continued, each open until the next one.

    They are `wanted` and its numbered names, or are called `inside` and are in these
    folders. Settings that affect `without` may differ; with None, nothing is continued.
    The first name that is free and cannot be opened is yielded closed.
    """
    suffix = "" if inside else wanted.suffix  # the dot of a folder begins none
    for number in itertools.count():
        name = f"{wanted.name.removesuffix(suffix)}_{number}{suffix}"
        place = wanted.with_name(name) if number else wanted
        file = ResultFile(place / inside, settings)
        why = ""
        try:
            has_lines = file.path.exists() and file.path.stat().st_size > 0
            if has_lines and without is None:
                why = "is there"
            else:
                file.open()
            # Locked before it is read: nobody adds lines in between.
            if file.end and without is not None:
                why = _why_not(settings_path(file.path), settings, without)
        except OSError as error:
            why = f"cannot be written: {error}" if place.exists() else ""
        if why:
            level = logging.DEBUG if without is None else logging.INFO
            logger.log(level, "not continued: %s %s", file.path, why)
        else:
            file.cut()
            yield file
        file.close()


# -- metrics beside results ------------------------------------------------------------

RUN_ID = re.compile("(?:^|rollouts_)([0-9a-f-]{36})_")
"""Begins the name of a run's metrics, and is in the names of its dump files."""


def metrics_beside(file: Path) -> Path:
    """Return the path of the metrics of the run that wrote dumps or rows."""
    if match := RUN_ID.search(file.name):
        return file.parent / METRICS_FOLDER / f"{match[1]}_{METRICS}"
    return file.with_name(f"{file.name.removesuffix('.jsonl')}_{METRICS}")


# -- rows ------------------------------------------------------------------------------


class RowWriter:
    """The sink of rows: appends them to a JSONL file, each on disk at once.

    It stands in for the framework's writer, which buffers and fails on lone surrogates.
    `path` is free; `wanted` is the name in the settings, which may have been taken.
    """

    def __init__(self, path: Path, wanted: Path, *, with_tokens: bool = True) -> None:
        self._file = ResultFile(path)
        self._file.open()
        self._wanted = wanted
        self.with_tokens = with_tokens
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

        A file that has its `total` of rows is taken only if `even_complete`.
        """
        self.close()
        for file in result_files(self._wanted, "", settings, Affects.EVAL_COMPLETIONS):
            self._file = file
            found = read_resumed(self.path)
            there = len(found[1])
            if there < total or even_complete:
                break
            logger.info("not continued: %s has its %d rows", self.path, there)
        logger.info("rows go to %s: written %d, wanted %d", self.path, there, total)
        return found


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
            if not line.endswith(b"\n"):
                break  # a kill has torn it
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
