"""The evaluation: a run over items that are the same in every process.

Its source has a group of one completion for each item, `eval_completions` times, and
its sink writes a sample of each completion. A completion that is given up gets a sample
without a score.
"""

from __future__ import annotations

import dataclasses
import json
import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.text import Text

from rg_env.atropos import start_checks
from rg_env.atropos.hooks import Hooks, group_at_work, override_of
from rg_env.atropos.model import Completions
from rg_env.atropos.rewards import GroupRewards
from rg_env.executor import in_thread
from rg_env.inference.connection import sampling_extra_of
from rg_env.results.evaluation_files import METRICS_FILE, EvaluationFiles
from rg_env.results.result_file import settings_text
from rg_env.results.samples import NOT_USED, Row, sample_of
from rg_env.results.terminal import WorkProgress, rendered
from rg_env.reward.score import outcome_of
from rg_env.run.group import Group, Rollout
from rg_env.run.group_loop import Run, Window
from rg_env.stream.evaluation_items import items_digest
from rg_env.stream.item import Item

if TYPE_CHECKING:
    from rg_env.results.score_tables import EvalSummary

logger = logging.getLogger(__name__)


@dataclasses.dataclass
class Evaluation:
    """Evaluates the model: once in `evaluate`, and every few steps in `serve`.

    Attributes:
        env: The environment.
        model: Completes the items.
        reward: Scores the completions.
        folder: The folder of the newest complete evaluation; None if it was not saved.
        shows_json: Whether `evaluate` prints JSON instead of a table.
        shows_tasks: Whether the table has a row for each task.
    """

    env: Any
    model: Completions
    reward: GroupRewards
    folder: Path | None = None
    shows_json: bool = False
    shows_tasks: bool = False
    _digest: str | None = None  # of the items; None for items of a subclass

    async def score_of(self, item: Any) -> float:
        """Complete an item once, and return the score; no metric counts it.

        The rollout goes to the group of the evaluation that calls this, if one does.

        Args:
            item: (messages, entry, dataset), or (entry, dataset).
        """
        group = group_at_work.get()
        if group is None or group.ledger is self.env.ledger:  # a group of the training
            group = Group()
        await self.model.complete(group, self._with_messages(item))
        await self.reward.score(group)
        return float(group.rollouts[0].score)

    def _with_messages(self, item: Any) -> Any:
        entry, dataset = tuple(item)[-2:]
        seed = dataset.seed if isinstance(dataset, Item) else 0
        messages = self.env._prompts.messages(entry["question"], seed, evaluates=True)
        return messages, entry, dataset

    async def _complete_by_hook(self, group: Group) -> None:
        """Call the overridden `rollout_and_score_eval` for an item.

        If it calls `super()`, the rollout stays, with the returned score. Otherwise the
        rollout has only that score.
        """
        group_at_work.set(group)
        value = float(await self.env.rollout_and_score_eval(group.item[-2:]))
        rollout = group.rollouts[0] if group.rollouts else Rollout()
        if not rollout.outcome or rollout.score != value:
            outcome = outcome_of(value)
            rollout = dataclasses.replace(
                rollout, score=value, reward=value, outcome=outcome
            )
        group.rollouts = [rollout]

    async def make_items(self) -> None:
        """Wait until the evaluation items are made."""
        if self.env._items is None:  # a subclass has items of its own
            return
        making = self.env._items.evaluation
        title = "making evaluation items"
        with WorkProgress(title, making.total, "items", making.done) as progress:
            await making.check_all(lambda number: progress.advance(by=number))

    async def run(self) -> None:
        """Query all evaluation items; save, print and log the results."""
        env = self.env
        began_s = time.time()
        await self.make_items()
        items = env.test_items_with_scorers
        self._digest = await in_thread(self._digest_of, items)
        is_command = env.process_mode
        if is_command:  # `serve` goes on training without an evaluation
            prompts = [self._with_messages(item)[0] for item in items]
            await env._prompts.check_evaluation(prompts, env.eval_limit_tokens)
        async with self._files(items) as files:
            await self._complete(items, files)
            rows = [*files.rows, *self._not_used()]
            summary = await in_thread(_summary, rows)
            env.eval_metrics = list(summary.metrics().items())
            self._print(summary)
            gave_up = env._servers.gave_up.is_set()
            if folder := await files.finish(rows, gave_up=gave_up):
                await self._write_metrics(folder, summary, began_s)
        is_saved = self.folder or env.config.data_dir_to_save_evals is None
        if is_command and (summary.overall is None or not is_saved):
            env._lifetime.fail()

    def _files(self, items: Sequence[Any]) -> EvaluationFiles:
        env = self.env
        config = env.config
        known = [
            self._known(entry, dataset, number)
            for entry, dataset in items
            for number in range(config.eval_completions)
        ]
        return EvaluationFiles(
            config.data_dir_to_save_evals,
            settings_text(config, env._servers.clients, env._dumps.versions),
            known,
            may_continue=env.process_mode,
            has_tokens=config.tokenizer_name != start_checks.NO_TOKENIZER,
        )

    def _digest_of(self, items: Sequence[Any]) -> str | None:
        ours = [dataset for _, dataset in items if isinstance(dataset, Item)]
        if self.env._items is None or len(ours) < len(items):
            return None
        return items_digest(ours, self.env._items.library.release)

    async def _complete(self, items: Sequence[Any], files: EvaluationFiles) -> None:
        """Request all completions that `files` lacks, concurrently."""
        per_item = self.env.config.eval_completions
        groups = (
            Group(
                self._with_messages(items[index // per_item]),
                first_index=index % per_item,
                source_info=index,
            )
            for index in files.missing
        )

        async def next_group() -> Group | None:
            return next(groups, None)

        run = Run(
            next_item=next_group,
            complete=self.model.complete,
            score=self.reward.score,
            sinks=[files.take],
            max_tries=1,
            fatal=(Exception,),
            on_given_up=files.give_up,
        )
        if override_of(self.env, "rollout_and_score_eval", Hooks):
            run.complete = self._complete_by_hook
            run.score = None
        with WorkProgress("evaluation", len(files.missing), "completions") as progress:
            files.progress = progress
            await Window().run_all(run, self.env.config.max_eval_workers)

    def _known(self, entry: Mapping[str, Any], dataset: Any, number: int) -> Row:
        """Return the fields of a line that are known before its completion."""
        env = self.env
        group = Group(entry=entry, dataset=dataset)
        task = env._items and env._items.library.tasks.get(group.task)
        origin = group.origin
        origin.pop("split", None)
        if origin and dataset.size > 1:
            origin["size"] = dataset.size
        row = {
            "task": group.task,
            "category": task.category if task else "other",
            **origin,
            "question": entry["question"],
            "gold_answer": group.gold_answer,
            "completion": number,
            "model": env._server.model_name,
        }
        if env.config.eval_preset is not None:
            row["preset"] = env.config.eval_preset
        if self._digest is not None:
            row["items_digest"] = self._digest
        return row

    def _not_used(self) -> Iterator[Row]:
        """Yield a line for each evaluation item that is not used, with the reason."""
        if self.env._items is None:
            return
        for item, reason in self.env._items.evaluation.missing:
            known = self._known({"question": ""}, item, 0)
            yield {**known, "outcome": NOT_USED, "reason": reason}

    def _print(self, summary: EvalSummary) -> None:
        """Print the table of an evaluation, and the outcomes."""
        if self.shows_json:
            print(json.dumps(summary.as_json(), indent=2))  # noqa: T201 - asked for
            return
        tables = []
        if summary.overall is not None:
            tables.append(summary.table(with_tasks=self.shows_tasks))
        outcomes = ", ".join(f"{word} {n}" for word, n in summary.outcomes.items())
        lines = [f"outcomes: {outcomes}"]
        if summary.items_digest is not None:
            lines.append(f"items digest: {summary.items_digest}")
        print(rendered(*tables, Text("\n".join(lines))))  # noqa: T201 - as above

    async def _write_metrics(
        self, folder: Path, summary: EvalSummary, began_s: float
    ) -> None:
        env = self.env
        config = env.config
        sampling = {
            "temperature": config.eval_temperature,
            "top_p": 1.0,
            "max_new_tokens": env.eval_limit_tokens,  # with the prompt
            "completions": config.eval_completions,
            **sampling_extra_of(env._server),
            "versions": env._dumps.versions,
        }
        # The framework writes into the folder of the setting.
        wanted = config.data_dir_to_save_evals
        config.data_dir_to_save_evals = str(folder)
        self.folder = folder
        try:
            await env.evaluate_log(
                metrics={**summary.metrics(), "summary": summary.as_json()},
                start_time=began_s,
                end_time=time.time(),
                generation_parameters=sampling,
                verbose=False,
            )
            logger.info("results: %s", folder)
        except OSError as error:
            # With a truncated file, the evaluation would count as complete.
            (folder / METRICS_FILE).unlink(missing_ok=True)
            self.folder = None
            logger.error("env.data_dir_to_save_evals: %s: %s", folder, error)
        finally:
            config.data_dir_to_save_evals = wanted


def _summary(rows: Sequence[Row]) -> EvalSummary:
    # The import of polars takes time.
    from rg_env.results.score_tables import EvalSummary

    return EvalSummary(map(sample_of, rows))
