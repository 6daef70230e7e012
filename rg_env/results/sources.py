"""Saved completions as samples, from files whose kind is told by their content.

    lines       dump files, rows of `process`, samples of `evaluate`, of `rescore`, and
                any other with `task`, what makes or finds the item, and the text
    documents   TASK.json of the published results of reasoning-gym, in RUN/CATEGORY/

If a file gives no category, a sample has that of the library. Without one there, it is
"own" in a group that this environment has written, and otherwise "other".

A sample's `row` has the keys of `samples.jsonl`, whichever file it comes from. `seed`
and `params` make the item again, or a `dataset` with its size and seed, and the `index`
in it. `source` is the file, and `place` the position in it. What cannot be read is
counted.
"""

from __future__ import annotations

import contextlib
import json
import math
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from rg_env.errors import SettingError, printable, shown
from rg_env.library.registry import CATEGORIES, OWN_CATEGORY
from rg_env.line_file import PART_SUFFIX
from rg_env.results.samples import Sample, finite, pick
from rg_env.results.terminal import WorkProgress
from rg_env.reward.score import outcome_of

SUFFIXES = (".json", ".jsonl", f".jsonl{PART_SUFFIX}")
"""Suffixes of the files that are read in a folder; a named file may have any."""

OTHER_FILES = {"metrics.json", "summary.json", "checkpoint.json", "history.jsonl"}
"""Files of these names hold no completions."""

METRICS = "metrics.jsonl"
"""The name of a file of metrics, or its end; a line is a step."""

KB = 1024

COMPLETION_KEYS = ("completion", "text", "response")
NEEDED = "; a line needs `task`, `seed`, `params` and a text, as `completion`"
PUBLISHED_DATASET = {"size": 50, "seed": 45}
"""Parameters of every published dataset."""

SAMPLE_FIELDS = (
    "task",
    "category",
    "question",
    "gold_answer",
    "answer",
    "score",
    "outcome",
    "finish_reason",
    "model",
    "level",
    "answer_format",
    "partial_credit",
    "formats",
    "normalized",
    "reward",
    "reason",
    "prompt_tokens",
    "completion_tokens",
    "preset",
    "items_digest",
    "time",
    "step",
)
"""Fields that a sample takes from a line, a group or a rollout."""

RESCORED_FIELDS = ("scores", "source", "place", "run", "reasoning_gym")
"""Fields that it also takes from a line of `rescore`."""

TEXT_FIELDS = (
    "question",
    "completion",
    "answer",
    "system",
    "category",
    "outcome",
    "model",
    "finish_reason",
    "run",
)
"""Fields that must be texts, if they are there."""

ROW_COLUMNS = {
    "conversation": "messages",
    "score": "task_scores",
    "reward": "scores",
    "outcome": "outcomes",
    "answer": "answers",
    "finish_reason": "finish_reasons",
    "completion_tokens": "completion_tokens",
}
"""Field of a rollout to its column in a row of `process`."""

Row = dict[str, Any]


# -- from a line or document to samples ------------------------------------------------


def _parse_number(text: str) -> float | None:
    """Return a number; None for NaN, Infinity and 1e999, which JSON does not have."""
    value = float(text)
    return value if math.isfinite(value) else None


def _texts_in(messages: object) -> Row:
    """Return the last text of each role, as the field of a sample."""
    fields = {"system": "system", "user": "question", "assistant": "completion"}
    conversation = messages if isinstance(messages, list) else []
    texts = {message.get("role"): message.get("content") for message in conversation}
    return {field: texts[role] for role, field in fields.items() if role in texts}


def _origin(row: Row) -> Row:
    """Return the fields that make the item again."""
    if row.get("dataset") is not None:
        return {"dataset": dict(row["dataset"]), "index": row.get("index")}
    params = dict(row.get("params") or {})
    seed = row.get("seed")
    if seed is None:
        return {"params": params}
    size = row.get("size")
    if size is None:
        return {"params": params, "seed": seed}
    # An item of a preset, which some tasks only make within its dataset.
    dataset = {"size": size, "seed": seed, **params}
    return {"dataset": dataset, "index": row.get("index")}


