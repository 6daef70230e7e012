"""Saved completions as samples, from files whose kind is told by their content.

    lines       dump files, rows of `process`, samples of `evaluate`, of `rescore`, and
                any other with `task`, what makes or finds the item, and the text
    documents   TASK.json of the published results of reasoning-gym, in RUN/CATEGORY/

A sample whose file gives no category has that of the library; a group that this
environment has written "own", and any other sample "other". A sample's
`row` has the keys of `samples.jsonl`, whichever file it comes from: what makes the item
again is `seed` and `params`, or the `index` of a `dataset` with its own size and seed;
`source` and `place` say where it is. What cannot be read is counted.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rg_env import yaml_text
from rg_env.errors import SettingError, printable, shown, unexpected
from rg_env.evaluation.samples import Sample
from rg_env.scoring.score import outcome_of
from rg_env.settings import kept_settings
from rg_env.settings.environment_settings import OF_EVALUATION, deciding
from rg_env.tasks import own_tasks
from rg_env.tasks.library_import import CATEGORIES
from rg_env.tasks.sampler import MAX_ENTRY_SEED
from rg_env.yaml_text import YamlError

PART = ".part"
"""The suffix of a dump file that is being written, whose last line may be torn."""

SUFFIXES = (".json", ".jsonl", f".jsonl{PART}")
"""Files with these are read in a folder; a file that is named is read anyway."""

BESIDE = {"metrics.json", "summary.json", "checkpoint.json"}
"""What lies beside the samples of an evaluation, ours or a published one."""

METRICS, HISTORY = "metrics.jsonl", "checkpoints/history.jsonl"
"""What paths of files of numbers end in: a line a step; the second of our trainer."""

LAUNCHED = ("launch.yaml", "trainer.log")
"""In a folder of `launch`, which is of one run."""

NO_SAMPLES = ("ledger.json", METRICS, HISTORY)

SETTINGS = {*kept_settings.OF_SERVERS, *deciding(*OF_EVALUATION)}
"""What decides an evaluation, which is shown with its samples."""

KB = 1024
MAX_BYTES = 2**28
"""The longest line or document; the longest published one has 5 MB."""

TEXT_KEYS = ("completion", "text", "response", "full_model_response", "output")
PUBLISHED = {"size": 50, "seed": 45}
"""Every published dataset has these; a question without a seed is sought in it."""

KEPT = ["task", "category", "answer", "score", "outcome", "finish_reason", "model"]
KEPT += ["level", "formats", "normalized", "reward", "reason"]
KEPT += ["prompt_tokens", "completion_tokens", "preset"]
OF_ROWS = {"score": "scores", "outcome": "outcomes", "answer": "answers"}
OF_ROWS |= {"conversation": "messages", "finish_reason": "finish_reasons"}
OF_ROWS |= {"completion_tokens": "completion_tokens"}
"""Field of a rollout to its column in a row of `process`."""

OUT_OF_RANGE = "out-of-range score"

JsonObject = dict[str, Any]


class UnreadableError(ValueError):
    """A line or document is damaged or foreign; its text says which."""


# -- from a line or document to samples ------------------------------------------------


def _finite(number: str) -> float | str:
    """Return a number; the text of NaN, Infinity or 1e999, which JSON has not."""
    value = float(number)
    return value if math.isfinite(value) else number


def _parsed(text: bytes) -> Any:
    """Return the value of a JSON text, `UnreadableError` for what is none."""
    try:
        return json.loads(text, parse_float=_finite, parse_constant=_finite)
    except (ValueError, RecursionError):  # the second where it is nested too deeply
        return UnreadableError("damaged")


def _text(row: Mapping[str, Any], *keys: str) -> str | None:
    return next((row[key] for key in keys if isinstance(row.get(key), str)), None)


def _score(value: object) -> float | None:
    """Return a score in [0, 1]; None for what is none."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    # Sums of shares end a little above 1.
    is_one = -1e-6 <= value <= 1 + 1e-6
    return min(1.0, max(0.0, float(value))) if is_one else None


def _said(messages: object, role: str) -> str | None:
    """Return the last message of a role."""
    talk = messages if isinstance(messages, list) else []
    spoken = [m for m in talk if isinstance(m, dict) and m.get("role") == role]
    return _text(spoken[-1], "content") if spoken else None


def _origin(row: JsonObject) -> JsonObject:
    """Return what makes the item of a line again, or `no_item`: why nothing does."""
    params = row.get("params", row.get("parameters", {}))
    seed, size, index = row.get("seed"), row.get("size"), row.get("index")
    dataset = row.get("dataset", row.get("config"))
    has_seed = type(seed) is int and 0 <= seed <= MAX_ENTRY_SEED
    if seed is not None and not has_seed:
        expected = f"a whole number from 0 to {MAX_ENTRY_SEED}"
        return {"no_item": f"seed: {unexpected(seed, expected)}"}
    if not isinstance(dataset, dict):
        if not isinstance(params, dict):
            return {"no_item": f"params: {unexpected(params, 'names with values')}"}
        if has_seed and type(size) is not int:
            return {"seed": seed, "params": params}
        # Of a preset: some items are what they are in their dataset alone.
        dataset = ({"size": size, "seed": seed} if has_seed else {}) | params
    index = index if type(index) is int else None
    return {"dataset": PUBLISHED | dataset, "index": index}


