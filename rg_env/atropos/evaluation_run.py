"""The evaluation: the same items in every process, queried concurrently."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from rg_env.atropos import start_checks
from rg_env.atropos.group_rewards import scored_rollout
from rg_env.atropos.pipeline import Flight, Pipeline, current_group
from rg_env.atropos.result_files import NUMBERS, EvaluationFiles, settings_text
from rg_env.inference.connection import RequestFailedError, sampling_extra_of
from rg_env.off_loop import off_loop
from rg_env.results.samples import NOT_USED, Row, brief, key_of, sample_of
from rg_env.results.sources import METRICS
from rg_env.results.terminal import WorkProgress, width_of
from rg_env.reward.score import UNSCORED, outcome_of
from rg_env.run.group import Group
from rg_env.stream.group_scorer import ScoringUnavailableError

if TYPE_CHECKING:
    from rg_env.results.summary import EvalSummary

logger = logging.getLogger(__name__)


class Evaluating(Pipeline):
    """The hooks of an evaluation: k completions of each of its items.

    It runs in `evaluate`, or beside the training of `serve`.
    """

    eval_metrics: list[tuple[str, float]]  # of the newest evaluation
    evaluation_folder: Path | None = None  # once it is complete, if it was saved
    shows_json = shows_tasks = False  # what `evaluate` prints

    async def _run_evaluate(self) -> None:
        """`evaluate`: one evaluation."""
        self.process_mode = True
        await self._live("evaluate", self._evaluate_alone())

    async def _evaluate_alone(self) -> None:
        await self._set_up_alone()
        await self.run_evaluation()
        if self.evaluation_folder is not None:
            self._dumps.put_numbers(self.evaluation_folder / METRICS)
        await self.wandb_log({})

    @property
    def eval_limit_tokens(self) -> int:
        """The longest sequence of an evaluation that may be generated, in tokens."""
        return self.config.eval_max_token_length or self.limit_tokens

    async def rollout_and_score_eval(self, test_data_tuple: Any) -> float:
        """Return the score of a completion of an item, which no metric counts.

        The group that the task works on, if it is on any, gets the completion. The item
        is whole, or (entry, dataset).
        """
        entry, dataset = tuple(test_data_tuple)[-2:]
        messages = self._requests.messages(entry["question"], evaluates=True)
        item = messages, entry, dataset
        limit, group = self.eval_limit_tokens, current_group.get()
        first = 0 if group is None else group.first
        querying = self._requests.query(item, limit, split="eval", first=first)
        (completed,) = await querying
        (score,) = await self._rewards.scores_of([completed])
        if group is not None:
            group.rollouts = [scored_rollout(completed, score, score.value)]
        return float(score.value)

    async def run_evaluation(self) -> None:
        """Call the hook `evaluate` once the evaluation items are made."""
        await self._make_evaluation_items()
        await self.evaluate()

    async def _make_evaluation_items(self) -> None:
        if self._items is None:  # a subclass with items of its own
            return
        making = self._items.evaluation
        title, done = "making evaluation items", making.done
        with WorkProgress(title, making.total, "items", done) as progress:
            await making.finished(lambda number: progress.advance(by=number))

    async def evaluate(self, *args: Any, **kwargs: Any) -> None:
        """Query all evaluation items; write, show and keep the results."""
        began, config = time.time(), self.config
        await self._make_evaluation_items()
        items = self.test_items_with_scorers
        if self.process_mode:  # a training run has others to go on with
            questions = [entry["question"] for entry, _ in items]
            await self._requests.check_evaluation(questions, self.eval_limit_tokens)
        async with EvaluationFiles(
            config.data_dir_to_save_evals,
            settings_text(config, self._servers.clients, self._dumps.versions),
            len(items) * config.eval_completions,
            resumes=self.process_mode,
        ) as files:
            rows = [*await self._samples(items, files), *self._not_used()]
            summary = await off_loop(_summary, rows)
            self.eval_metrics = list(summary.metrics().items())
            _show(summary, as_json=self.shows_json, with_tasks=self.shows_tasks)
            gave_up = self._servers.gave_up.is_set()
            if folder := await files.finish(rows, gave_up=gave_up):
                await self._write_numbers(folder, summary, began)
        is_kept = self.evaluation_folder or config.data_dir_to_save_evals is None
        if self.process_mode and (summary.overall is None or not is_kept):
            self._lifetime.fail()

    async def _samples(
        self, items: Sequence[tuple[Mapping[str, Any], Any]], files: EvaluationFiles
    ) -> list[Row]:
        """Request all completions that `files` lacks, concurrently.

        Returns a line per completion, without messages, shape (N * k,), same order.
        """
        completions = range(self.config.eval_completions)
        known = [self._known(*item, n) for item in items for n in completions]
        sampled = [item for item in items for _ in completions]
        there = {key_of(row): row for row in files.done}
        rows = [there.get(key_of(row)) for row in known]
        missing = [i for i, row in enumerate(rows) if row is None]
        scores = [float(row["score"]) for row in rows if row is not None]
        places, flight = iter(missing), Flight()

        async def next_work() -> Coroutine[Any, Any, None] | None:
            place = next(places, None)
            return None if place is None else evaluate(place)

        async def evaluate(place: int) -> None:
            number = known[place]["completion"]
            row = {**known[place], **await self._result(sampled[place], number)}
            if row.get("score") is not None:
                await files.keep(row)
                scores.append(row["score"])
            mean = f"mean score {sum(scores) / len(scores):.3f}" if scores else ""
            progress.advance(mean)
            rows[place] = brief(row)

        most = self.config.max_eval_workers
        with WorkProgress("evaluation", len(missing), "completions") as progress:
            await flight.run(next_work, lambda: len(flight.workers) < most)
        return [row for row in rows if row is not None]

    def _line(self, task: str, **fields: Any) -> Row:
        """Return a line of a task with the category, the model, a preset if any."""
        preset, items = self.config.eval_preset, self._items
        of_library = None if items is None else items.library.tasks.get(task)
        return {
            "task": task,
            "category": of_library.category if of_library else "other",
            **fields,
            "model": self._server.model_name,
            **({} if preset is None else {"preset": preset}),
        }

    def _known(self, entry: Mapping[str, Any], handle: Any, number: int) -> Row:
        """Return the fields of a line that are known before its completion."""
        group = Group(entry=entry, dataset=handle)
        origin = {n: value for n, value in group.origin.items() if n != "split"}
        if origin and handle.size > 1:
            origin["size"] = handle.size
        texts = {"question": entry["question"], "gold_answer": group.gold_answer}
        return self._line(group.task, **origin, **texts, completion=number)

    def _not_used(self) -> Iterator[Row]:
        missing = [] if self._items is None else self._items.evaluation.missing
        for spec, reason in missing:
            origin = {"seed": spec.seed, "index": spec.index, "level": spec.level}
            line = self._line(
                spec.task, **origin, params=dict(spec.params), question=""
            )
            yield {**line, "outcome": NOT_USED, "reason": reason}

    async def _result(self, item: tuple[Mapping[str, Any], Any], number: int) -> Row:
        """Return what a line says of a completion; one that fails has no score."""
        current_group.set(group := Group(item, first=number))
        while not self._servers.gave_up.is_set():
            try:
                value = float(await self.rollout_and_score_eval(item))
                break
            except RequestFailedError as error:
                # Where no server is there, that is not this item's fault.
                if not self._servers.is_down:
                    return {"outcome": "request_failed", "reason": str(error)}
            except ScoringUnavailableError as error:
                return {"outcome": UNSCORED, "reason": str(error)}
        else:
            return {"outcome": "request_failed", "reason": "given up"}
        if not group.rollouts:  # a subclass has queried by itself
            return {"score": value, "outcome": outcome_of(value)}
        (rollout,) = group.rollouts
        has_tokens = self.config.tokenizer_name != start_checks.NO_TOKENIZER
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
        config = self.config
        sampling = {
            "temperature": config.eval_temperature,
            "top_p": 1.0,
            "max_new_tokens": self.eval_limit_tokens,  # with the prompt
            "completions": config.eval_completions,
            **sampling_extra_of(self._server),
            "versions": self._dumps.versions,
        }
        wanted, self.evaluation_folder = config.data_dir_to_save_evals, folder
        config.data_dir_to_save_evals = str(folder)  # where the framework writes
        try:
            await self.evaluate_log(
                metrics={**summary.metrics(), "summary": summary.as_json()},
                start_time=began,
                end_time=time.time(),
                generation_parameters=sampling,
                verbose=False,
            )
            logger.info("results: %s", folder)
        except OSError as error:
            # Half a file would make the evaluation a complete one.
            (folder / NUMBERS).unlink(missing_ok=True)
            self.evaluation_folder = None
            logger.error("env.data_dir_to_save_evals: %s: %s", folder, error)
        finally:
            config.data_dir_to_save_evals = wanted


def _summary(rows: Sequence[Row]) -> EvalSummary:
    # And polars, which takes its time.
    from rg_env.results.summary import EvalSummary

    return EvalSummary(map(sample_of, rows))


def _show(summary: EvalSummary, *, as_json: bool, with_tasks: bool) -> None:
    """Print the table of an evaluation, and list what was not evaluated."""
    if as_json:
        print(json.dumps(summary.as_json(), indent=2))  # noqa: T201 - what was asked for
        return
    console = Console()
    console.width = width_of(console)
    if summary.overall is not None:
        console.print(summary.table(with_tasks=with_tasks))
    outcomes = ", ".join(f"{word} {n}" for word, n in summary.outcomes.items())
    console.print(f"outcomes: {outcomes}", highlight=False)
