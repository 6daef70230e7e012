"""The evaluation: the same items in every process, queried concurrently."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from atroposlib.envs.base import BaseEnv
from rich.console import Console

from rg_env import patience
from rg_env.atropos import start_checks
from rg_env.atropos.evaluation_files import EvaluationFiles
from rg_env.atropos.group_rewards import (
    GroupRewards,
    Rollout,
    completion_tokens,
    task_and_provenance,
)
from rg_env.atropos.rollout_requests import LengthLimit, RolloutRequests
from rg_env.evaluation.samples import NOT_USED, Row, brief, key_of, sample_of
from rg_env.inference.connection import sampling_extra_of
from rg_env.inference.request_failures import RequestFailedError
from rg_env.inference.servers import NoServerError, Servers
from rg_env.items.group_scorer import ScoringUnavailableError
from rg_env.items.item import Item
from rg_env.items.run_stream import RunStream
from rg_env.off_loop import off_loop
from rg_env.reports.terminal import WorkProgress, width_of
from rg_env.scoring.score import UNSCORED, Score, outcome_of
from rg_env.settings.kept_settings import settings_text

if TYPE_CHECKING:
    from rg_env.evaluation.summary import EvalSummary

logger = logging.getLogger(__name__)


class EvaluationItem(tuple[Mapping[str, Any], Any]):
    """(entry, dataset) of one completion, as `rollout_and_score_eval` is given it.

    Attributes:
        found: The rollout and its score; None if a subclass has queried by itself.
    """

    found: tuple[Rollout, Score] | None = None


class Evaluations:
    """Runs the evaluations: one in `evaluate`, and one every few steps in `serve`.

    Args:
        env: Its hooks `rollout_and_score_eval` and `evaluate_log` score a completion
            and write the numbers.
        length: How long a completion may become.
        requests: Queries the servers.
        rewards: Scores the completions.
        servers: Those that are queried.
    """

    def __init__(
        self,
        env: BaseEnv,
        length: LengthLimit,
        requests: RolloutRequests,
        rewards: GroupRewards,
        servers: Servers,
    ) -> None:
        self._env = env
        self._length = length
        self._requests = requests
        self._rewards = rewards
        self._servers = servers

    async def rollout(self, test_item: Sequence[Any]) -> float:
        """Return the score of a rollout of an item, which no metric counts."""
        entry, dataset = tuple(test_item)[-2:]
        rollout = await self._requests.query_evaluation(entry, dataset)
        (score,) = await self._rewards.scores_of([rollout])
        if isinstance(test_item, EvaluationItem):
            test_item.found = rollout, score
        return score.value

    async def prepare(self, made: RunStream) -> None:
        """Make the evaluation items that are not made yet."""
        making = made.evaluation
        title, done = "making evaluation items", making.done
        with WorkProgress(title, making.total, "items", done) as progress:
            making.on_done = lambda number: progress.advance(by=number)
            await making.finished()

    async def evaluate(self, made: RunStream) -> bool:
        """Query all evaluation items; write, show and keep the results.

        Returns:
            Whether something was evaluated, and all that was wanted is on disk.
        """
        began, env, config = time.time(), self._env, self._env.config
        await self.prepare(made)
        items, servers = env.test_items_with_scorers, env.server.servers
        tasks = made.library.tasks
        if env.process_mode:  # a training run has others to go on with
            await self._requests.check_evaluation([e["question"] for e, _ in items])
        evaluation = Evaluation(
            items,
            env.rollout_and_score_eval,
            category_of=lambda task: tasks[task].category if task in tasks else "other",
            completions=config.eval_completions,
            about=about(config, servers[0].config),
            has_tokens=config.tokenizer_name != start_checks.NO_TOKENIZER,
            servers=self._servers,
        )
        async with EvaluationFiles(
            config.data_dir_to_save_evals,
            settings_text(config, servers, self._rewards.versions),
            len(evaluation.wanted),
            resumes=env.process_mode,
        ) as files:
            rows = await evaluation.run(files.done, config.max_eval_workers, files.keep)
            rows += evaluation.rows_not_used(made.evaluation.missing)
            summary = await off_loop(_summary, rows)
            env.eval_metrics = list(summary.metrics().items())
            show(summary, as_json=env.shows_json, with_tasks=env.shows_tasks)

            async def write_numbers(folder: Path) -> None:
                env.evaluation_folder = folder
                await self._write_numbers(folder, summary, began)

            gave_up = self._servers.gave_up.is_set()
            is_kept = await files.finish(rows, None if gave_up else write_numbers)
        return summary.overall is not None and is_kept

    async def _write_numbers(
        self, folder: Path, summary: EvalSummary, began: float
    ) -> None:
        env, config = self._env, self._env.config
        sampling = {
            "temperature": config.eval_temperature,
            "top_p": 1.0,
            "max_new_tokens": self._length.evaluation_tokens,  # with the prompt
            "completions": config.eval_completions,
            **sampling_extra_of(env.server.servers[0].config),
            "versions": self._rewards.versions,
        }
        wanted = config.data_dir_to_save_evals
        config.data_dir_to_save_evals = str(folder)  # where the framework writes
        try:
            await env.evaluate_log(
                metrics={**summary.metrics(), "summary": summary.as_json()},
                start_time=began,
                end_time=time.time(),
                generation_parameters=sampling,
                verbose=False,
            )
        finally:
            config.data_dir_to_save_evals = wanted


class Evaluation:
    """One evaluation: k completions of each of its items.

    Args:
        items: (entry, dataset), shape (N,).
        rollout: Queries for one completion of an item and scores it: the hook.
        category_of: Task to category.
        completions: Number of completions for each item.
        about: Fields that every line of samples.jsonl contains.
        has_tokens: Whether tokens can be counted.
        servers: Told of each failed request; when it gives up, what is left counts as
            failed at once.
    """

    def __init__(
        self,
        items: Sequence[tuple[Mapping[str, Any], Any]],
        rollout: Callable[[EvaluationItem], Awaitable[float]],
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
        """Request all completions that are still missing, concurrently.

        Args:
            done: Lines of existing completions; lines of other items are ignored.
            max_in_flight: Completions in flight at once.
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

        missing = sum(row is None for row in there)
        with WorkProgress("evaluation", missing, "completions") as progress:
            return list(await asyncio.gather(*map(evaluated, there, self.wanted)))

    def _known(self, entry: Mapping[str, Any], handle: Any, number: int) -> Row:
        """Return the fields of a line that are known before its completion."""
        task, item = task_and_provenance(entry, handle)
        made = {} if item is None else dict(vars(item), size=handle.size)
        unsaid = {"split"} | ({"size"} if made.get("size") == 1 else set())
        return {
            "task": task,
            "category": self._category_of(task),
            **{name: value for name, value in made.items() if name not in unsaid},
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
            item = EvaluationItem((entry, handle))
            try:
                value = float(await self._rollout(item))
            except RequestFailedError as error:
                # No server was there, which is not this item's fault.
                tries += not isinstance(error, NoServerError)
                outcome = "request_failed"
                reason = str(error)
                await self._servers.note_failure(error.failure)
            except ScoringUnavailableError as error:
                tries += 1
                outcome = UNSCORED
                reason = str(error)
            else:
                return {**known, **self._found(item, value)}
        return {**known, "outcome": outcome, "reason": reason}

    def _found(self, item: EvaluationItem, value: float) -> Row:
        if item.found is None:
            return {"score": value, "outcome": outcome_of(value)}
        rollout, score = item.found
        length = completion_tokens(rollout) if self._has_tokens else None
        return {
            "answer": score.answer,
            "score": value,
            "outcome": score.outcome if value == score.value else outcome_of(value),
            "finish_reason": rollout["finish_reason"],
            "prompt_tokens": None
            if length is None
            else len(rollout["tokens"]) - length,
            "completion_tokens": length,
            "messages": [dict(message) for message in rollout["messages"]],
        }

    def rows_not_used(self, missing: Iterable[tuple[Item, str]]) -> list[Row]:
        """Return the lines of items that are not used, with the reason."""
        return [
            {
                "task": spec.task,
                "category": self._category_of(spec.task),
                "seed": spec.seed,
                "index": spec.index,
                "level": spec.level,
                "params": dict(spec.params),
                "question": "",
                **self._about,
                "outcome": NOT_USED,
                "reason": reason,
            }
            for spec, reason in missing
        ]


def _summary(rows: Iterable[Row]) -> EvalSummary:
    from rg_env.evaluation.summary import summarise  # and polars, which takes its time

    return summarise([*map(sample_of, rows)])


def about(config: Any, server: Any) -> Row:
    """Return what every line says: the model, and the preset if there is one."""
    preset = {} if config.eval_preset is None else {"preset": config.eval_preset}
    return {"model": server.model_name, **preset}


def show(
    summary: EvalSummary, *, as_json: bool = False, with_tasks: bool = False
) -> None:
    """Print the table of an evaluation, and list what was not evaluated."""
    if as_json:
        print(json.dumps(summary.as_json(), indent=2))  # noqa: T201 - what was asked for
        return
    console = Console()
    console.width = width_of(console)
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