def _of_published(document: JsonObject, run: str) -> Iterator[JsonObject]:
    for index, result in enumerate(document["results"]):
        for number, completion in enumerate(result["completions"]):
            yield {
                "run": run,
                "place": f"{index + 1}.{number + 1}",
                "task": document.get("name"),
                "category": document.get("category"),
                "dataset": PUBLISHED | document["config"],
                "index": index,
                "question": result["question"],
                "gold_answer": result.get("expected_answer"),
                "completion": completion.get("full_model_response"),
                "answer": completion.get("model_answer"),
                "score": completion.get("score"),
                # The scorer's error, on this answer.
                "outcome": "scorer_error" if "error" in completion else None,
            }


def _of_group(group: JsonObject) -> Iterator[JsonObject]:
    """Yield those of a dumped group, or of a row of `process`."""
    rollouts = group.get("rollouts")
    if rollouts is None:
        columns = {one: group[of] for one, of in OF_ROWS.items() if group.get(of)}
        if "task_scores" in group:  # beside which `scores` are the rewards
            columns |= {"score": group["task_scores"], "reward": group["scores"]}
        rows = zip(*columns.values(), strict=True)
        rollouts = [dict(zip(columns, row, strict=True)) for row in rows]
    # The original's lines have it as `item_id` alone.
    task = group.get("task", group.get("item_id"))
    # Only this environment writes `params`: the task was registered there.
    is_own = "params" in group and str(task) not in CATEGORIES
    for number, rollout in enumerate(rollouts):
        yield {
            **_origin(group),
            "task": task,
            "category": own_tasks.CATEGORY if is_own else None,
            "level": group.get("level"),
            "gold_answer": group.get("gold_answer"),
            "time": group.get("time"),
            "step": group.get("step"),
            "versions": group.get("versions"),
            **{key: rollout[key] for key in KEPT if key in rollout},
            "place": str(number + 1),
            "system": _said(rollout.get("conversation"), "system"),
            "question": _said(rollout.get("conversation"), "user"),
            "completion": _said(rollout.get("conversation"), "assistant"),
            **({"score": 1.0} if rollout.get("outcome") == "right" else {}),
        }


def _of_line(line: JsonObject) -> Iterator[JsonObject]:
    talk = line.get("messages")
    row = {
        **{key: line[key] for key in KEPT if key in line},
        **_origin(line),
        "system": _said(talk, "system"),
        "question": _text(line, "question") or _said(talk, "user"),
        "gold_answer": line.get("gold_answer", line.get("expected_answer")),
        "completion": _text(line, *TEXT_KEYS) or _said(talk, "assistant"),
    }
    if "model_answer" in line:
        row["answer"] = line["model_answer"]
    if isinstance(line.get("scores"), dict):  # of `rescore`: it says where it was
        places = {key: _text(line, key) for key in ("source", "place", "run")}
        row |= {"scores": line["scores"], **places}
    yield row


def _rows(value: Any, run: str) -> Iterator[JsonObject]:
    if isinstance(value.get("results"), list):
        return _of_published(value, run)
    is_group = "rollouts" in value or "outcomes" in value
    return _of_group(value) if is_group else _of_line(value)


def _sample(row: JsonObject) -> Sample:
    """Return the sample of a row.

    Raises:
        UnreadableError: It has no task, or nothing of an answer.
    """
    task, score, word = row.get("task"), _score(row.get("score")), _text(row, "outcome")
    is_answered = _text(row, "completion", "answer") is not None
    if not isinstance(task, str) or not (is_answered or word or score is not None):
        raise UnreadableError("foreign")
    if word is None:
        word = "unscored" if score is None else outcome_of(score)
        word = "no_answer" if row.get("answer", "") is None else word
    row["answer"] = _text(row, "answer")
    category = _text(row, "category") or CATEGORIES.get(task, "other")
    question = _text(row, "question") or ""
    # A file repeats them for each completion, and all samples are kept in memory.
    item = (sys.intern(task), sys.intern(category), sys.intern(question))
    return Sample(*item, score, word, row)


# -- files -----------------------------------------------------------------------------


