"""Saved completions as samples, from files whose kind is told by their content.

    lines       dump files, rows of `process`, samples of `evaluate`, of `rescore`, and
                any other with `task`, what makes or finds the item, and the text
    documents   TASK.json of the published results of reasoning-gym, in RUN/CATEGORY/

A sample whose file gives no category has that of the library; a group that this
environment has written "own", and any other sample "other". A sample's `row` has the
keys of `samples.jsonl`, whichever file it comes from: what makes the item again is
`seed` and `params`, or the `index` of a `dataset` with its own size and seed; `source`
and `place` say where it is. What cannot be read is counted.
"""

from __future__ import annotations

import contextlib
import functools
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
from rg_env.results.samples import Sample, finite
from rg_env.results.terminal import WorkProgress
from rg_env.reward.score import outcome_of

PART = ".part"
"""The suffix of a dump file that is being written, whose last line may be torn."""

SUFFIXES = (".json", ".jsonl", f".jsonl{PART}")
"""Files with these are read in a folder; a file that is named is read anyway."""

BESIDE = {"metrics.json", "summary.json", "checkpoint.json", "history.jsonl"}
METRICS = "metrics.jsonl"
"""What names of files of numbers end in: a line a step."""

KB = 1024

TEXT_KEYS = ("completion", "text", "response")
NEEDED = "; a line needs `task`, `seed`, `params` and a text, as `completion`"
PUBLISHED = {"size": 50, "seed": 45}
"""Every published dataset has these."""

