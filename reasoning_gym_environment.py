#!/usr/bin/env python3
"""An environment for Atropos with all tasks of reasoning-gym.

    python reasoning_gym_environment.py serve --openai.base_url http://localhost:9004/v1

The class below begins and ends a run, and builds its parts. The framework's hooks are
in its bases: those of a group in `Hooks`, those of a training run in `Serving`, those
of W&B in `Reporting`. docs/architecture.md walks through the code.
"""

from __future__ import annotations


def _begin(is_program: bool) -> None:
    """Prepare the imports below; if this file is the main program, run the command.

    A command runs here because most commands do not need these imports, which take
    seconds.
    """
    import os
    import sys
    from pathlib import Path

    folder = str(Path(__file__).resolve().parent)
    if folder not in sys.path:  # the folder of `rg_env`
        sys.path.append(folder)
    if is_program:
        from rg_env.cli.console import main

        main()
    # Otherwise transformers advises installing PyTorch, which nothing here needs.
    os.environ.setdefault("TRANSFORMERS_NO_ADVISORY_WARNINGS", "1")
    from rg_env import installation

    installation.check()


_begin(is_program=__name__ == "__main__")

import asyncio
import logging
import sys
from collections.abc import Collection, Coroutine
from functools import partial
from importlib import metadata
from typing import Any

from atroposlib.envs.base import (
    BaseEnv,
    BaseEnvConfig,
    EvalHandlingEnum,
    Item,
    ScoredDataGroup,
)
from atroposlib.envs.server_handling.server_manager import (
    APIServerConfig,
    ServerBaseline,
)

from rg_env import logs
from rg_env.atropos import start_checks
from rg_env.atropos.api_client import ApiSession
from rg_env.atropos.config import ReasoningGymEnvConfig, server_list
from rg_env.atropos.delivery import GroupSender, TrainerData
from rg_env.atropos.evaluation_run import Evaluation
from rg_env.atropos.hooks import with_hooks
from rg_env.atropos.model import Completions, ItemPrompts
from rg_env.atropos.old_names import OldNames, view
from rg_env.atropos.process_run import Processing
from rg_env.atropos.rewards import GroupRewards, move_level, penalise_group
from rg_env.atropos.serve_run import Serving
from rg_env.atropos.wandb_run import Reporting
from rg_env.demo.simulated_model import SimulatedClient
from rg_env.executor import in_thread
from rg_env.inference.client import Client
from rg_env.inference.servers import Servers
from rg_env.installation import TOKENIZER_FOLDER
from rg_env.results.process_rows import replace_row_writer
from rg_env.results.screening import ScreenRun
from rg_env.results.sources import METRICS
from rg_env.reward.prompt import SYSTEM_PROMPT
from rg_env.run.checkpoints import Checkpoints
from rg_env.run.dumps import Dumps
from rg_env.run.group_loop import Run, Window
from rg_env.run.metrics import Metrics
from rg_env.settings import environment_settings, server_and_launch_settings
from rg_env.shutdown import Lifetime
from rg_env.stream.adaptive_weights import AdaptiveWeights
from rg_env.stream.curriculum import Feedback
from rg_env.stream.prefetch import PATIENCE_S, prepare_items

__all__ = [
    "APIServerConfig",
    "BaseEnv",
    "BaseEnvConfig",
    "EvalHandlingEnum",
    "Item",
    "ReasoningGymEnv",
    "ReasoningGymEnvConfig",
    "ScoredDataGroup",
    "system_prompt",
]

logger = logging.getLogger("rg_env.env")

system_prompt = SYSTEM_PROMPT


