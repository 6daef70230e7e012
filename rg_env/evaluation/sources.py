"""Saved completions as samples, from files whose kind is told by their content.

    lines       dump files, rows of `process`, samples of `evaluate`, of `rescore`, and
                any other with `task`, what makes or finds the item, and the text
    documents   TASK.json of the published results of reasoning-gym, in RUN/CATEGORY/

A sample's `row` has the keys of `samples.jsonl`, whichever file it comes from: what
makes the item again is `seed` and `params`, or the `index` of a `dataset` with its own
size and seed; `source` and `place` say where it stands. What cannot be read is counted.
"""

from __future__ import annotations

import dataclasses
import json
import math
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rg_env.errors import SettingError, shown
from rg_env.evaluation.samples import TRUNCATED, Sample
from rg_env.scoring.score import outcome_of

SUFFIXES = (".json", ".jsonl", ".jsonl.part")
"""Of the files that are looked at in a folder; a file that is named is read anyway."""

KB = 1024
MAX_BYTES = 2**28
"""Of a line or a document; the longest published one has 5 MB."""

TEXT_KEYS = ("completion", "text", "response", "full_model_response", "output")
PUBLISHED_DATASET = {"size": 50, "seed": 45}
"""Of every published dataset; where a line has a question and no seed, it is sought in
the dataset of these and of its parameters."""

KEPT: tuple[str, ...]
KEPT = ("model", "level", "finish_reason", "scores", "changes", "reason")
KEPT += ("prompt_tokens", "completion_tokens", "formats", "normalized", "reward")
OF_GROUP = ("level", "gold_answer", "time", "versions")
Row = dict[str, Any]


class Unreadable(ValueError):
    """A line or document is damaged or foreign; its text says which."""


def _parsed(text: bytes) -> Any:
    """Return the value of a JSON text, `Unreadable` for what is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return Unreadable("damaged")


def _first_text(row: Mapping[str, Any], *keys: str) -> str | None:
    return next((row[key] for key in keys if isinstance(row.get(key), str)), None)


def _score(value: object) -> float | None:
    """Return a score in [0, 1]; None for what is none."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    # Sums of shares end a little above 1.
    is_one = math.isfinite(value) and -1e-6 <= value <= 1 + 1e-6
    return min(1.0, max(0.0, float(value))) if is_one else None


def _said(messages: object, role: str) -> str | None:
    """Return the last message of a role."""
    said = None
    for message in messages if isinstance(messages, list) else ():
        if isinstance(message, dict) and message.get("role") == role:
            said = _first_text(message, "content")
    return said


def _origin(row: Mapping[str, Any]) -> Row:
    """Return what makes the item of a line again, {} where nothing does."""
    params = row.get("params", row.get("parameters", {}))
    dataset = row.get("dataset", row.get("config"))
    seed, index = row.get("seed"), row.get("index")
    if isinstance(dataset, dict):
        found = {**PUBLISHED_DATASET, **dataset}
    elif isinstance(params, dict) and type(seed) is int:
        return {"seed": seed, "params": params}
    elif isinstance(params, dict):
        found = {**PUBLISHED_DATASET, **params}
    else:
        return {}
    return {"dataset": found, "index": index if type(index) is int else None}


def _sample(row: Row, score: object) -> Sample:
    """Return the sample of a row.

    Raises:
        Unreadable: It has no task or no answer.
    """
    task, value = row.get("task"), _score(score)
    has_answer = any(isinstance(row.get(key), str) for key in ("completion", "answer"))
    word = _first_text(row, "outcome")
    if not isinstance(task, str) or not (has_answer or word or value is not None):
        raise Unreadable("foreign")
    if word is None and not isinstance(row.get("answer"), str):
        word = "no_answer"
    if word is None:
        word = "unscored" if value is None else outcome_of(value)
    return Sample(
        task=sys.intern(task),
        category=sys.intern(_first_text(row, "category") or ""),
        question=sys.intern(_first_text(row, "question") or ""),
        score=value,
        outcome=word,
        is_truncated=_first_text(row, "finish_reason") in TRUNCATED,
        row=row,
    )


def _of_published(document: Row, run: str) -> Iterator[Sample]:
    """Yield the completions of one published file; `score` is the library's of then."""
    for index, result in enumerate(document["results"]):
        for number, completion in enumerate(result["completions"]):
            row = {
                "place": f"{index + 1}.{number + 1}",
                "run": run,
                "task": document.get("name"),
                "category": document.get("category"),
                "dataset": {**PUBLISHED_DATASET, **document["config"]},
                "index": index,
                "question": result["question"],
                "gold_answer": result.get("expected_answer"),
                "completion": completion.get("full_model_response"),
                "answer": completion.get("model_answer"),
            }
            if "error" in completion:  # the scorer's, on this answer
                row["outcome"] = "scorer_error"
            yield _sample(row, completion.get("score"))


def _of_group(line: Row) -> Iterator[Sample]:
    """Yield the rollouts of a dumped group, or of a row of `process`."""
    common = {"task": line.get("task", line.get("item_id")), **_origin(line)}
    common |= {key: line.get(key) for key in OF_GROUP}
    common["position"] = line.get("index")
    rollouts = line.get("rollouts")
    if rollouts is None:
        columns = (line["scores"], line["outcomes"], line["answers"])
        talks = line.get("messages") or [None] * len(line["scores"])
        rollouts = [
            # A reward; it is the score where nothing was taken off.
            {"score": score, "outcome": word, "answer": answer, "conversation": talk}
            for score, word, answer, talk in zip(*columns, talks, strict=True)
        ]
    for number, rollout in enumerate(rollouts):
        talk = rollout.get("conversation")
        row = {
            **common,
            **{key: rollout[key] for key in KEPT if key in rollout},
            "place": str(number + 1),
            "system": _said(talk, "system"),
            "question": _said(talk, "user"),
            "completion": _said(talk, "assistant"),
            "answer": rollout.get("answer"),
            "outcome": rollout.get("outcome"),
        }
        is_right = row["outcome"] == "right"
        yield _sample(row, 1.0 if is_right else rollout.get("score"))


