"""The evaluation: the same items in every process, queried concurrently."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from atroposlib.envs.base import BaseEnv
from rich.console import Console

from rg_env import patience
from rg_env.atropos import start_checks
from rg_env.atropos.group_rewards import GroupRewards, scored_rollout
from rg_env.atropos.pipeline import Flight, current_group
from rg_env.atropos.result_files import EvaluationFiles
from rg_env.atropos.rollout_requests import RolloutRequests
from rg_env.evaluation.samples import NOT_USED, Row, brief, key_of, sample_of
from rg_env.inference.connection import sampling_extra_of
from rg_env.inference.request_failures import RequestFailedError
from rg_env.inference.servers import NoServerError, Servers
from rg_env.items.group_scorer import ScoringUnavailableError
from rg_env.items.run_stream import RunStream
from rg_env.off_loop import off_loop
from rg_env.reports.terminal import WorkProgress, width_of
from rg_env.rollouts.group import Group
from rg_env.scoring.score import UNSCORED, outcome_of
from rg_env.settings.kept_settings import settings_text

if TYPE_CHECKING:
    from rg_env.evaluation.summary import EvalSummary

logger = logging.getLogger(__name__)


async def prepare(made: RunStream) -> None:
    """Make the evaluation items that are not made yet."""
    making = made.evaluation
    title, done = "making evaluation items", making.done
    with WorkProgress(title, making.total, "items", done) as progress:
        making.on_done = lambda number: progress.advance(by=number)
        await making.finished()


class Evaluation:
    """One evaluation, in `evaluate` or beside the training: k completions of each item.

    Args:
        env: Its hooks `rollout_and_score_eval` and `evaluate_log` score a completion
            and write the numbers.
        made: What the run samples.
        requests: Checks whether prompts leave room.
        rewards: Knows the versions of what scores.
        servers: Told of each failed request; when it gives up, what is left counts as
            failed at once.
    """

    def __init__(
        self,
        env: BaseEnv,
        made: RunStream,
        requests: RolloutRequests,
        rewards: GroupRewards,
        servers: Servers,
    ) -> None:
        self._env = env
        self._made = made
        self._requests = requests
        self._versions = rewards.versions
        self._servers = servers
        config = env.config
        preset = {} if config.eval_preset is None else {"preset": config.eval_preset}
        # What every line says.
        self._about = {"model": env.server.servers[0].config.model_name, **preset}

    async def run(self) -> bool:
        """Query all evaluation items; write, show and keep the results.

        Returns:
            Whether something was evaluated, and all that was wanted is on disk.
        """
        began, env, config = time.time(), self._env, self._env.config
        await prepare(self._made)
        items = env.test_items_with_scorers
        if env.process_mode:  # a training run has others to go on with
            questions = [entry["question"] for entry, _ in items]
            await self._requests.check_evaluation(questions, env.eval_limit_tokens)
        async with EvaluationFiles(
            config.data_dir_to_save_evals,
            settings_text(config, env.server.servers, self._versions),
            len(items) * config.eval_completions,
            resumes=env.process_mode,
        ) as files:
            rows = await self._rows(items, files)
            rows += [
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
                for spec, reason in self._made.evaluation.missing
            ]
            summary = await off_loop(_summary, rows)
            env.eval_metrics = list(summary.metrics().items())
            show(summary, as_json=env.shows_json, with_tasks=env.shows_tasks)

            async def write_numbers(folder: Path) -> None:
                env.evaluation_folder = folder
                await self._write_numbers(folder, summary, began)

            gave_up = self._servers.gave_up.is_set()
            is_kept = await files.finish(rows, None if gave_up else write_numbers)
        return summary.overall is not None and is_kept

    def _category_of(self, task: str) -> str:
        tasks = self._made.library.tasks
        return tasks[task].category if task in tasks else "other"

    async def _rows(
        self, items: Sequence[tuple[Mapping[str, Any], Any]], files: EvaluationFiles
    ) -> list[Row]:
        """Request all completions that are still missing, concurrently.

        Args:
            items: (entry, dataset), shape (N,).
            files: Has the lines of completions that are there, and gets the others.

        Returns:
            One line per completion, without messages, shape (N * k,), same order.
        """
        completions = range(self._env.config.eval_completions)
        known = [self._known(*item, n) for item in items for n in completions]
        tested = [item for item in items for _ in completions]
        there = {key_of(row): row for row in files.done}
        rows = [there.get(key_of(row)) for row in known]
        missing = [i for i, row in enumerate(rows) if row is None]
        scores = [float(row["score"]) for row in rows if row is not None]
        places, flight = iter(missing), Flight(has_grace=False)

        async def next_work() -> Coroutine[Any, Any, None] | None:
            place = next(places, None)
            return None if place is None else evaluate(place)

        async def evaluate(place: int) -> None:
            row = {**known[place], **await self._result(tested[place])}
            if row.get("score") is not None:
                await files.keep(row)
                scores.append(row["score"])
            mean = f"mean score {sum(scores) / len(scores):.3f}" if scores else ""
            progress.advance(mean)
            rows[place] = brief(row)

        most = self._env.config.max_eval_workers
        with WorkProgress("evaluation", len(missing), "completions") as progress:
            await flight.run(next_work, lambda: len(flight.workers) < most)
        return [row for row in rows if row is not None]

    def _known(self, entry: Mapping[str, Any], handle: Any, number: int) -> Row:
        """Return the fields of a line that are known before its completion."""
        group = Group(entry=entry, dataset=handle)
        origin = {n: value for n, value in group.origin.items() if n != "split"}
        if origin and handle.size > 1:
            origin["size"] = handle.size
        return {
            "task": group.task,
            "category": self._category_of(group.task),
            **origin,
            "question": entry["question"],
            "gold_answer": group.gold_answer,
            "completion": number,
            **self._about,
        }

    async def _result(self, item: tuple[Mapping[str, Any], Any]) -> Row:
        """Return what a line says of a completion; one that keeps failing has no score.

        The group of this task gets the completion, unless a subclass has queried by
        itself.
        """
        outcome = reason = "request_failed"
        tries = 0
        while tries < patience.EVALUATION_TRIES and not self._servers.gave_up.is_set():
            current_group.set(group := Group(item))
            try:
                value = float(await self._env.rollout_and_score_eval(item))
            except RequestFailedError as error:
                # No server was there, which is not this item's fault.
                tries += not isinstance(error, NoServerError)
                outcome, reason = "request_failed", str(error)
                await self._servers.note_failure(error.failure)
            except ScoringUnavailableError as error:
                tries += 1
                outcome, reason = UNSCORED, str(error)
            else:
                return self._scored(group, value)
        return {"outcome": outcome, "reason": reason}

    def _scored(self, group: Group, value: float) -> Row:
        if not group.rollouts:
            return {"score": value, "outcome": outcome_of(value)}
        (rollout,) = group.rollouts
        has_tokens = self._env.config.tokenizer_name != start_checks.NO_TOKENIZER
        return {
            "answer": rollout.answer,
            "score": value,
            "outcome": rollout.outcome if value == rollout.score else outcome_of(value),
            "finish_reason": rollout.finish_reason,
            "prompt_tokens": rollout.prompt_tokens if has_tokens else None,
            "completion_tokens": rollout.completion_tokens if has_tokens else None,
            "messages": list(rollout.conversation),
        }

    async def _write_numbers(
        self, folder: Path, summary: EvalSummary, began: float
    ) -> None:
        env, config = self._env, self._env.config
        sampling = {
            "temperature": config.eval_temperature,
            "top_p": 1.0,
            "max_new_tokens": env.eval_limit_tokens,  # with the prompt
            "completions": config.eval_completions,
            **sampling_extra_of(env.server.servers[0].config),
            "versions": self._versions,
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


async def score_one(
    test_item: Sequence[Any],
    requests: RolloutRequests,
    rewards: GroupRewards,
    limit_tokens: int,
) -> float:
    """Return the score of a completion of an item, which no metric counts.

    The group that the task works on, if it is on any, gets the completion.
    """
    entry, dataset = tuple(test_item)[-2:]
    messages = requests.messages(entry["question"], evaluates=True)
    completed = await requests.query(
        (messages, entry, dataset), limit_tokens, split="eval"
    )
    (score,) = await rewards.scores_of(completed)
    if (group := current_group.get()) is not None:
        group.rollouts = [scored_rollout(completed[0], score, score.value)]
    return score.value


def _summary(rows: Iterable[Row]) -> EvalSummary:
    from rg_env.evaluation.summary import summarise  # and polars, which takes its time

    return summarise([*map(sample_of, rows)])


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