def _published_rows(document: Row, file: Path) -> Iterator[Row]:
    run = file.resolve().parent.parent.name
    for index, result in enumerate(document["results"]):
        for number, completion in enumerate(result["completions"]):
            yield {
                "run": run,
                "place": f"{index + 1}.{number + 1}",
                "task": document.get("name"),
                "category": document.get("category"),
                "dataset": PUBLISHED_DATASET | document["config"],
                "index": index,
                "question": result["question"],
                "gold_answer": result.get("expected_answer"),
                "completion": completion.get("full_model_response"),
                "answer": completion.get("model_answer"),
                "score": completion.get("score"),
                # The scorer raised it at this answer.
                "outcome": "scorer_error" if "error" in completion else None,
            }


def _group_rows(group: Row) -> Iterator[Row]:
    rollouts = group.get("rollouts")
    if rollouts is None:
        columns = {
            field: group[column]
            for field, column in ROW_COLUMNS.items()
            if group.get(column)
        }
        rows = zip(*columns.values(), strict=True)
        rollouts = [dict(zip(columns, row, strict=True)) for row in rows]
    # Lines of the original environment have only `item_id`.
    task = group.get("task", group.get("item_id"))
    # Only this environment writes `params`, so the task was registered there.
    is_own = "params" in group and str(task) not in CATEGORIES
    for number, rollout in enumerate(rollouts):
        yield {
            **pick(group, SAMPLE_FIELDS),
            **pick(rollout, SAMPLE_FIELDS),
            **_texts_in(rollout.get("conversation")),
            **_origin(group),
            "task": task,
            "category": OWN_CATEGORY if is_own else None,
            "place": str(number + 1),
        }


def _line_row(line: Row) -> Row:
    texts = (line[key] for key in COMPLETION_KEYS if isinstance(line.get(key), str))
    messages = _texts_in(line.get("messages"))
    row = {**messages, **pick(line, SAMPLE_FIELDS), **_origin(line)}
    row["completion"] = next(texts, messages.get("completion"))
    if isinstance(line.get("scores"), dict):
        row |= pick(line, RESCORED_FIELDS)
    return row


def _rows_in(value: Any, file: Path) -> Iterable[Row]:
    if "results" in value:
        return _published_rows(value, file)
    is_group = "rollouts" in value or "outcomes" in value
    return _group_rows(value) if is_group else [_line_row(value)]


def _sample(row: Row) -> Sample:
    """Return the sample of a row; `ValueError` if it has no task or no completion."""
    task = row.get("task")
    score = finite(row.get("score"))
    if score is not None:
        # A sum of shares may be a little above 1, but 59.4 is not a score.
        nearest = min(1.0, max(0.0, score))
        score = nearest if abs(score - nearest) <= 1e-6 else None
    texts = {name: row.get(name) for name in TEXT_FIELDS}
    is_text = all(isinstance(text, str | None) for text in texts.values())
    facts = [texts["completion"], texts["answer"], texts["outcome"] or None, score]
    if not isinstance(task, str) or not is_text or facts == [None] * 4:
        raise ValueError("no completion")
    outcome = texts["outcome"]
    if not outcome and row.get("answer", "") is None:
        outcome = "no_answer"
    if not outcome:
        outcome = "unscored" if score is None else outcome_of(score)
    row.setdefault("answer", None)
    category = texts["category"] or CATEGORIES.get(task, "other")
    (task + category + outcome).encode()  # raises at a lone surrogate
    # All samples are kept in memory, and a file repeats these for each completion.
    return Sample(
        task=sys.intern(task),
        category=sys.intern(category),
        question=sys.intern(texts["question"] or ""),
        score=score,
        outcome=outcome,
        row=row,
    )


# -- files -----------------------------------------------------------------------------