def _of_line(line: Row) -> Iterator[Sample]:
    """Yield the sample of a line for each completion."""
    row = {
        **{key: line[key] for key in KEPT if key in line},
        **{key: line.get(key) for key in ("task", "category")},
        **_origin(line),
        "question": _first_text(line, "question")
        or _said(line.get("messages"), "user"),
        "gold_answer": line.get("gold_answer", line.get("expected_answer")),
        "completion": _first_text(line, *TEXT_KEYS)
        or _said(line.get("messages"), "assistant"),
        "answer": line.get("answer", line.get("model_answer")),
        "outcome": line.get("outcome"),
    }
    if isinstance(line.get("scores"), dict):  # of `rescore`, which says where it was
        row |= {key: _first_text(line, key) for key in ("source", "place", "run")}
    yield _sample({k: v for k, v in row.items() if v is not None}, line.get("score"))


def _samples_of(value: Any, run: str) -> Iterator[Sample]:
    """Yield the samples of a line or document, whichever kind it is.

    Raises:
        Unreadable: It is of no kind.
    """
    if isinstance(value, Unreadable):
        raise value
    if not isinstance(value, dict):
        raise Unreadable("foreign")
    try:
        if isinstance(value.get("results"), list):
            yield from _of_published(value, run)
        elif {"rollouts", "outcomes"} & value.keys():
            yield from _of_group(value)
        else:
            yield from _of_line(value)
    except (AttributeError, KeyError, TypeError, ValueError):
        raise Unreadable("foreign") from None


def files_of(paths: Iterable[str]) -> list[Path]:
    """Return the files at paths, those of one name one after the other.

    That brings the published files of one task together, which have the same items.

    Raises:
        SettingError: A path leads nowhere, or to a folder without such files.
    """
    found: dict[Path, None] = {}
    for path in map(Path, paths):
        inside = [path]
        if path.is_dir():
            inside = [p for p in sorted(path.rglob("*")) if p.name.endswith(SUFFIXES)]
        files = [file for file in inside if file.is_file()]
        if not files:
            kind = "no such file" if not path.is_dir() else "no file *.json or *.jsonl"
            raise SettingError(f"command line: {shown(str(path))}: {kind}")
        found.update(dict.fromkeys(files))
    return sorted(found, key=lambda file: (file.name, file))


class Sources:
    """Reads the samples of files, one file at a time.

    Args:
        files: Read in this order.
        with_texts: Whether the completions are kept, which are nearly all there is.

    Attributes:
        unread: "damaged" and "foreign" to how many lines or documents are.
        first_unread: The same to the place of the first one.
        total_kb: Size of all files.
    """

    def __init__(self, files: Sequence[Path], *, with_texts: bool = True) -> None:
        self._files = files
        self._with_texts = with_texts
        self.unread: Counter[str] = Counter()
        self.first_unread: dict[str, str] = {}
        self._bytes = self._said_kb = 0
        self.total_kb = sum(file.stat().st_size for file in files) // KB

    def samples(self) -> Iterator[Sample]:
        """Yield the samples.

        Raises:
            OSError: A file cannot be read.
        """
        for file in self._files:
            run = file.resolve().parent.parent.name
            for number, size, value in _values(file):
                self._bytes += size
                try:
                    for sample in _samples_of(value, run):
                        yield self._placed(sample, file, number)
                except Unreadable as error:
                    self.unread[str(error)] += 1
                    place = f"{file}, line {number}" if number else str(file)
                    self.first_unread.setdefault(str(error), place)

    def kb_since_last(self) -> int:
        """Return how much was read since the last call."""
        since = self._bytes // KB - self._said_kb
        self._said_kb += since
        return since

    def unread_said(self) -> list[str]:
        """Return what could not be read, each kind with its first place."""
        return [
            f"{number} {kind} lines or files, the first: {self.first_unread[kind]}"
            for kind, number in self.unread.items()
        ]

    def _placed(self, sample: Sample, file: Path, number: int) -> Sample:
        row = dict(sample.row)
        if "source" not in row:
            place = row.get("place")
            row["source"] = str(file)
            row["place"] = ".".join(str(p) for p in (number, place) if p)
        if not self._with_texts:
            row.pop("completion", None)
        return dataclasses.replace(sample, row=row)


def _values(file: Path) -> Iterator[tuple[int, int, Any]]:
    """Yield number, bytes and value of each line; of one document the number is 0."""
    with file.open("rb") as opened:
        if isinstance(_parsed(opened.readline(MAX_BYTES)), Unreadable):
            opened.seek(0)
            text = opened.read(MAX_BYTES)
            value = _parsed(text)
            if isinstance(value, dict):
                yield 0, len(text), value
                return
        opened.seek(0)
        for number, line in enumerate(iter(lambda: opened.readline(MAX_BYTES), b"")):
            if line.strip():
                yield number + 1, len(line), _parsed(line)
