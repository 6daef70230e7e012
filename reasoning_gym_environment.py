#!/usr/bin/env python3
"""ReasoningGym environment for Atropos: every task of reasoning-gym, one environment.

    python reasoning_gym_environment.py serve --openai.base_url http://localhost:9004/v1

The class below is the framework's hooks, each of which calls a collaborator:

    items: draw, make (worker) -> rollout_requests: prompt, completions
        -> group_scoring: extract, score (worker), shape -> delivery: trainer, rows
                        -> dump files, metrics, levels and weights
        -> ledger: what became of every rollout

docs/architecture.md walks through it. A scored group goes to the trainer with exactly
`group_size` rollouts, in one order.
"""

from __future__ import annotations

if __name__ == "__main__":
    import _signal  # type: ignore[import-not-found]  # signal.py takes 10 ms

    # No exception in the midst of an import; rg_env/ending.py hears it later.
    if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)

import asyncio
import logging
import os
import sys
import time
from collections.abc import Coroutine, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

_FOLDER = str(Path(__file__).resolve().parent)
if _FOLDER not in sys.path:
    sys.path.append(_FOLDER)
if __name__ == "__main__":
    from rg_env.cli import failures

    failures.catch_the_rest()
from rg_env import installation

installation.check()
if __name__ == "__main__":
    from rg_env.cli.main import run_and_exit

    def _by_its_name() -> Any:
        from reasoning_gym_environment import ReasoningGymEnv

        return ReasoningGymEnv

    # Imported once a command needs it, which takes seconds.
    run_and_exit(_by_its_name, sys.argv[1:])
# transformers would advise to install PyTorch, which nothing here needs.
os.environ.setdefault("TRANSFORMERS_NO_ADVISORY_WARNINGS", "1")

from atroposlib.envs.base import BaseEnv, ScoredDataGroup
from atroposlib.envs.server_handling.server_manager import (
    APIServerConfig,
    ServerBaseline,
)

from rg_env import logs
from rg_env.atropos import (
    evaluation_run,
    process_run,
    start_checks,
    tokenizer_checks,
    wandb_run,
)
from rg_env.atropos.api_client import ApiClient
from rg_env.atropos.api_session import ApiForgotUsError, ApiSession
from rg_env.atropos.checkpoint_files import Stateful, collect, has_checkpoints, write
from rg_env.atropos.checkpoints import Checkpoints
from rg_env.atropos.config import ReasoningGymEnvConfig
from rg_env.atropos.delivery import GroupDelivery
from rg_env.atropos.evaluation_files import EvaluationFiles
from rg_env.atropos.group import Group, listed
from rg_env.atropos.group_scoring import GroupScoring
from rg_env.atropos.groups_in_flight import GroupsInFlight
from rg_env.atropos.left_rows import continue_left
from rg_env.atropos.lifetime import Lifetime
from rg_env.atropos.old_names import OldNames, view
from rg_env.atropos.rollout_requests import LengthLimit, RolloutRequests
from rg_env.atropos.screen_run import ScreenRun
from rg_env.atropos.serve_loop import ServeLoop, passed
from rg_env.atropos.server_list import server_list
from rg_env.demo.chat_tokenizer import TOKENIZER_FOLDER
from rg_env.errors import SettingError
from rg_env.evaluation.samples import sample_of
from rg_env.evaluation.sources import METRICS, metrics_beside
from rg_env.evaluation.summary import EvalSummary, summarise
from rg_env.inference.connection import sampling_extra_of, template_kwargs_of
from rg_env.inference.inference import Inference
from rg_env.inference.server_types import client_of, close_clients
from rg_env.inference.servers import Servers
from rg_env.items import worker_jobs
from rg_env.items.item_source import PATIENCE_S
from rg_env.items.run_items import prepare_items
from rg_env.off_loop import off_loop
from rg_env.reports.metrics import Metrics, run_numbers
from rg_env.rollouts.run_dumps import Dumps
from rg_env.scoring.prompt import SYSTEM_PROMPT
from rg_env.settings import environment_settings, server_settings
from rg_env.settings.kept_settings import env_settings, settings_text
from rg_env.tasks.feedback import Feedback
from rg_env.workers.worker_pool import WorkerPool

__all__ = ["ReasoningGymEnv", "ReasoningGymEnvConfig", "system_prompt"]