KEPT = (
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
OF_RESCORE = ("scores", "source", "place", "run", "reasoning_gym")
TEXTS = (
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
OF_ROWS = {
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


def _finite(number: str) -> float | None:
    """Return a number; None for NaN, Infinity and 1e999, which JSON has not."""
    value = float(number)
    return value if math.isfinite(value) else None


def _kept(row: Row, names: Iterable[str] = KEPT) -> Row:
    return {name: row[name] for name in names if name in row}


def _talk(messages: object) -> Row:
    """Return the newest text of each role, under its name in a row."""
    names = {"system": "system", "user": "question", "assistant": "completion"}
    talk = messages if isinstance(messages, list) else []
    texts = {m.get("role"): m.get("content") for m in talk}
    return {name: texts[role] for role, name in names.items() if role in texts}


def _origin(row: Row) -> Row:
    if row.get("dataset") is not None:
        return {"dataset": dict(row["dataset"]), "index": row.get("index")}
    params = dict(row.get("params") or {})
    seed = row.get("seed")
    if seed is None:
        return {"params": params}
    if (size := row.get("size")) is None:
        return {"params": params, "seed": seed}
    # Of a preset: some items are what they are in their dataset alone.
    dataset = {"size": size, "seed": seed, **params}
    return {"dataset": dataset, "index": row.get("index")}


def _of_published(document: Row, file: Path) -> Iterator[Row]:
    run = file.resolve().parent.parent.name
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


def _of_group(group: Row) -> Iterator[Row]:
    rollouts = group.get("rollouts")
    if rollouts is None:
        columns = {one: group[of] for one, of in OF_ROWS.items() if group.get(of)}
        rows = zip(*columns.values(), strict=True)
        rollouts = [dict(zip(columns, row, strict=True)) for row in rows]
    # The original's lines have it as `item_id` alone.
    task = group.get("task", group.get("item_id"))
    # Only this environment writes `params`: the task was registered there.
    is_own = "params" in group and str(task) not in CATEGORIES
    for number, rollout in enumerate(rollouts):
        yield {
            **_kept(group),
            **_kept(rollout),
            **_talk(rollout.get("conversation")),
            **_origin(group),
            "task": task,
            "category": OWN_CATEGORY if is_own else None,
            "place": str(number + 1),
        }


def _of_line(line: Row) -> Iterator[Row]:
    texts = (line[name] for name in TEXT_KEYS if isinstance(line.get(name), str))
    talk = _talk(line.get("messages"))
    yield {
        **talk,
        **_kept(line),
        **_origin(line),
        "completion": next(texts, talk.get("completion")),
        # A file of `rescore` says where each completion was.
        **(_kept(line, OF_RESCORE) if isinstance(line.get("scores"), dict) else {}),
    }


def _rows(value: Any, file: Path) -> Iterator[Row]:
    if "results" in value:
        return _of_published(value, file)
    is_group = "rollouts" in value or "outcomes" in value
    return _of_group(value) if is_group else _of_line(value)


def _sample(row: Row) -> Sample:
    """Return the sample of a row; `ValueError` if it has no task or no answer."""
    task = row.get("task")
    score = finite(row.get("score"))
    if score is not None:
        # Sums of shares end a little above 1; 59.4 is no score.
        near = min(1.0, max(0.0, score))
        score = near if abs(score - near) <= 1e-6 else None
    texts = {name: row.get(name) for name in TEXTS}
    is_text = all(text is None or isinstance(text, str) for text in texts.values())
    known = [texts["completion"], texts["answer"], texts["outcome"] or None, score]
    if not isinstance(task, str) or not is_text or known == [None] * 4:
        raise ValueError("no completion")
    word = texts["outcome"] or ("unscored" if score is None else outcome_of(score))
    if not texts["outcome"] and row.get("answer", "") is None:
        word = "no_answer"
    row.setdefault("answer", None)
    category = texts["category"] or CATEGORIES.get(task, "other")
    (task + category + word).encode()  # which half a character cannot be
    # A file repeats them for each completion, and all samples are kept in memory.
    return Sample(
        task=sys.intern(task),
        category=sys.intern(category),
        question=sys.intern(texts["question"] or ""),
        score=score,
        outcome=word,
        row=row,
    )


# -- files -----------------------------------------------------------------------------


def _holds_completions(path: Path) -> bool:
    """Say whether a file in a folder may hold completions, by its name and place."""
    return (
        path.name.endswith(SUFFIXES)
        and path.name not in BESIDE
        and path.is_file()
        and "env_checkpoints" not in path.parts
        # Beside a model's config.json lies what is no completion.
        and not path.with_name("config.json").is_file()
    )


def find_files(paths: Iterable[str]) -> list[Path]:
    """Return the files at paths, those of one name one after the other, 9 before 10.

    That brings the published files of one task together, which have the same items.
    `SettingError` if a path leads nowhere, or to a folder without such files.
    """
    files: set[Path] = set()
    for path in map(Path, paths):
        inside = set(filter(_holds_completions, path.rglob("*")))
        named = {path} if path.is_file() else inside
        if not named:
            why = "no file *.json or *.jsonl" if path.exists() else "no such file"
            raise SettingError(f"command line: {shown(str(path))}: {why}")
        files |= named

    def order(file: Path) -> Any:
        parts = re.split("([0-9]+)", str(file))  # texts and numbers in turn
        return file.name, [int(p) if k % 2 else p for k, p in enumerate(parts)]

    return sorted(files, key=order)


class Sources:
    """Reads the samples of files in their order.

    Attributes:
        read_kb: How much of `total_kb` was read.
        unread: "damaged" and "foreign" to how many lines or documents are.
    """

    def __init__(self, files: Sequence[Path]) -> None:
        self._files = [f for f in files if not f.name.endswith(METRICS)]
        self._first_unread: dict[str, str] = {}
        self.unread: Counter[str] = Counter()
        self.read_kb = 0.0
        self.total_kb = sum(file.stat().st_size for file in self._files) / KB

    def samples(self, title: str = "") -> Iterator[Sample]:
        """Yield the samples; with a title, show how much was read."""
        shows = WorkProgress(title, self.total_kb, "kB") if title else None
        with shows or contextlib.nullcontext():
            for file in self._files:
                for number, line in _lines(file):
                    is_torn = file.suffix == PART and not line.endswith(b"\n")
                    if line.strip() and not is_torn:
                        yield from self._samples_of(file, number, line)
                    self.read_kb += len(line) / KB
                    if shows is not None:
                        shows.advance(by=len(line) / KB)

    def _samples_of(self, file: Path, number: int, line: bytes) -> Iterator[Sample]:
        kind = "damaged"
        place = f"{file}, line {number}" if number else str(file)
        try:
            value = json.loads(line, parse_float=_finite, parse_constant=_finite)
            kind = "foreign"
            for row in _rows(value, file):
                if "source" not in row:
                    parts = [str(part) for part in (number, row.get("place")) if part]
                    row |= {"source": str(file), "place": ".".join(parts)}
                yield _sample(row)
        except (LookupError, TypeError, AttributeError, ValueError, RecursionError):
            self.unread[kind] += 1
            self._first_unread.setdefault(kind, printable(place))

    def reasons(self) -> list[str]:
        """Return what could not be read, each kind with its first place."""
        return [
            f"{kind} lines or files: {number}, the first: {self._first_unread[kind]}"
            + NEEDED * (kind == "foreign")
            for kind, number in self.unread.items()
        ]

    def no_completion_error(self, paths: Iterable[str]) -> SettingError:
        """Return the error for paths without a sample."""
        why = "; ".join(self.reasons()) or "they are empty"
        return SettingError(f"no completion in {', '.join(paths)}: {why}")


def _lines(file: Path) -> Iterator[tuple[int, bytes]]:
    """Yield number and text of each line, of a document of many lines 0 and all."""
    with file.open("rb") as opened:
        first = opened.readline()
        if first.strip() == b"{":
            yield 0, first + opened.read()
        else:
            yield from enumerate((first, *opened), 1)


# -- the run that a file belongs to ----------------------------------------------------

RUN_ID = re.compile("(?:^|rollouts_)([0-9a-f-]{36})_")
"""The id of a run, in the names of its metrics and its dump files."""


def metrics_path(file: Path) -> Path:
    """Return the path of the metrics of the run that wrote dumps or rows."""
    from rg_env.run.dumps import METRICS_FOLDER

    if match := RUN_ID.search(file.name):
        return file.parent / METRICS_FOLDER / f"{match[1]}_{METRICS}"
    return file.with_name(f"{file.name.removesuffix('.jsonl')}_{METRICS}")


RunPath = str
"""The path of a run's files; for dump files, the first eight characters of its id."""


@functools.lru_cache(maxsize=4096)
def run_path(source: str, published_run: str | None = None) -> RunPath:
    """Return the path of the run that a file belongs to.

    Args:
        source: The path of a file of samples or metrics.
        published_run: The name of a published run, whose files are two folders below.
    """
    path = Path(source).resolve()
    if published_run:
        return str(path.parent.parent)
    if match := RUN_ID.search(path.name):
        return match[1][:8]
    if path.name.startswith("samples.") or path.name == METRICS:
        return str(path.parent)
    name = path.name.removesuffix(f"_{METRICS}")
    return str(path.parent / name.split(".json")[0])
