"""Results in the layout of the published ones, with completions of our own.

    FOLDER/RUN/CATEGORY/TASK.json

The items are the library's; each completion is written here in one of a few ways.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rg_env.library import worker_jobs

SIZE, SEED = 50, 45
DEADLINE_S = 120.0
WAYS: dict[str, Callable[[str], tuple[str, str | None, float]]] = {
    "right": lambda gold: (f"So <answer>{gold}</answer>", gold, 1.0),
    "formatted": lambda gold: (
        f"<answer>**{gold}**</answer>",
        f"**{gold}**",
        len(gold) / (len(gold) + 4),
    ),
    "wrong": lambda gold: ("<answer>x</answer>", "x", 0.0),
    "negated": lambda gold: (f"<answer>-{gold}</answer>", f"-{gold}", 0.5),
    "twice": lambda gold: (f"<answer>{gold}</answer>" * 2, gold, 1.0),
    "untagged": lambda gold: (f"It is {gold}.", None, 0.0),
    "empty": lambda gold: ("", None, 0.0),
}
"""Way to what a completion of it is, from the gold answer: text, what the published
extraction takes of it, and a score of then."""


def config_of(**params: Any) -> dict[str, Any]:
    return {"size": SIZE, "seed": SEED, **params}


def entries_of(pool: Any, task: str, config: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the first ten entries of a task, made in a worker."""
    call = (worker_jobs.dataset_entry, task, json.dumps(config))
    return [pool.call(*call, place, deadline_s=DEADLINE_S) for place in range(10)]


def document(
    task: str,
    category: str,
    config: Mapping[str, Any],
    entries: Sequence[Mapping[str, Any]],
    ways: Callable[[int], Sequence[str]],
) -> dict[str, Any]:
    """Return one TASK.json; `ways` says how the completions of an item are written."""
    results, means = [], []
    for place, entry in enumerate(entries):
        rows = [WAYS[way](entry["answer"]) for way in ways(place)]
        completions = [
            {"model_answer": answer, "full_model_response": text, "score": score}
            for text, answer, score in rows
        ]
        means.append(statistics.fmean(score for _, _, score in rows))
        results.append(
            {
                "question": entry["question"],
                "expected_answer": entry["answer"],
                "completions": completions,
            }
        )
    return {
        "name": task,
        "category": category,
        "average_mean_score": statistics.fmean(means),
        "config": dict(config),
        "results": results,
    }


def write(folder: Path, run: str, found: Mapping[str, Any]) -> Path:
    """Write one TASK.json where the published results have it."""
    path = folder / run / found["category"] / f"{found['name']}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(found, indent=2))
    return path