logger = logging.getLogger("rg_env.env")

system_prompt = SYSTEM_PROMPT

Item = tuple[Sequence[Mapping[str, str]], Mapping[str, Any], Any]


class ReasoningGymEnv(OldNames, BaseEnv):
    """Queries a model with the tasks of reasoning-gym and scores its answers.

    An item is `(messages, entry, dataset)`: the prompt as system and user message, the
    library's entry, and an object with `score_answer(answer, entry) -> float`.

    Attributes:
        ledger: What became of every rollout.
        metrics: Counters of the run.
        eval_metrics: Name and value of each number of the newest evaluation.
        process_mode: Whether `process` or `evaluate` runs; they give up in time.
        shows_json: Whether `evaluate` prints JSON instead of a table.
        shows_tasks: Whether its table has the tasks as well.
        evaluation_folder: Where the newest complete evaluation is kept, if it is.
        n_groups_to_process: Rows that `process` writes.
        group_size_to_process: Rollouts of each.
        screen: What says how many they are in `screen`; None in `process`.
    """

    name = "reasoning_gym"
    env_config_cls = ReasoningGymEnvConfig
    process_mode = False
    shows_json = shows_tasks = False
    evaluation_folder: Path | None = None
    n_groups_to_process: int
    group_size_to_process: int
    screen: ScreenRun | None = None
    server_cls: Any
    eval_runner: Any
    items_sent_this_step: int

    def __init__(
        self,
        config: ReasoningGymEnvConfig,
        server_configs: ServerBaseline | list[APIServerConfig],
        slurm: bool = False,
        testing: bool = False,
    ) -> None:
        """Build the environment; starts no process and queries no server.

        Raises:
            SettingError: A setting cannot be used; nothing was begun.
        """
        logs.set_levels(config.debug_logging, config.suppress_base_env_logs)
        # No subclass names a client of its own, nor does one that is built by hand.
        has_our_clients = self.server_cls is BaseEnv.server_cls
        has_tokenizer = config.tokenizer_name != start_checks.NO_TOKENIZER
        given = config
        if not has_tokenizer:  # one to count with, since the framework loads one
            stand_in = {"tokenizer_name": str(TOKENIZER_FOLDER)}
            config = config.model_copy(update=stand_in)
        servers = server_list(
            server_configs,
            tokenizer_name=config.tokenizer_name,
            slurm=slurm,
            of_one_type=not has_our_clients,
        )
        self._server_types = [server.server_type for server in servers]
        start_checks.check_texts_do(given, self._server_types, trains=False)
        start_checks.check_paths(config)
        if has_our_clients:
            self.server_cls = client_of
        loaded = {
            server.tokenizer_name: "openai.tokenizer_name"
            for server in servers
            if server.server_type != "openai"  # whose client loads none
        } | {config.tokenizer_name: "env.tokenizer_name"}
        if config.use_wandb:
            wandb_run.make_folders()
        self._length = LengthLimit(config)
        refusing = tokenizer_checks.refusing_bad_tokenizer(loaded)
        rows = process_run.taking_over_rows(self, config, with_tokens=has_tokenizer)
        with refusing, rows:
            super().__init__(config, servers, slurm=False, testing=testing)
        if not has_tokenizer:
            self.config.tokenizer_name = start_checks.NO_TOKENIZER
        self._build_collaborators(servers[0])

    def _build_collaborators(self, server: APIServerConfig) -> None:
        """Build what the hooks call, from what knows least to what knows most."""
        config, length, clients = self.config, self._length, self.server.servers
        self._lifetime = Lifetime()
        self._api = ApiClient(config.rollout_server_url)
        self._session = ApiSession(self._api)
        self._servers = Servers(clients)
        self._inference = Inference(
            self.server, self.tokenizer, server.server_type, self._servers
        )
        kwargs = template_kwargs_of(server)
        self._requests = RolloutRequests(
            config, length, self.tokenizer, self._inference, kwargs
        )
        self._dumps = dumps = Dumps(
            Path(config.data_dumps_dir),
            keep_good=config.dump_rollouts,
            keep_failed=config.dump_failed_rollouts,
            threshold=config.rollout_save_score_threshold,
            keep_numbers=config.dump_metrics,
        )
        self._checkpoints = Checkpoints(self, dumps)
        self.ledger = self._checkpoints.ledger
        self.metrics = Metrics(self.ledger)
        self._feedback = Feedback(config.curriculum_target_accuracy)
        extra = sampling_extra_of(server)
        self._scoring = GroupScoring(
            config, length, dumps, self.metrics, self._feedback, extra
        )
        self._groups = groups = GroupsInFlight(
            self, self.ledger, self._requests, self._servers, self.metrics
        )
        # The framework's names for the same.
        self.workers = groups.workers
        self.running_items = groups.running_items
        self.backlog = groups.backlog
        self._delivery = GroupDelivery(
            self, self.ledger, self._session, self.jsonl_writer, dumps
        )
        self._serve_loop = ServeLoop(self, self._session, groups)
        self._kind = ""  # of run: serve, process, screen or evaluate
        self.eval_metrics: list[tuple[str, float]] = []

    @classmethod
    def config_init(cls) -> tuple[ReasoningGymEnvConfig, list[APIServerConfig]]:
        """Return what the command line starts from."""
        config = ReasoningGymEnvConfig(**environment_settings.START)
        return config, [APIServerConfig(**server_settings.START)]

    @classmethod
    def cli(cls) -> None:
        """Run the command line of this class; ends the process with a status."""
        from rg_env.cli.main import run_and_exit

        run_and_exit(cls, sys.argv[1:])

    # -- beginning and ending ----------------------------------------------------------

    async def setup(self) -> None:
        """Start the workers, read the library, choose the tasks, make the eval items.

        Raises:
            SettingError: A name or parameter does not exist, the tokenizer has no
                chat template, or no prompt stays below max_token_length.
            LibraryError: reasoning-gym cannot be used.
        """
        tokenizer_checks.check_template(self.config.tokenizer_name, self.tokenizer)
        self._requests.check_limit()
        self._pool = WorkerPool(
            self.config.worker_count,
            memory_limit_bytes=self.config.worker_memory_bytes,
            preload=worker_jobs.preload_of(self.config.task_modules),
        )
        self._scoring.pool = self._pool
        give_up = self.config.give_up_after_s if self.process_mode else None
        self._servers.start(give_up_after_s=give_up)
        await self._dumps.recover()
        self._items = await prepare_items(self._pool, self.config, self._feedback)
        self._scoring.versions |= self._items.library.versions
        self._requests.take_published_prompt(self._items.library.system_prompt)
        if self._kind:
            self._items.items.patience_s = PATIENCE_S
        else:
            await self._items.evaluation.finished()
        logger.info("workers are confined by: %s", ", ".join(self._pool.sandbox_layers))

    async def close(self) -> None:
        """End everything this environment began, in this order; may be called twice."""
        await self._lifetime.close(
            self._groups.end,
            self._dumps.close,
            self._close_rows,
            self._checkpoints.end,
            partial(close_clients, self.server.servers),
            self._session.leave,
            wandb_run.finish,
            self._servers.stop,
            self._close_workers,
            self._groups.say_summary,
        )

    async def _live(
        self, work: Coroutine[Any, Any, None], *, evaluates: bool = False
    ) -> None:
        request = partial(
            self._requests.probe_request,
            evaluates=evaluates,
            writes_rows=self._kind == "process",
        )
        probed = self._servers.unless_refused(work, request)
        await self._lifetime.run(probed, self.close, self._close_at_once)

    def _close_at_once(self) -> None:
        self._dumps.close_at_once()
        if self.jsonl_writer is not None:
            self.jsonl_writer.close()

    async def _close_rows(self) -> None:
        if self.jsonl_writer is not None:
            # After the row that is perhaps being written there.
            await off_loop(self.jsonl_writer.close)

    async def _close_workers(self) -> None:
        if self._items is not None:
            self._items.items.cancel_ahead()
            self._items.evaluation.stop()
        if self._pool is not None:
            await asyncio.to_thread(self._pool.close)

    # 0, 1 after a failure, 128 + n after signal n.
    exit_status = view("_lifetime.exit_status")

    # -- the three commands ------------------------------------------------------------

    async def env_manager(self) -> None:
        """`serve`: feed the trainer until its last step.

        Raises:
            SettingError: No trainer could learn from such groups.
        """
        start_checks.check_can_train(
            self.config,
            self._server_types,
            has_our_clients=self.server_cls is client_of,
        )
        self._inference.trains, self._kind = True, "serve"
        await self._live(self._serve())

    def _say_where_rows_go(self) -> None:
        rows = self.jsonl_writer
        if rows is not None and rows.path != rows.wanted:
            logger.info("%s exists: rows go to %s", rows.wanted, rows.path)

    async def _serve(self) -> None:
        self._say_where_rows_go()
        await self._serve_loop.begin()
        if self.checkpoint_interval > 0:
            self._checkpoints.begin()
        await self._serve_loop.run()
        # No step is seen to pass that would log what came since the last one.
        await self._log_if_enough_was_sent()

    async def process_manager(self) -> None:
        """`process`: write a number of groups, several at a time."""
        self.process_mode = True
        self._kind = "process" if self.screen is None else "screen"
        self.config.group_size = self.group_size_to_process
        await self._live(self._process())

    async def _process(self) -> None:
        if self.screen is None:
            start_checks.check_total(self.n_groups_to_process)
        await self._set_up_alone()
        if self.screen is not None:
            self.n_groups_to_process = self.screen.begin(self._made())
        total = self.n_groups_to_process
        self.curr_step = there = await self._continue_rows(total)
        self._dumps.put_numbers(metrics_beside(self.jsonl_writer.path))
        items = None if self._items is None else self._items.items
        run = process_run.ProcessRun(
            self, self._groups, self.jsonl_writer, self._servers, items, there
        )
        if there < total:
            await run.write(total, self.max_num_workers, self._kind)
        if run.written < total:
            self._lifetime.fail()

    async def _continue_rows(self, total: int) -> int:
        """Continue the file of an ended run, if there is one; return its rows."""
        if self._items is None:  # a subclass samples its own, which nothing makes again
            self._say_where_rows_go()
            return 0
        rows, versions = self.jsonl_writer, self._scoring.versions
        rows.settings = settings_text(self.config, self.server.servers, versions)
        screens = self.screen is not None  # whose rows are read again
        left = await off_loop(continue_left, rows, total, even_complete=screens)
        self.config.data_path_to_save_groups = str(rows.path)
        self._items.stream.sampled = left.sampled
        await off_loop(self._feedback.replay, left.results)
        return len(left.results)

    async def _run_evaluate(self) -> None:
        """`evaluate`: one evaluation."""
        self.process_mode, self._kind = True, "evaluate"
        await self._live(self._evaluate_alone(), evaluates=True)

    async def _evaluate_alone(self) -> None:
        await self._set_up_alone()
        await self.evaluate()
        if self.evaluation_folder is not None:
            self._dumps.put_numbers(self.evaluation_folder / METRICS)
        await self.wandb_log({})

    async def _set_up_alone(self) -> None:
        await self.setup()
        await self._start_wandb(self.config.wandb_name or self.name)

    # -- the trainer and its API -------------------------------------------------------

    # The API's number of this environment, None before it is registered; its newest
    # status; and what the trainer asks sequences to stay below, 0 or less for no limit.
    env_id = view("_session.env_id")
    status_dict = view("_session.status")
    max_token_len = view("_length.trainer")
    # The longest sequence that may be generated, in tokens.
    limit_tokens = view("_length.tokens")

    async def setup_wandb(self) -> None:
        """Start W&B with the trainer's project and group, once a trainer is there."""
        if self.config.use_wandb:
            self.wandb_group, self.wandb_project = await self._session.wandb_place()
        await self._start_wandb(self.config.wandb_name)

    async def _start_wandb(self, name: str | None) -> None:
        if self.config.use_wandb:
            place = self.wandb_project, self.wandb_group
            await wandb_run.start(name, *place, env_settings(self.config))

    async def register_env(self) -> None:
        """Register at the API, once its trainer has started; continue a resumed run.

        The first registration loads the checkpoint; where none was ever saved, and
        none will be, nothing is written to look for one.

        Raises:
            SettingError: Neither the settings nor the trainer say how long the run is.
        """
        is_first = self.env_id is None
        config = self.config
        registration = await self._session.register(
            name=config.wandb_name or self.name,
            weight=config.inference_weight,
            group_size=config.group_size,
            max_token_length=config.max_token_length,
            min_batch_allocation=config.min_batch_allocation,
        )
        if is_first:
            # It names the checkpoints, which a later registration must not part.
            self.wandb_prepend = registration["wandb_name"]
            start_checks.say_shard(self.env_id, config.shard_index, config.num_shards)
        self.curr_step = registration["starting_step"]
        self.checkpoint_dir = registration["checkpoint_dir"]
        self.checkpoint_interval = registration["checkpoint_interval"]
        if config.total_steps == -1:
            config.total_steps = registration["num_steps"]
        if config.total_steps == -1:
            raise SettingError(
                "env.total_steps: -1 takes the trainer's number of steps, which has"
                " none either; set one of the two"
            )
        kept = self.checkpoint_interval > 0 or has_checkpoints(self.checkpoint_dir)
        if is_first and self.curr_step > 0 and kept:
            self.load_checkpoint()

    async def get_server_info(self) -> None:
        """Take over the trainer's batch size and limit of length."""
        batch_size, max_token_len = await self._session.trainer_limits()
        if batch_size != -1:
            self.config.batch_size = batch_size
        if max_token_len != -1:
            self.max_token_len = max_token_len
        if self.max_token_len <= 0:
            logger.warning(
                "the trainer sets no limit of length: groups of any length are sent"
            )
        start_checks.check_batch(self.config.batch_size, self.config.group_size)
        self._requests.check_limit()

    async def get_status(self) -> None:
        """Read the API's status; register again where it has forgotten us."""
        while True:
            try:
                await self._session.renew_status()
                break
            except ApiForgotUsError as error:
                logger.warning("the API has lost us (%s); registering again", error)
                await self.register_env()
                await self.get_server_info()
        await self.server.update_weight(self.status_dict["env_weight"])

    # -- groups in flight --------------------------------------------------------------

    async def add_train_workers(self) -> None:
        """Start groups until as many are in flight as may be; cancel none."""
        self.workers_added_list.append(await self._serve_loop.fill())

    async def handle_env(self, item_uuid: str) -> Any:
        """Take an item all its way; return its group, None where there is none."""
        return await self._groups.work_on(item_uuid)

    # -- a group -----------------------------------------------------------------------

    async def get_next_item(self) -> Item:
        """Return the next item of the stream whose prompt leaves room for an answer.

        Raises:
            NoItemsError: No item could be made, or no prompt fitted, for too long.
        """
        items, events = self._made().items, self.metrics.events
        messages, made = await self._requests.next_that_fits(items, events)
        logger.debug("next item %r", made.handle)
        return messages, made.entry, made.handle

    async def collect_trajectories(
        self, item: Item
    ) -> tuple[ScoredDataGroup | None, list[Item]]:
        """Query a group of rollouts of an item, and score them.

        Returns:
            The group, or None where it teaches nothing or could not be had; and the
            item, to be sampled again, if the inference servers did not answer.
        """
        return await self._groups.sample(item)

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
            ScoringUnavailableError: The worker pool gave no scores.
        """
        if not rollout_group_data:
            return None
        return await self._scoring.score(Group.of_rollouts(rollout_group_data))

    async def handle_send_to_api(
        self,
        scored_data: Any,
        item: Any = None,
        do_send_to_api: bool = True,
        abort_on_any_max_length_exceeded: bool = True,
    ) -> None:
        """Check a group, or several, write the rows, and send what is left.

        Args:
            scored_data: A group, or a list of groups of which some may be None.
            item: Whose group it is.
            do_send_to_api: Whether it goes to the API.
            abort_on_any_max_length_exceeded: Whether a group is rejected for one
                sequence that reaches the trainer's limit.
        """
        limit_tokens = self._length.trainer if abort_on_any_max_length_exceeded else 0
        await self._delivery.deliver(
            scored_data, item, is_for_trainer=do_send_to_api, limit_tokens=limit_tokens
        )

    async def _send_scored_data_to_api(self, scored_data: Any) -> None:
        """Send a group, or a list of groups; see `GroupDelivery.send`."""
        await self._delivery.send(scored_data)

    # -- steps and evaluation ----------------------------------------------------------

    async def env_step_checks(self) -> None:
        """Evaluate, save and log when the step that asks for it is passed."""
        now = self.status_dict["current_step"]
        if now == self.curr_step:
            return
        if passed(self.config.steps_per_eval, self.curr_step, now):
            self._start_evaluation()
        if passed(self.checkpoint_interval, self.curr_step, now):
            self._checkpoints.save(now - now % self.checkpoint_interval)
        self.curr_step = now
        await self._log_if_enough_was_sent()

    async def _log_if_enough_was_sent(self) -> None:
        if self.items_sent_this_step >= self.config.min_items_sent_before_logging:
            self.items_sent_this_step = 0
            await self.wandb_log({})

    def _start_evaluation(self) -> None:
        if self._serve_loop.evaluates:
            logger.warning("the last evaluation still runs; this one is left out")
            return
        self.eval_runner = asyncio.get_running_loop().create_task(self.evaluate())
        self.eval_runner.add_done_callback(evaluation_run.log_failure)

    async def rollout_and_score_eval(self, test_item: Any) -> float:
        """Query one evaluation item, (entry, dataset) or whole; return its score.

        Raises:
            RequestFailedError: The servers did not answer.
            ScoringUnavailableError: The worker pool gave no score.
        """
        group = await self._eval_group(*tuple(test_item)[-2:])
        return float(group.scores[0].value)

    async def _eval_group(self, entry: Mapping[str, Any], dataset: Any) -> Group:
        """Return a scored group of one rollout, of which nobody is told."""
        group = await self._requests.query_evaluation(entry, dataset)
        await self._scoring.score_answers(group)
        return group

    async def evaluate(self, *args: Any, **kwargs: Any) -> None:
        """Query all evaluation items; write, show and keep the results.

        A failed request is tried again and then counted as failed: it is no wrong
        answer and does not end the evaluation.
        """
        began = time.time()
        made = self._made()
        await made.evaluation.finished()
        config, servers = self.config, self.server.servers
        items = self.test_items_with_scorers
        if self.process_mode:  # a training run has others to go on with
            await self._requests.check_evaluation([e["question"] for e, _ in items])
        evaluation = evaluation_run.Evaluation(
            items,
            self._eval_group,
            category_of=lambda task: made.library.tasks[task].category,
            completions=config.eval_completions,
            about=evaluation_run.about(config, servers[0].config),
            has_tokens=config.tokenizer_name != start_checks.NO_TOKENIZER,
            servers=self._servers,
        )
        async with EvaluationFiles(
            config.data_dir_to_save_evals,
            settings_text(config, servers, self._scoring.versions),
            len(evaluation.wanted),
            resumes=self.process_mode,
        ) as files:
            rows = await evaluation.run(files.done, config.max_eval_workers, files.keep)
            rows += evaluation.rows_not_used(made.evaluation.missing)
            summary = summarise(list(map(sample_of, rows)))
            self.eval_metrics = list(summary.metrics().items())
            evaluation_run.show(
                summary, as_json=self.shows_json, with_tasks=self.shows_tasks
            )

            async def write_numbers(folder: Path) -> None:
                self.evaluation_folder = folder
                await self._write_numbers(folder, summary, began)

            gave_up = self._servers.gave_up.is_set()
            is_kept = await files.finish(rows, None if gave_up else write_numbers)
        if self.process_mode and (summary.overall is None or not is_kept):
            self._lifetime.fail()

    async def _write_numbers(
        self, folder: Path, summary: EvalSummary, began: float
    ) -> None:
        sampling = {
            "temperature": self.config.eval_temperature,
            "top_p": 1.0,
            "max_new_tokens": self._length.evaluation_tokens,  # with the prompt
            "completions": self.config.eval_completions,
            **sampling_extra_of(self.server.servers[0].config),
            "versions": self._scoring.versions,
        }
        wanted = self.config.data_dir_to_save_evals
        self.config.data_dir_to_save_evals = str(folder)  # where the framework writes
        try:
            await self.evaluate_log(
                metrics={**summary.metrics(), "summary": summary.as_json()},
                start_time=began,
                end_time=time.time(),
                generation_parameters=sampling,
                verbose=False,
            )
        finally:
            self.config.data_dir_to_save_evals = wanted

    # -- numbers -----------------------------------------------------------------------

    async def add_rollouts_for_wandb(self, scored_data: Any, item: Any = None) -> None:
        """Keep a few rollouts of a group for the W&B table, if W&B is on."""
        if self.config.use_wandb:
            wanted = self.config.num_rollouts_per_group_for_logging
            for group in listed(scored_data):
                rows = await wandb_run.rollout_rows(group, wanted, self.tokenizer)
                self.rollouts_for_wandb.append(rows)
            excess = len(self.rollouts_for_wandb) - self.config.num_rollouts_to_keep
            del self.rollouts_for_wandb[: max(0, excess)]

    async def create_rollout_table(self, wandb_metrics: dict[str, Any]) -> Any:
        """Add the table of the rollouts that were kept, if there are any."""
        rows = [row for group in self.rollouts_for_wandb for row in group]
        if rows:
            table = wandb_run.table(wandb_run.ROLLOUT_COLUMNS, rows)
            wandb_metrics["train/rollouts"] = table
        return wandb_metrics

    async def wandb_log(self, wandb_metrics: dict[str, Any] | None = None) -> None:
        """Log the scores, the ledger, the outcomes and a table of all tasks.

        The numbers go to a file of this machine too, whether W&B is on or not.
        """
        numbers = dict(wandb_metrics or {})
        numbers |= run_numbers(self.metrics, self._feedback, self._events())
        numbers.update(self.eval_metrics)
        self.eval_metrics = []
        local = numbers
        if self.config.use_wandb:
            numbers = wandb_run.without_task_curves(numbers)
            numbers["train/alarms"] = wandb_run.table(*self.metrics.alarms.table())
            numbers["train/tasks"] = wandb_run.table(*self.metrics.task_table())
            numbers["curriculum/tasks"] = wandb_run.table(*self._feedback.table())
            if self._items is not None:
                not_sampled = self._items.items.unused_table()
                numbers["train/items_not_sampled"] = wandb_run.table(*not_sampled)
        servers = self.server.servers
        of_servers = await wandb_run.numbers_of_servers(servers)
        last = f"server/server_{len(servers) - 1}_"  # which the framework adds
        numbers |= {n: v for n, v in of_servers.items() if not n.startswith(last)}
        try:
            await super().wandb_log(numbers)  # which adds its own to them
        finally:
            if self._kind:
                known = {**local, **numbers, **of_servers}
                alarms = self.metrics.alarms.news()
                self._dumps.note_numbers(self.curr_step, self._kind, known, alarms)

    def _events(self) -> dict[str, int]:
        """Return what the collaborators have counted since the run began."""
        items = {} if self._items is None else dict(self._items.items.events)
        return {
            "dump_groups_lost": self._dumps.groups_lost,
            "dump_groups_waiting": self._dumps.groups_waiting,
            "failed_requests": self._servers.failures,
            **{f"failed_requests_{kind}": n for kind, n in self._servers.kinds.items()},
            **{f"finish_reason_{end}": n for end, n in self._inference.ends.items()},
            "api_retries": self._api.retries,
            "worker_deaths": 0 if self._pool is None else self._pool.deaths,
            **items,
        }

    def get_curriculum_stats(self) -> dict[str, Any]:
        """Return the number of tasks seen, their recent scores and their levels."""
        return {
            "curriculum_mode": self.config.complexity_mode == "curriculum",
            **self._feedback.stats(),
            "task_details": self._feedback.details(),
        }

    # -- checkpoints -------------------------------------------------------------------

    def _state_owners(self) -> dict[str, Stateful]:
        adaptive = self._feedback.adaptive
        moved = {} if adaptive is None else {"adaptive": adaptive}
        return {
            "items": self._made().items,
            "progress": self._feedback.progress,
            "curriculum": self._feedback.curriculum,
            **moved,
            "metrics": self.ledger,
            "saved": self._dumps.saved,
            "failed": self._dumps.failed,
        }

    def _stream_settings(self) -> dict[str, Any]:
        """Return the settings that decide the items, and the modules of own tasks."""
        modules = {} if self._items is None else dict(self._items.library.modules)
        own = {"task_modules": modules} if modules else {}
        return {**self.config.stream_settings, **own}

    def save_checkpoint(self, step: int, data: dict[str, Any] | None = None) -> None:
        """Write the checkpoint of a step: the environment's state, and `data`."""
        state = collect(self._state_owners(), self._stream_settings())
        write(self._checkpoints.folder.path(step), {**state, **(data or {})})

    def load_checkpoint(self) -> None:
        """Continue from the newest checkpoint that is not after the current step.

        Raises:
            BadCheckpointError: The file is broken or of another kind; none of it is
                loaded.
        """
        self._checkpoints.restore(self._state_owners, self._stream_settings())