def _may_hold_completions(path: Path) -> bool:
    """Return whether to read a path in a folder, by its names."""
    return (
        path.name.endswith(SUFFIXES)
        and path.name not in OTHER_FILES
        and path.is_file()
        and "env_checkpoints" not in path.parts
        # Other files of a model.
        and not path.with_name("config.json").is_file()
    )


def find_files(paths: Iterable[str]) -> list[Path]:
    """Return the files at paths, sorted by name, with 9 before 10.

    So the published files of one task, which have the same items, come together.

    Raises:
        SettingError: There is no file at a path, nor in the folder there.
    """
    files: set[Path] = set()
    for path in map(Path, paths):
        found = set(filter(_may_hold_completions, path.rglob("*")))
        if path.is_file():
            found = {path}
        if not found:
            why = "no file *.json or *.jsonl" if path.exists() else "no such file"
            raise SettingError(f"command line: {shown(str(path))}: {why}")
        files |= found

    def order(file: Path) -> Any:
        parts = re.split("([0-9]+)", str(file))  # texts and numbers in turn
        return file.name, [int(p) if i % 2 else p for i, p in enumerate(parts)]

    return sorted(files, key=order)


class Sources:
    """Reads the samples of files, in the order of the files.

    Attributes:
        read_kb: The size of what was read, of `total_kb`.
        unread: The number of lines or documents that were not read, by their kind:
            "damaged" is not JSON, "foreign" is not a completion.
    """

    def __init__(self, files: Sequence[Path]) -> None:
        self._files = [file for file in files if not file.name.endswith(METRICS)]
        self._first_unread: dict[str, str] = {}
        self.unread: Counter[str] = Counter()
        self.read_kb = 0.0
        self.total_kb = sum(file.stat().st_size for file in self._files) / KB

    def samples(self, title: str = "") -> Iterator[Sample]:
        """Yield the samples; with a title, show the progress."""
        progress = WorkProgress(title, self.total_kb, "kB") if title else None
        with progress or contextlib.nullcontext():
            for file in self._files:
                for number, line in _lines(file):
                    is_torn = file.suffix == PART_SUFFIX and not line.endswith(b"\n")
                    if line.strip() and not is_torn:
                        yield from self._samples_in(file, number, line)
                    self.read_kb += len(line) / KB
                    if progress is not None:
                        progress.advance(by=len(line) / KB)

    def _samples_in(self, file: Path, number: int, line: bytes) -> Iterator[Sample]:
        kind = "damaged"
        try:
            value = json.loads(
                line, parse_float=_parse_number, parse_constant=_parse_number
            )
            kind = "foreign"
            for row in _rows_in(value, file):
                if "source" not in row:
                    parts = [str(part) for part in (number, row.get("place")) if part]
                    row |= {"source": str(file), "place": ".".join(parts)}
                yield _sample(row)
        except (LookupError, TypeError, AttributeError, ValueError, RecursionError):
            self.unread[kind] += 1
            where = f"{file}, line {number}" if number else str(file)
            self._first_unread.setdefault(kind, printable(where))

    def reasons(self) -> list[str]:
        """Return a sentence for each kind of lines that were not read."""
        return [
            f"{kind} lines or files: {count}, the first: {self._first_unread[kind]}"
            f"{NEEDED if kind == 'foreign' else ''}"
            for kind, count in self.unread.items()
        ]

    def no_completion_error(self, paths: Iterable[str]) -> SettingError:
        """Return the error for paths without a sample."""
        why = "; ".join(self.reasons()) or "they are empty"
        return SettingError(f"no completion in {', '.join(paths)}: {why}")


def _lines(file: Path) -> Iterator[tuple[int, bytes]]:
    """Yield each line with its number; a document of several lines once, as line 0."""
    with file.open("rb") as opened:
        first = opened.readline()
        if first.strip() == b"{":
            yield 0, first + opened.read()
        else:
            yield from enumerate((first, *opened), 1)
