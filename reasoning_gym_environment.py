"""ReasoningGym environment for Atropos: every task of reasoning-gym, one environment.

    python reasoning_gym_environment.py serve --openai.base_url http://localhost:9004/v1

The class below is the host's hooks, each of which calls a room of `rg_env/`:

    sampler -> entry (worker) -> prompt -> inference server -> extraction
            -> score (worker) -> shaping -> trainer, dump files, metrics

A scored group goes to the trainer with exactly `group_size` rollouts, in one order.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import os
import sys
import time
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

_FOLDER = str(Path(__file__).resolve().parent)
if _FOLDER not in sys.path:
    sys.path.append(_FOLDER)
if __name__ == "__main__":
    from rg_env.cli import main as command_line

    command_line.end_at_interrupt()
    # The other commands spare themselves the import of the host.
    if not command_line.needs_environment(sys.argv[1:]):
        raise SystemExit(command_line.main(None, sys.argv[1:]))
    command_line.begin_workers(sys.argv[1:])
# transformers would advise to install PyTorch, which nothing here needs.
os.environ.setdefault("TRANSFORMERS_NO_ADVISORY_WARNINGS", "1")

import wandb  # noqa: E402
from atroposlib.envs.base import ScoredDataGroup  # noqa: E402
from atroposlib.envs.server_handling.server_manager import (  # noqa: E402
    APIServerConfig,
    ServerBaseline,
)

from rg_env import logs  # noqa: E402
from rg_env.answers.prompt import SYSTEM_PROMPT, Message, build_messages  # noqa: E402
from rg_env.answers.scoring import Score  # noqa: E402
from rg_env.atropos import (  # noqa: E402
    checkpoint_files,
    defaults,
    evaluation_run,
    group_forms,
    process_rows,
)
from rg_env.atropos.accounting import AccountingEnv  # noqa: E402
from rg_env.atropos.config import ReasoningGymEnvConfig  # noqa: E402
from rg_env.atropos.old_names import LegacyViews  # noqa: E402
from rg_env.atropos.server_configs import server_list  # noqa: E402
from rg_env.errors import SettingError  # noqa: E402
from rg_env.inference.generation import Completion, Inference, InferenceFailed, Sampling  # noqa: E402
from rg_env.inference.outages import OutageWatch  # noqa: E402
from rg_env.inference.prompts import Prompt, Prompts, render_prompt  # noqa: E402
from rg_env.inference.reply_arrival import tell_of_replies  # noqa: E402
from rg_env.items import worker_jobs  # noqa: E402
from rg_env.items.group_scorer import ScoringUnavailable  # noqa: E402
from rg_env.items.item_source import PATIENCE_S, NoItems  # noqa: E402
from rg_env.items.run_items import RunItems, prepare_items  # noqa: E402
from rg_env.pool.worker_pool import WorkerPool  # noqa: E402
from rg_env.reports.evaluation_summary import summarise  # noqa: E402
from rg_env.rollouts import shaping  # noqa: E402
from rg_env.rollouts.group_record import GroupRecord  # noqa: E402
from rg_env.rollouts.run_dumps import Dumps  # noqa: E402
from rg_env.tasks.feedback import Feedback  # noqa: E402

__all__ = ["ReasoningGymEnv", "ReasoningGymEnvConfig", "system_prompt"]

logger = logging.getLogger("rg_env.env")

system_prompt = SYSTEM_PROMPT

Item = tuple[Sequence[Mapping[str, str]], Mapping[str, Any], Any]

HOST_VERSION = metadata.version("atroposlib")  # too slow to ask for every group
SCORING_TRIES = 2
MAX_LONG_PROMPTS_IN_A_ROW = 200


class ReasoningGymEnv(LegacyViews, AccountingEnv):
    """Asks a model the tasks of reasoning-gym and scores what it answers.

    An item is `(messages, entry, dataset)`: the prompt as system and user message, the
    library's entry, and an object with `score_answer(answer, entry) -> float`.

    Attributes:
        percent_correct_buffer: Scores in [0, 1] since W&B was last written.
        eval_metrics: Name and value of each number of the newest evaluation.
        task_complexity_levels: Task to difficulty level in [0, 1]; writing to it moves
            the task there.
    """

    name = "reasoning_gym"
    env_config_cls = ReasoningGymEnvConfig

    def __init__(
        self,
        config: ReasoningGymEnvConfig,
        server_configs: ServerBaseline | list[APIServerConfig],
        slurm: bool = False,
        testing: bool = False,
    ) -> None:
        """Build the environment; starts no process and asks no server.

        Raises:
            SettingError: A setting cannot be used; nothing was begun.
        """
        logs.set_levels(config.debug_logging, config.suppress_base_env_logs)
        servers = server_list(
            server_configs, tokenizer_name=config.tokenizer_name, slurm=slurm
        )
        defaults.check_folders(config)
        of_servers = [server.tokenizer_name for server in servers]
        with defaults.refusing_bad_tokenizer(config.tokenizer_name, of_servers):
            super().__init__(config, servers, slurm=False, testing=testing)
        host_writer = vars(self)["jsonl_writer"]
        self.jsonl_writer: Any = process_rows.take_over(host_writer, config)
        self._watch = OutageWatch(self.server.servers)
        self._inference = Inference(
            self.server,
            self.tokenizer,
            servers[0].server_type,
            on_retry=self._watch.note_retry,
        )
        self._prompts = Prompts(self.tokenizer)
        self._dumps = Dumps(
            Path(config.data_dumps_dir),
            keep_good=config.dump_rollouts,
            keep_failed=config.dump_failed_rollouts,
            threshold=config.rollout_save_score_threshold,
        )
        self._feedback = Feedback(config.curriculum_target_accuracy)
        self._pool: WorkerPool | None = None
        self._questions: RunItems | None = None
        self._keeps_busy = False
        self.percent_correct_buffer: list[float] = []
        self.eval_metrics: list[tuple[str, float]] = []

    @classmethod
    def config_init(cls) -> tuple[ReasoningGymEnvConfig, list[APIServerConfig]]:
        """Return what the command line starts from."""
        return defaults.env_config(), defaults.servers()

    @classmethod
    def cli(cls) -> None:
        """Run the command line of this class; ends the process with a status."""
        from rg_env.cli.main import main

        raise SystemExit(main(cls, sys.argv[1:]))

    # -- setting up and ending ---------------------------------------------------------

    async def setup(self) -> None:
        """Start the workers, read the library, choose the tasks, make the eval items.

        Raises:
            SettingError: A name or parameter does not exist, the tokenizer has no
                chat template, or no prompt stays below max_token_length.
            LibraryError: reasoning-gym cannot be used.
        """
        with defaults.refusing_no_template(self.config.tokenizer_name):
            self._check_limit()
        self._pool = WorkerPool(
            self.config.worker_count,
            memory_limit_bytes=self.config.worker_memory_bytes,
            preload=worker_jobs.PRELOAD,
        )
        give_up = self.config.give_up_after_s if self.process_mode else None
        self._watch.start(give_up_after_s=give_up)
        await self._dumps.recover()
        self._questions = await prepare_items(self._pool, self.config, self._feedback)
        if self._keeps_busy or self.process_mode:
            self._questions.items.patience_s = PATIENCE_S
        else:
            await self._questions.trials.finished()
        logger.info("workers are confined by: %s", ", ".join(self._pool.hardening))

    async def env_manager(self) -> None:
        """`serve`: feed the trainer until its last step.

        Raises:
            SettingError: The servers' type returns nothing a trainer can use.
        """
        if not self._inference.can_train:
            kind = self._inference.server_type
            raise SettingError(defaults.CANNOT_TRAIN.format(kind))
        self._keeps_busy = True
        await super().env_manager()

    async def close(self) -> None:
        """End everything this environment began; may be called twice."""
        if self._is_closed:
            return
        try:
            await super().close()
        finally:
            await self._watch.stop()
            if self._questions is not None:
                self._questions.items.cancel_ahead()
                self._questions.trials.stop()
            if self._pool is not None:
                await asyncio.to_thread(self._pool.close)
            if self.metrics.asked:
                logger.info("%s", self.metrics.summary())

    async def _keep_unsent(self, groups: Sequence[Any], reason: str) -> None:
        for unsent in groups:
            await self._dumps.keep_unsent(unsent, reason)

    def _dump_losses(self) -> dict[str, int]:
        return self._dumps.losses()

    def _take_over_dump_losses(self, ledger: Mapping[str, Any]) -> None:
        self._dumps.take_over_losses(ledger)

    async def _close_files(self) -> None:
        await self._dumps.close()
        self.metrics.tell()
        await super()._close_files()

    def _gives_up(self) -> bool:
        return self._watch.gave_up.is_set()

    # -- items -------------------------------------------------------------------------

    def _messages(self, question: str) -> tuple[Message, Message]:
        own = self.config.system_prompt or SYSTEM_PROMPT
        before = self.config.custom_thinking_prompt
        return build_messages(question, f"{before}\n\n{own}" if before else own)

    @property
    def limit_tokens(self) -> int:
        """The longest sequence that may be generated, in tokens.

        The host drops a whole group when one of its sequences reaches the trainer's
        limit, so a sequence must stay below it.
        """
        limit: int = self.config.max_token_length
        return min(limit, self.max_token_len - 1) if self.max_token_len > 0 else limit

    def _check_limit(self) -> None:
        """Refuse a limit below which no prompt stays.

        Raises:
            SettingError: The shortest question reaches it.
        """
        prompt = render_prompt(self.tokenizer, self._messages("?"))
        if len(prompt.tokens) >= self.limit_tokens:
            is_ours = self.config.max_token_length == self.limit_tokens
            name = "env.max_token_length" if is_ours else "the trainer's max_token_len"
            limit = self.limit_tokens if is_ours else self.max_token_len
            raise SettingError(
                f"{name}: {limit} tokens leave no room for an answer: the prompt of"
                f" the shortest question takes {len(prompt.tokens)}"
            )

    async def get_server_info(self) -> None:
        """Take over the trainer's batch size and limit of length.

        Raises:
            SettingError: No group fits the one, or no prompt the other.
        """
        await super().get_server_info()
        self._check_limit()

    async def _render(self, messages: Sequence[Mapping[str, str]]) -> Prompt:
        return await self._prompts.render(messages)

    async def get_next_item(self) -> Item:
        """Return the next item of the stream whose prompt leaves room for an answer.

        Raises:
            NoItems: No item could be made, or no prompt fitted, for too long.
        """
        items = self._asked().items
        for _ in range(MAX_LONG_PROMPTS_IN_A_ROW):
            made = await items.next_item()
            messages = self._messages(made.entry["question"])
            prompt = await self._render(messages)
            if len(prompt.tokens) < self.limit_tokens:
                logger.debug("next item %r", made.handle)
                return messages, made.entry, made.handle
            self.metrics.events["prompts_too_long"] += 1
            logger.debug("%r: its prompt leaves no room", made.handle)
        raise NoItems(
            f"{MAX_LONG_PROMPTS_IN_A_ROW} prompts in a row reach the limit of"
            f" {self.limit_tokens} tokens; raise env.max_token_length or the trainer's"
        )

    # -- rollouts ----------------------------------------------------------------------

    async def collect_trajectories(
        self, item: Item
    ) -> tuple[ScoredDataGroup | None, list[Item]]:
        """Ask for a group of rollouts of an item, and score them.

        Returns:
            The group, or None where it teaches nothing or could not be had; and the
            item, to be tried again, if the inference servers did not answer.
        """
        size = self.config.group_size
        self.metrics.asked += size
        try:
            scored = await self._scored(await self._rollouts(item))
        except InferenceFailed as error:
            self.metrics.record_fate("unanswered", size)
            await self._watch.note_failure(str(error))
            return None, [item] if self._watch.is_down else self._again(item)
        except ScoringUnavailable as error:
            self.metrics.record_fate("unscored", size)
            logger.error("a group is lost: %s", error)
            return None, self._again(item)
        except asyncio.CancelledError:
            self.metrics.record_fate("cancelled", size)
            raise
        except Exception as error:  # noqa: BLE001 - the host would drop it and spin
            self.metrics.record_fate("failed", size)
            await self._note_error(error)
            return None, self._again(item)
        if scored is None:
            self.metrics.record_fate("no_signal", size)
        return scored, []

    async def _rollouts(self, item: Item) -> list[dict[str, Any]]:
        messages, entry, dataset = item
        prompt = await self._render(messages)
        sampling = Sampling(
            max_tokens=max(1, self.limit_tokens - len(prompt.tokens)),
            temperature=self.config.temperature,
            top_p=self.config.top_p,
            split="train",
        )
        answered = functools.partial(self._note_answered, asyncio.current_task())
        with tell_of_replies(answered):
            completions = await self._ask(prompt, self.config.group_size, sampling)
        answered()
        return [
            group_forms.build_rollout(prompt, c, entry, dataset) for c in completions
        ]

    async def _ask(
        self, prompt: Prompt, n: int, sampling: Sampling
    ) -> list[Completion]:
        """Ask the servers, unless it is time to give up on them."""
        return await self._watch.unless_given_up(
            self._inference.generate(prompt, n, sampling)
        )

    async def _scored(self, rollouts: list[dict[str, Any]]) -> ScoredDataGroup | None:
        """Score a group; a broken pool gets another try before that is an error."""
        for _ in range(SCORING_TRIES - 1):
            try:
                return await self.score(rollouts)
            except ScoringUnavailable:
                self.metrics.events["scoring_retries"] += 1
        return await self.score(rollouts)

    # -- scores ------------------------------------------------------------------------

    async def score(
        self, rollout_group_data: Sequence[Mapping[str, Any]]
    ) -> ScoredDataGroup | None:
        """Score the rollouts of one item.

        Args:
            rollout_group_data: One dict per rollout, shape (G,), with messages,
                rg_item, dataset_obj, finish_reason, tokens, masks and logprobs.

        Returns:
            The group in the same order, shape (G,); None if it is empty, or if its
            scores are all equal and `ensure_scores_are_not_same` is set.

        Raises:
            ScoringUnavailable: The worker pool gave no scores.
        """
        if not rollout_group_data:
            return None
        scores = await group_forms.score_rollouts(self._scorer(), rollout_group_data)
        rewards = shaping.penalise_length(
            [score.value for score in scores],
            [self._penalised_length(rollout) for rollout in rollout_group_data],
            self.limit_tokens,
        )
        record = group_forms.build_record(rollout_group_data, scores, rewards)
        self._count(record, scores)
        await self._dumps.record(record, self._versions())
        if self.config.ensure_scores_are_not_same and not shaping.has_signal(rewards):
            return None
        overrides = shaping.truncation_overrides(
            [rollout.get("finish_reason") for rollout in rollout_group_data],
            mask_truncated=self.config.mask_too_long_completions,
        )
        return group_forms.build_trainer_group(
            rollout_group_data,
            record,
            overrides,
            temperature=self.config.temperature,
            with_messages=self.config.include_messages,
        )

    def _penalised_length(self, rollout: Mapping[str, Any]) -> int:
        if self.config.length_penalty_counts == "completion":
            return group_forms.completion_tokens(rollout)
        return len(rollout["tokens"])

    def _count(self, record: GroupRecord, scores: Sequence[Score]) -> None:
        self.metrics.record_group(record)
        for line in self.metrics.new_warnings(record):
            logger.warning("%s", line)
        self.percent_correct_buffer.extend(record.scores)
        change = self._feedback.take(
            record.task,
            record.mean_score,
            record.provenance.get("level"),
            shaping.has_signal([rollout.reward for rollout in record.rollouts]),
        )
        if change is not None:
            logger.info("%s", change)
        logger.debug("group of %s, gold %.200r", record.task, record.gold_answer)
        for rollout, score in zip(record.rollouts, scores, strict=True):
            logger.debug(
                "  %s, answer %.200r: %s, score %.3f, reward %.3f",
                rollout.outcome,
                rollout.answer,
                score.formats or "not asked",
                rollout.score,
                rollout.reward,
            )

    def _versions(self) -> dict[str, str]:
        versions = {"atroposlib": HOST_VERSION}
        if self._questions is not None:
            versions["reasoning_gym"] = self._questions.library.version
        return versions

    # -- evaluation --------------------------------------------------------------------

    async def rollout_and_score_eval(self, test_item: Any) -> float:
        """Ask one evaluation item once and return its score, in [0, 1].

        Args:
            test_item: (entry, dataset), or a whole item.

        Raises:
            InferenceFailed: The servers did not answer.
            ScoringUnavailable: The worker pool gave no score.
        """
        _, score = await self._eval_rollout(*tuple(test_item)[-2:])
        return score.value

    async def _eval_rollout(
        self, entry: Mapping[str, Any], dataset: Any
    ) -> tuple[dict[str, Any], Score]:
        prompt = await self._render(self._messages(entry["question"]))
        sampling = Sampling(
            max_tokens=max(1, self.limit_tokens - len(prompt.tokens)),
            temperature=self.config.eval_temperature,
            top_p=1.0,
            split="eval",
        )
        completions = await self._ask(prompt, 1, sampling)
        rollout = group_forms.build_rollout(prompt, completions[0], entry, dataset)
        return rollout, (await group_forms.score_rollouts(self._scorer(), [rollout]))[0]

    async def evaluate(self, *args: Any, **kwargs: Any) -> None:
        """Ask all evaluation items; write, show and keep the results.

        A failed request is tried again and then counted as failed: it is no wrong
        answer and does not end the evaluation.
        """
        began = time.time()
        library = self._asked().library
        await self._asked().trials.finished()
        results = await evaluation_run.evaluate_items(
            self.test_items_with_scorers,
            self._eval_rollout,
            category_of=lambda task: library.tasks[task].category,
            max_in_flight=self.config.max_eval_workers,
            watch=self._watch,
        )
        summary = summarise(results)
        self.eval_metrics = list(summary.metrics().items())
        evaluation_run.show(summary)
        if self.config.data_dir_to_save_evals is not None:
            await self.evaluate_log(
                metrics=summary.metrics(),
                start_time=began,
                end_time=time.time(),
                generation_parameters={"temperature": self.config.eval_temperature},
                samples=[dict(result.sample) for result in results],
                verbose=False,
            )
            logger.info("results: %s", self.config.data_dir_to_save_evals)
        if self.process_mode and (summary.overall is None or self._gives_up()):
            self.exit_status = 1

    # -- numbers and state -------------------------------------------------------------

    async def wandb_log(self, wandb_metrics: dict[str, Any] | None = None) -> None:
        """Log the scores, the ledger, the outcomes and a table of all tasks."""
        numbers = dict(wandb_metrics or {})
        if self.percent_correct_buffer:
            buffer = self.percent_correct_buffer
            numbers["train/percent_correct"] = sum(buffer) / len(buffer)
            self.percent_correct_buffer = []
        numbers.update(self.eval_metrics)
        self.eval_metrics = []
        self.metrics.events["dump_groups_lost"] = self._dumps.groups_lost
        self.metrics.events["dump_groups_waiting"] = self._dumps.groups_waiting
        self.metrics.events["failed_requests"] = self._watch.failures
        for kind, count in self._watch.kinds.items():
            self.metrics.events[f"failed_requests_{kind}"] = count
        self.metrics.events["api_retries"] = self._api.retries
        if self._questions is not None:
            self.metrics.events |= self._questions.items.events
        numbers.update(self.metrics.wandb_scalars())
        if self._feedback.moves_something:
            stats = self.get_curriculum_stats()
            numbers.update({f"curriculum/{name}": n for name, n in stats.items()})
        if self.config.use_wandb:
            columns, lines = self.metrics.task_table()
            numbers["train/tasks"] = wandb.Table(list(columns), data=lines)
            columns, lines = self._feedback.table()
            numbers["curriculum/tasks"] = wandb.Table(list(columns), data=lines)
        await super().wandb_log(numbers)

    def get_curriculum_stats(self) -> dict[str, Any]:
        """Return the number of tasks seen, their recent scores and their levels."""
        return self._feedback.stats()

    def _state_owners(self) -> dict[str, checkpoint_files.Stateful]:
        adaptive = self._feedback.adaptive
        moved = {} if adaptive is None else {"adaptive": adaptive}
        return {
            "items": self._asked().items,
            "progress": self._feedback.progress,
            "curriculum": self._feedback.curriculum,
            **moved,
            "metrics": self.metrics,
            "saved": self._dumps.saved,
            "failed": self._dumps.failed,
        }

    def save_checkpoint(self, step: int, data: dict[str, Any] | None = None) -> None:
        """Write the checkpoint of a step: the environment's state, and `data`."""
        state = checkpoint_files.collect(
            self._state_owners(), self.config.stream_settings
        )
        super().save_checkpoint(step, {**state, **(data or {})})

    def load_checkpoint(self) -> None:
        """Continue from the newest checkpoint that is not after the current step.

        Raises:
            BadCheckpoint: The file is broken or of another kind; nothing was loaded.
        """
        source = self._checkpoints().newest(self.curr_step)
        if source is None:
            name = self.wandb_prepend or self.name
            where = f"{self.checkpoint_dir or '.'} at or before step {self.curr_step}"
            logger.warning("no checkpoint of %s in %s: starting anew", name, where)
            return
        settings = self.config.stream_settings
        checkpoint_files.restore(self._state_owners(), settings, source)
        self._continue_ledger(source)
        logger.info("continuing from %s at item %d", source, self.iter)


if __name__ == "__main__":
    ReasoningGymEnv.cli()