class _MixinsFirst(type(BaseEnv)):  # type: ignore[misc]
    """Moves mixins before `ReasoningGymEnv` in the method resolution order.

    In `class Mine(ReasoningGymEnv, Mixin)`, the hooks of a `Mixin` of `BaseEnv` would
    never be called, because `ReasoningGymEnv` has all hooks.
    """

    def mro(cls) -> list[type]:
        order: list[type] = super().mro()
        env = [base for base in order if isinstance(base, _MixinsFirst)][-1]
        if cls is env:  # ReasoningGymEnv itself
            return order
        start = order.index(env)
        end = order.index(BaseEnv)
        mixins = [base for base in order[start:end] if not issubclass(env, base)]
        rest = [base for base in order[start:] if base not in mixins]
        return [*order[:start], *mixins, *rest]


class ReasoningGymEnv(OldNames, Serving, Reporting, metaclass=_MixinsFirst):
    """Queries a model with the tasks of reasoning-gym, and scores its answers.

    An item is `(messages, entry, dataset)`: the prompt as system and user message, the
    library's entry, and an object with `score_answer(answer, entry) -> float`.

    Attributes:
        ledger: Counts how every rollout ended.
        metrics: Counters of the run.
        eval_metrics: Name and value of each metric of the newest evaluation.
        max_token_len: The trainer's limit in tokens: every sequence is shorter. 0 or
            less for no limit.
        process_mode: Whether `process` or `evaluate` runs, which give up in an outage.
    """

    name = "reasoning_gym"
    env_config_cls = ReasoningGymEnvConfig
    process_mode = False
    screen: ScreenRun | None = None  # only in `screen`
    server_cls: Any
    _protected_names: Collection[str] = ()  # not set from a checkpoint

    exit_status = view("_lifetime.exit_status")
    env_id = view("_session.env_id")
    status_dict = view("_session.status")
    _send_scored_data_to_api = view("_sender.send")

    def __init__(
        self,
        config: ReasoningGymEnvConfig,
        server_configs: ServerBaseline | list[APIServerConfig],
        slurm: bool = False,
        testing: bool = False,
    ) -> None:
        """Build the environment, without starting a process or querying a server.

        Raises:
            SettingError: A setting cannot be used.
        """
        # A checkpoint may set the attributes of a subclass, but no others.
        names_of_subclass = set(vars(self))
        config.validate_config()
        self._refuse_uncalled()
        logs.set_levels(config.debug_logging, config.suppress_base_env_logs)
        has_tokenizer = config.tokenizer_name != start_checks.NO_TOKENIZER
        tokenizer = config.tokenizer_name if has_tokenizer else str(TOKENIZER_FOLDER)
        servers = server_list(server_configs, tokenizer_name=tokenizer, slurm=slurm)
        self._server_types = [server.server_type for server in servers]
        start_checks.check_text_settings(config, self._server_types, trains=False)
        if not has_tokenizer:  # the framework loads one all the same
            config = config.model_copy(update={"tokenizer_name": tokenizer})
        if servers[0].base_url == server_and_launch_settings.SIMULATED:
            self.server_cls = SimulatedClient
        if self.server_cls is BaseEnv.server_cls:  # else a subclass has set its own
            self.server_cls = Client
        if not issubclass(self.server_cls, Client):
            raise TypeError(f"server_cls: expected a subclass of {Client}")
        rows = config.data_path_to_save_groups
        with start_checks.refusing_bad_tokenizer(config, servers):
            super().__init__(config, servers, slurm=slurm, testing=testing)
        replace_row_writer(self, rows, with_tokens=has_tokenizer)
        if not has_tokenizer:
            self.config.tokenizer_name = start_checks.NO_TOKENIZER
        self._build_collaborators(servers[0])
        self._protected_names = {*dir(ReasoningGymEnv), *vars(self)} - names_of_subclass

    def _build_collaborators(self, server: APIServerConfig) -> None:
        """Build the objects that the environment works with, in order of dependency."""
        config = self.config
        self._test_items: list[Any] = []
        self.task_curricula: dict[str, Any] = {}  # stays empty in the original too
        self._server = server
        self.n_groups_to_process = config.total_steps
        self.group_size_to_process = config.group_size
        self._kind = ""  # of run: serve, process, screen or evaluate
        self._lifetime = Lifetime()
        self._session = ApiSession(config.rollout_server_url)
        self._servers = Servers(self.server.servers, self.tokenizer)
        self._dumps = Dumps(config)
        self._dumps.versions = {"atroposlib": metadata.version("atroposlib")}
        self._dumps.model = server.model_name
        is_adaptive = config.task_choice == "adaptive"
        self._feedback = Feedback(
            config.curriculum_target_accuracy,
            AdaptiveWeights(config.adaptive_floor) if is_adaptive else None,
        )
        self._checkpoints = Checkpoints(self, self._dumps, self._feedback)
        self.ledger = self._checkpoints.ledger
        self.metrics = Metrics(self.ledger)
        self.eval_metrics: list[tuple[str, float]] = []
        self._build_run(server)
        self._querying = set[str]()
        self._window = Window()
        self.workers = self._window.workers  # the framework's name

    def _build_run(self, server: APIServerConfig) -> None:
        """Build the parts of the run of groups, and of an evaluation."""
        config = self.config
        servers = self._servers
        metrics = self.metrics
        prompts = ItemPrompts(config, self.tokenizer, server)
        self._prompts = prompts
        self._model = Completions(prompts, servers, "train", lambda: self.limit_tokens)
        self._rewards = GroupRewards(config, self._helper)
        self._trainer_data = TrainerData(config, server)
        counts_prompt = config.length_penalty_counts != "completion"
        self._scored_sinks = [
            partial(penalise_group, counts_prompt, lambda: self.limit_tokens),
            partial(move_level, self._feedback),
            metrics.take,
            self._dumps.take,
            self._trainer_data.take,
        ]
        self._sender = GroupSender(self, self._session, self._dumps)
        self._run = Run(
            next_item=lambda: self.get_next_item(),
            complete=self._model.complete,
            score=self._rewards.score,
            sinks=[],
            ledger=self.ledger,
            backlog=self.backlog,
            events=metrics.events,
        )
        eval_model = Completions(
            prompts, servers, "eval", lambda: self.eval_limit_tokens
        )
        self._evaluation = Evaluation(self, eval_model, self._rewards)

    @property
    def limit_tokens(self) -> int:
        """The length of the longest sequence that may be generated, in tokens."""
        # The framework drops a whole group if one of its sequences reaches the
        # trainer's limit.
        limit = self.config.max_token_length
        trainers_limit = self.max_token_len
        return min(limit, trainers_limit - 1) if trainers_limit > 0 else int(limit)

    @property
    def eval_limit_tokens(self) -> int:
        """The length of the longest sequence of an evaluation, in tokens."""
        return self.config.eval_max_token_length or self.limit_tokens

    @classmethod
    def config_init(cls) -> tuple[ReasoningGymEnvConfig, list[APIServerConfig]]:
        """Return the default settings of the command line."""
        config = ReasoningGymEnvConfig(**environment_settings.DEFAULTS)
        return config, [APIServerConfig(**server_and_launch_settings.DEFAULTS)]

    @classmethod
    def cli(cls) -> None:
        """Run the command line of this class; ends the process with a status."""
        from rg_env.cli.main import run_and_exit

        run_and_exit(cls, sys.argv[1:])

    # -- beginning and ending ----------------------------------------------------------

    async def setup(self) -> None:
        """Start the workers, read the library, choose the tasks.

        Raises:
            SettingError: A name or parameter does not exist, the tokenizer has no
                chat template, or no prompt stays below max_token_length.
            LibraryError: reasoning-gym cannot be used.
        """
        config = self.config
        self._refuse_uncalled()  # again, for helpers that were set on the instance
        if system_prompt is not SYSTEM_PROMPT:  # another module has set it
            config.system_prompt = config.system_prompt or system_prompt
        start_checks.check_template(config.tokenizer_name, self.tokenizer)
        self._prompts.check_limit(self.limit_tokens)
        if self._pool is None:  # else a command has used it to check the settings
            self._pool = start_checks.workers_of(config)
        self._rewards.pool = self._pool
        give_up = config.give_up_after_s if self.process_mode else None
        request = self._prompts.probe_request(self._kind)
        self._servers.start(request, give_up_after_s=give_up)
        await self._dumps.recover()
        self._choose_tasks_by_helper()
        self._items = items = await prepare_items(self._pool, config, self._feedback)
        self._dumps.versions |= items.library.versions
        self._prompts.take_published_prompt(items.library.system_prompt)
        if self._kind:
            items.patience_s = PATIENCE_S
        logger.info(
            "workers are sandboxed by: %s", ", ".join(self._pool.sandbox_layers)
        )

    async def close(self) -> None:
        """End all that this environment began, in this order; may be called twice."""
        await self._lifetime.close(
            # These come before the checkpoint, which records endings and lost dumps.
            self._end_groups,
            self._dumps.close,
            self._close_rows,
            self._checkpoints.end,
            self._servers.close,
            self._session.leave,
            self._finish_wandb,
            self._close_workers,
            self.metrics.log_summary,
        )

    async def _close_rows(self) -> None:
        if self.jsonl_writer is not None:
            # In the thread that writes the rows, so after the last one.
            await in_thread(self.jsonl_writer.close)

    async def _close_workers(self) -> None:
        if self._items is not None:
            self._items.stop()
        if self._pool is not None:
            await asyncio.to_thread(self._pool.close)

    async def _run_command(self, kind: str, work: Coroutine[Any, Any, None]) -> None:
        """Run a command of this kind until it ends or a signal stops it."""
        self._kind = kind
        await self._lifetime.run(self._servers.run_command(work), self.close)

    # -- the commands ------------------------------------------------------------------

    async def env_manager(self) -> None:
        """`serve`: feed the trainer until its last step."""
        start_checks.check_can_train(self.config, self._server_types)
        start_checks.warn_of_temperature(self.config, self._server_types)
        self._servers.require_tokens()
        self._hooked_run = with_hooks(self)
        await self._run_command("serve", self._serve())

    async def process_manager(self) -> None:
        """`process` and `screen`: write a number of groups, several at a time."""
        self.process_mode = True
        self.config.group_size = self.group_size_to_process
        kind = "process" if self.screen is None else "screen"
        start_checks.check_command(kind, self.config, ())
        await self._run_command(kind, self._process(kind))

    async def _process(self, kind: str) -> None:
        await self._set_up_without_trainer()
        if self.screen is not None:
            self.n_groups_to_process = self.screen.begin(self._prepared_items().stream)
        await Processing(self, with_hooks(self), kind).write()

    async def _run_evaluate(self) -> None:
        """`evaluate`: one evaluation."""
        self.process_mode = True
        await self._run_command("evaluate", self._evaluate_once())

    async def _evaluate_once(self) -> None:
        await self._set_up_without_trainer()
        await self._evaluation.make_items()  # before a hook of a subclass reads them
        await self.evaluate()
        if folder := self._evaluation.folder:
            self._dumps.set_metrics_path(folder / METRICS)
        await self.wandb_log({})

    async def _set_up_without_trainer(self) -> None:
        await self.setup()
        await self._start_wandb(self.config.wandb_name or self.name)

    # -- checkpoints -------------------------------------------------------------------

    def save_checkpoint(self, step: int, data: dict[str, Any] | None = None) -> None:
        """Write the checkpoint of a step: the environment's state, and `data`."""
        self._checkpoints.write(step, data or {})

    def load_checkpoint(self) -> None:
        """Continue from the newest checkpoint; see `Checkpoints.restore`."""
        for name, value in self._checkpoints.restore().items():
            if name not in self._protected_names:
                setattr(self, name, value)