def files_of(paths: Iterable[str]) -> list[Path]:
    """Return the files at paths, those of one name one after the other, 9 before 10.

    That brings the published files of one task together, which have the same items.

    Raises:
        SettingError: A path leads nowhere, or to a folder without such files.
    """
    files: set[Path] = set()
    for path in map(Path, paths):
        inside = (p for p in path.rglob("*") if p.name.endswith(SUFFIXES))
        inside = (p for p in inside if p.name not in BESIDE and p.is_file())
        # Beside a model's config.json lies what is no completion.
        inside = (p for p in inside if not (p.parent / "config.json").is_file())
        named = {*inside} if path.is_dir() else {path} if path.is_file() else None
        if not named:
            why = "no such file" if named is None else "no file *.json or *.jsonl"
            raise SettingError(f"command line: {shown(str(path))}: {why}")
        files |= named

    def order(file: Path) -> Any:
        parts = re.split("([0-9]+)", str(file))  # texts and numbers in turn
        return file.name, [int(p) if k % 2 else p for k, p in enumerate(parts)]

    return sorted(files, key=order)


def metrics_beside(rows: Path) -> Path:
    """Return the path of the metrics of the run that wrote a file of rows."""
    return rows.with_name(f"{rows.name.removesuffix('.jsonl')}_{METRICS}")


def settings_of(samples: Path) -> tuple[str, dict[str, Any]] | None:
    """Return an evaluation's folder and settings, None where none stand beside it."""
    path = samples.with_name("evaluate_config.yaml")
    if samples.name != "samples.jsonl" or not path.is_file():
        return None
    try:
        saved = yaml_text.read(str(path))
        values = {**saved["openai"][0], **saved["env"]}
    except (YamlError, OSError, TypeError, LookupError):
        return None  # damaged; the samples tell the rest
    known = {
        k: v for k, v in values.items() if k in SETTINGS and v not in (None, [], {})
    }
    return samples.parent.name, {**known, "versions": saved.get("versions")}


class Sources:
    """Reads the samples of files, one file at a time.

    Args:
        files: In the order in which they are read.

    Attributes:
        unread: "damaged" and "foreign" to how many lines or documents are, and
            `OUT_OF_RANGE` to how many completions have such a score, taken for none.
    """

    def __init__(self, files: Sequence[Path]) -> None:
        files = [file for file in files if not file.as_posix().endswith(NO_SAMPLES)]
        self._files = files
        self._first_unread: dict[str, str] = {}
        self._bytes = self._reported_kb = 0
        self.unread: Counter[str] = Counter()
        self.total_kb = sum(_place_of(file).stat().st_size for file in files) // KB

    def samples(self) -> Iterator[Sample]:
        """Yield the samples.

        Raises:
            OSError: A file cannot be read.
        """
        for file in self._files:
            try:
                yield from self._samples_of(file)
            except OSError as error:
                error.filename = error.filename or str(file)  # a read names none
                raise

    def _samples_of(self, file: Path) -> Iterator[Sample]:
        run = file.resolve().parent.parent.name
        for number, size, value in _values(file):
            self._bytes += size
            try:
                if isinstance(value, UnreadableError):
                    raise value
                for row in _rows(value, run):
                    if not (row.get("source") and row.get("place")):
                        parts = [
                            str(part) for part in (number, row.get("place")) if part
                        ]
                        row |= {"source": str(file), "place": ".".join(parts)}
                    sample = _sample(row)
                    if sample.score is None and row.get("score") is not None:
                        self._count(OUT_OF_RANGE, file, number)
                    yield sample
            except (AttributeError, KeyError, TypeError, ValueError) as error:
                kind = str(error) if isinstance(error, UnreadableError) else "foreign"
                self._count(kind, file, number)

    def _count(self, kind: str, file: Path, number: int) -> None:
        self.unread[kind] += 1
        place = f"{file}, line {number}" if number else str(file)
        self._first_unread.setdefault(kind, printable(place))

    def kb_since_last(self) -> int:
        """Return how much was read since the last call."""
        since = self._bytes // KB - self._reported_kb
        self._reported_kb += since
        return since

    def unread_said(self) -> list[str]:
        """Return what could not be read, each kind with its first place."""
        return [
            f"{kind} lines or files: {number}, the first: {self._first_unread[kind]}"
            for kind, number in self.unread.items()
        ]


def _place_of(file: Path) -> Path:
    """Return the current path of a file, which may have been completed and renamed."""
    return file if file.exists() or file.suffix != PART else file.with_suffix("")


def _values(file: Path) -> Iterator[tuple[int, int, Any]]:
    """Yield number, bytes and value of each line; of one document the number is 0."""
    with _place_of(file).open("rb") as opened:
        # A first line that is no JSON is perhaps that of a document of many lines.
        if isinstance(_parsed(opened.readline(MAX_BYTES)), UnreadableError):
            opened.seek(0)
            value = _parsed(opened.read(MAX_BYTES))
            if isinstance(value, dict):
                yield 0, opened.tell(), value
                return
        opened.seek(0)
        for number, line in enumerate(iter(lambda: opened.readline(MAX_BYTES), b"")):
            is_torn = file.suffix == PART and not line.endswith(b"\n")
            if line.strip() and not is_torn:
                yield number + 1, len(line), _parsed(line)
