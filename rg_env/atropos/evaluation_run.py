"""The evaluation: the same items in every process, asked concurrently."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any

import yaml
from rich.console import Console

from rg_env import patience
from rg_env.inference.inference import InferenceFailed, NoServer
from rg_env.inference.outages import OutageWatch
from rg_env.items.group_scorer import ScoringUnavailable
from rg_env.reports.evaluation_summary import EvalResult, EvalSummary
from rg_env.reports.progress_bar import WorkProgress
from rg_env.scoring.score import Score

logger = logging.getLogger(__name__)

EvalRollout = Callable[
    [Mapping[str, Any], Any], Awaitable[tuple[dict[str, Any], Score]]
]


async def evaluate_items(
    items: Sequence[tuple[Mapping[str, Any], Any]],
    rollout: EvalRollout,
    *,
    category_of: Callable[[str], str],
    max_in_flight: int,
    watch: OutageWatch,
    keep: Callable[[Mapping[str, Any]], Awaitable[None]],
) -> list[EvalResult]:
    """Evaluate items concurrently.

    Args:
        items: (entry, dataset), shape (N,).
        rollout: Asks for one completion of an item and scores it.
        category_of: Task to category.
        max_in_flight: Items asked at once.
        watch: Told of each failed request; when it gives up, what is left counts as
            failed at once.
        keep: Given the sample of each item that has a score, as it comes.

    Returns:
        One result per item, shape (N,), same order.
    """
    places = asyncio.Semaphore(max_in_flight)
    score_sum, scored = 0.0, 0

    async def evaluated(entry: Mapping[str, Any], dataset: Any) -> EvalResult:
        nonlocal score_sum, scored
        async with places:
            result = await _evaluated(entry, dataset, rollout, category_of, watch)
            if result.score is not None:
                await keep(result.sample)
        if result.score is not None:
            score_sum, scored = score_sum + result.score, scored + 1
        progress.advance(f"mean score {score_sum / scored:.3f}" if scored else "")
        return result

    with WorkProgress("evaluation", len(items), "items") as progress:
        return list(await asyncio.gather(*(evaluated(*item) for item in items)))


async def _evaluated(
    entry: Mapping[str, Any],
    dataset: Any,
    rollout: EvalRollout,
    category_of: Callable[[str], str],
    watch: OutageWatch,
) -> EvalResult:
    """Evaluate one item; a request that keeps failing gives a result without score."""
    outcome = reason = "request_failed"
    tries = 0
    while tries < patience.EVALUATION_TRIES and not watch.gave_up.is_set():
        try:
            done, score = await rollout(entry, dataset)
        except InferenceFailed as error:
            tries += not isinstance(error, NoServer)  # for which no item can be blamed
            outcome = "request_failed"
            reason = str(error)
            await watch.note_failure(reason)
        except ScoringUnavailable as error:
            tries += 1
            outcome = "unscored"
            reason = str(error)
        else:
            sample = _sample(done, score, dataset)
            category = category_of(dataset.task)
            return EvalResult(
                dataset.task, category, score.value, score.outcome, sample
            )
    sample = {
        "task": dataset.task,
        "question": entry["question"],
        "outcome": outcome,
        "reason": reason,
    }
    return EvalResult(dataset.task, category_of(dataset.task), None, outcome, sample)


def _sample(rollout: Mapping[str, Any], score: Score, handle: Any) -> dict[str, Any]:
    """Return what samples.jsonl says of one item."""
    entry = rollout["rg_item"]
    return {
        "task": handle.task,
        "seed": handle.seed,
        "level": handle.level,
        "params": dict(handle.params),
        "question": entry["question"],
        "gold_answer": entry.get("answer"),
        "answer": score.answer,
        "score": score.value,
        "outcome": score.outcome,
        "finish_reason": rollout["finish_reason"],
        "messages": [dict(message) for message in rollout["messages"]],
    }


def show(summary: EvalSummary, *, as_json: bool = False) -> None:
    """Print the table of an evaluation, and what was not evaluated."""
    if as_json:
        found = dataclasses.asdict(summary)
        print(json.dumps(found, indent=2))  # noqa: T201 - what was asked for
        return
    console = Console()
    if summary.overall is not None:
        console.print(summary.table())
    if summary.failed_requests:
        console.print(
            f"{summary.failed_requests} items have no score: their requests failed"
        )


def settings_text(config: Any, servers: Iterable[Any]) -> str:
    """Return the settings of an evaluation as YAML, without keys."""
    settings = {
        "env": config.model_dump(mode="json"),
        "openai": [server.config.model_dump(mode="json") for server in servers],
    }
    for server in settings["openai"]:
        server["api_key"] = ""
        if "headers" in server:
            server["headers"] = dict.fromkeys(server["headers"], "")
    text: str = yaml.safe_dump(settings, sort_keys=False)
    return text


def log_failure(evaluation: asyncio.Task[Any]) -> None:
    """Log the error of an evaluation that ran beside the training, if it had one.

    Mends B11 of docs/host_defects.md: such an error is never seen.
    """
    if not evaluation.cancelled() and evaluation.exception() is not None:
        logger.error("an evaluation failed", exc_info=evaluation.exception())
