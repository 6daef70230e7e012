"""The evaluation: the same items in every process, asked concurrently."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any

from rich.console import Console

from rg_env import patience
from rg_env.atropos.group import Group, completion_tokens
from rg_env.evaluation.samples import NOT_USED, UNSCORED, Row, brief, key_of
from rg_env.evaluation.summary import EvalSummary
from rg_env.inference.request_failures import RequestFailedError
from rg_env.inference.servers import NoServerError, Servers
from rg_env.items.group_scorer import ScoringUnavailableError
from rg_env.reports.progress_bar import WorkProgress
from rg_env.tasks.evaluation_specs import EvalSpec

logger = logging.getLogger(__name__)

EvalRollout = Callable[[Mapping[str, Any], Any], Awaitable[Group]]
"""From the entry and the dataset of an item to a group of one rollout, scored."""

TABLE_WIDTH = 120
"""Where no terminal says another."""


class Evaluation:
    """One evaluation: k completions of each of its items.

    Args:
        items: (entry, dataset), shape (N,).
        rollout: Asks for one completion of an item and scores it.
        category_of: Task to category.
        completions: Of each item.
        about: What every line of samples.jsonl says.
        has_tokens: Whether tokens can be counted.
        servers: Told of each failed request; when it gives up, what is left counts as
            failed at once.
    """

    def __init__(
        self,
        items: Sequence[tuple[Mapping[str, Any], Any]],
        rollout: EvalRollout,
        *,
        category_of: Callable[[str], str],
        completions: int,
        about: Mapping[str, Any],
        has_tokens: bool,
        servers: Servers,
    ) -> None:
        self._rollout = rollout
        self._category_of = category_of
        self._about = about
        self._has_tokens = has_tokens
        self._servers = servers
        self.wanted = [(*item, n) for item in items for n in range(completions)]

    async def run(
        self,
        done: Iterable[Row],
        max_in_flight: int,
        keep: Callable[[Row], Awaitable[None]],
    ) -> list[Row]:
        """Ask for all completions that are not there yet, concurrently.

        Args:
            done: Lines of those that are there; others are passed over.
            max_in_flight: Completions asked for at once.
            keep: Given the line of each that has a score, as it comes.

        Returns:
            One line per completion, without messages, shape (N * k,), same order.
        """
        by_key = {key_of(row): row for row in done}
        first = [self._known(*one) for one in self.wanted]
        there = [by_key.get(key_of(row)) for row in first]
        scores = [float(row["score"]) for row in there if row is not None]
        places = asyncio.Semaphore(max_in_flight)

        async def evaluated(row: Row | None, one: Any) -> Row:
            if row is not None:
                return row
            async with places:
                row = await self._line(*one)
                if row.get("score") is not None:
                    await keep(row)
                    scores.append(row["score"])
            mean = f"mean score {sum(scores) / len(scores):.3f}" if scores else ""
            progress.advance(mean)
            return brief(row)

        asked = sum(row is None for row in there)
        with WorkProgress("evaluation", asked, "completions") as progress:
            return list(await asyncio.gather(*map(evaluated, there, self.wanted)))

    def _known(self, entry: Mapping[str, Any], handle: Any, number: int) -> Row:
        """Return what a line says of a completion before it is there."""
        return {
            "task": handle.task,
            "category": self._category_of(handle.task),
            "seed": handle.seed,
            "index": handle.index,
            **({"size": handle.size} if handle.size > 1 else {}),
            "level": handle.level,
            "params": dict(handle.params),
            "question": entry["question"],
            "gold_answer": entry.get("answer"),
            "completion": number,
            **self._about,
        }

    async def _line(self, entry: Mapping[str, Any], handle: Any, number: int) -> Row:
        """Return the line of a completion; one that keeps failing has no score."""
        known = self._known(entry, handle, number)
        outcome = reason = "request_failed"
        tries = 0
        while tries < patience.EVALUATION_TRIES and not self._servers.gave_up.is_set():
            try:
                group = await self._rollout(entry, handle)
            except RequestFailedError as error:
                # For which no item can be blamed.
                tries += not isinstance(error, NoServerError)
                outcome = "request_failed"
                reason = str(error)
                await self._servers.note_failure(error.failure)
            except ScoringUnavailableError as error:
                tries += 1
                outcome = UNSCORED
                reason = str(error)
            else:
                return {**known, **self._found(group)}
        return {**known, "outcome": outcome, "reason": reason}

    def _found(self, group: Group) -> Row:
        (rollout,), (score,) = group.rollouts, group.scores
        length = completion_tokens(rollout) if self._has_tokens else None
        return {
            "answer": score.answer,
            "score": score.value,
            "outcome": score.outcome,
            "finish_reason": rollout["finish_reason"],
            "prompt_tokens": None
            if length is None
            else len(rollout["tokens"]) - length,
            "completion_tokens": length,
            "messages": [dict(message) for message in rollout["messages"]],
        }

    def rows_not_used(self, missing: Iterable[tuple[EvalSpec, str]]) -> list[Row]:
        """Return the lines of items that nobody is asked, with the reason."""
        return [
            {
                "task": spec.task,
                "category": self._category_of(spec.task),
                "seed": spec.seed,
                "index": spec.number,
                "level": spec.level,
                "params": dict(spec.params),
                "question": "",
                **self._about,
                "outcome": NOT_USED,
                "reason": reason,
            }
            for spec, reason in missing
        ]


def about(config: Any, server: Any) -> Row:
    """Return what every line says: the model, and the preset if there is one."""
    preset = {} if config.eval_preset is None else {"preset": config.eval_preset}
    return {"model": server.model_name, **preset}


def show(
    summary: EvalSummary, *, as_json: bool = False, with_tasks: bool = False
) -> None:
    """Print the table of an evaluation, and what was not evaluated."""
    if as_json:
        print(json.dumps(summary.as_json(), indent=2))  # noqa: T201 - what was asked for
        return
    console = Console()
    if not console.is_terminal:
        console.width = TABLE_WIDTH
    if summary.overall is not None:
        console.print(summary.table(with_tasks=with_tasks))
    for line in summary.notes():
        console.print(line, highlight=False)


def log_failure(evaluation: asyncio.Task[Any]) -> None:
    """Log the error of an evaluation that ran beside the training, if it had one.

    Mends B11 of docs/host_defects.md: such an error is never seen.
    """
    if not evaluation.cancelled() and evaluation.exception() is not None:
        logger.error("an evaluation failed", exc_info=evaluation.exception())
