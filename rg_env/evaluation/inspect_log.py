"""A result as a log of Inspect (`inspect_ai`), which opens in its viewer.

The package is optional: nothing else here needs it.
"""

from __future__ import annotations

import importlib
import importlib.util
import math
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from rg_env.errors import SettingError, shown
from rg_env.evaluation.samples import Sample

PACKAGE = "inspect_ai"
NAME = "reasoning_gym"
STOP_REASONS = {"stop": "stop", "length": "max_tokens"}
IN_METADATA = ("seed", "level", "params", "dataset", "index", "scores", "changes")


def check_installed(path: Path) -> None:
    """Refuse a log that cannot be written.

    Raises:
        SettingError: The package is not installed, or the file is there already.
    """
    if importlib.util.find_spec(PACKAGE) is None:
        raise SettingError(f"--inspect: {PACKAGE} is not installed; pip installs it")
    if path.exists():
        raise SettingError(f"--inspect: {shown(str(path))} exists; name another file")


def _text(value: object) -> str:
    """Return a text that every encoding takes; half a character becomes a sign."""
    halves = str("" if value is None else value).encode("utf-16", "surrogatepass")
    return halves.decode("utf-16", "replace")


def _sample(sample: Sample, name: str, epoch: int, model: str) -> dict[str, Any]:
    row, question = sample.row, _text(sample.question)
    said = {"role": "assistant", "content": _text(row.get("completion"))}
    reason = STOP_REASONS.get(str(row.get("finish_reason")), "unknown")
    choice = {"message": said, "stop_reason": reason}
    score = {"answer": _text(row.get("answer")), "explanation": sample.outcome}
    # What has no score is none of a mean's there either.
    scores = {} if sample.score is None else {NAME: score | {"value": sample.score}}
    metadata = {key: row[key] for key in IN_METADATA if key in row}
    return {
        "id": name,
        "epoch": epoch,
        "input": question,
        "target": _text(row.get("gold_answer")),
        "messages": [{"role": "user", "content": question}, said],
        "output": {"model": model, "choices": [choice]},
        "scores": scores,
        "metadata": {"category": sample.category, **metadata},
    }


def log_of(name: str, samples: Sequence[Sample]) -> dict[str, Any]:
    """Return a result as the values of Inspect's `EvalLog`.

    Args:
        name: Stands for the model where the samples name none.
        samples: The completions of one item are the epochs of one sample there.
    """
    model = _text(next((s.row["model"] for s in samples if s.row.get("model")), name))
    names: dict[tuple[str, str], str] = {}
    items: Counter[str] = Counter()
    epochs: Counter[str] = Counter()
    found = []
    for sample in samples:
        if sample.item not in names:
            items[sample.task] += 1
            names[sample.item] = _text(f"{sample.task}-{items[sample.task]}")
        item = names[sample.item]
        epochs[item] += 1
        found.append(_sample(sample, item, epochs[item], model))
    scores = [sample.score for sample in samples if sample.score is not None]
    mean = math.fsum(scores) / max(1, len(scores))
    metrics = {"mean": {"name": "mean", "value": mean}}
    counts = {"total_samples": len(samples), "completed_samples": len(samples)}
    score = {"name": NAME, "scorer": NAME, "metrics": metrics}
    return {
        "version": 2,
        "status": "success",
        "eval": {
            "created": datetime.now(timezone.utc).isoformat(timespec="seconds"),
            "task": NAME,
            "dataset": {"name": NAME, "samples": len(names)},
            "model": model,
            "config": {"epochs": max(epochs.values(), default=1)},
        },
        "results": {**counts, "scores": [score]},
        "samples": found,
    }


def write(path: Path, name: str, samples: Sequence[Sample]) -> None:
    """Write a result as a log.

    Raises:
        OSError: The disk does not take it.
    """
    logs: Any = importlib.import_module(f"{PACKAGE}.log")
    path.parent.mkdir(parents=True, exist_ok=True)
    logs.write_eval_log(logs.EvalLog.model_validate(log_of(name, samples)), str(path))
