"""The tasks as a taskset of verifiers, with a harness that asks the model in process.

    vf-eval reasoning-gym-verifiers -n 4 --no-push
    vf-eval reasoning-gym-verifiers -n 4 --no-push --env.taskset.tasks '["gcd"]'

The id names the module `reasoning_gym_verifiers`, which exports what is defined here.
The stream is infinite; with `eval_samples_per_task` it is a fixed set.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import httpx
import verifiers.v1 as vf
from pydantic import Field, Json
from verifiers.v1.envs.single_agent import SingleAgentEnv, SingleAgentEnvConfig
from verifiers.v1.runtimes import ProgramResult

from rg_env.errors import RunError, SettingError
from rg_env.reward.prompt import SYSTEM_PROMPT
from rg_env.stream.group_scorer import score_async
from rg_env.stream.item import Item
from rg_env.stream.tasks import Tasks

REQUEST_TIMEOUT_S = 1200.0  # a server may be busy with other rollouts for long


class NoScoreError(RunError):
    """A completion has no score, which is not 0: its trace is a failed one."""


class ReasoningGymData(vf.TaskData):
    """An item as it travels, which is its JSON; see `rg_env.Item`."""

    item: str


class ReasoningGymTaskConfig(vf.TaskConfig):
    """Modules that register tasks of your own."""

    task_modules: list[str] = Field(default_factory=list)


class ReasoningGymTask(vf.Task[ReasoningGymData, vf.State, ReasoningGymTaskConfig]):
    """One item."""

    @property
    def item(self) -> Item:
        """The item."""
        return Item.from_json(self.data.item, self.config.task_modules)

    @property
    def key(self) -> str:
        """What tells the item from all others."""
        return str(self.data.item)

    @vf.reward(weight=1.0)  # type: ignore[untyped-decorator]
    async def reasoning_gym(self, trace: vf.Trace) -> float:
        """Return the score of the last reply, in [0, 1]; raises `NoScoreError`."""
        return await self._score(self.item, trace.last_reply)

    async def validate(self, runtime: vf.Runtime) -> bool | None:
        """Tell whether the gold answer scores 1.0, None without one; may raise too."""
        item = self.item
        if item.gold is None:
            return None
        return await self._score(item, f"<answer>{item.gold}</answer>") == 1.0

    async def _score(self, item: Item, text: str) -> float:
        """Return the score of a text; raises `NoScoreError` if there is none."""
        (result,) = await score_async(item, [text])
        if result.value is None:
            raise NoScoreError(f"{item.task}: {result.outcome}: {result.reason}")
        return result.value


class ReasoningGymConfig(vf.TasksetConfig):
    """Which items; the fields mean what the arguments of `rg_env.Tasks` do.

    With `eval_samples_per_task` they are fixed items of each task, by `eval_seed`.
    """

    task: ReasoningGymTaskConfig = ReasoningGymTaskConfig()
    tasks: list[str] | None = None
    categories: list[str] | None = None
    exclude: list[str] | None = None
    levels: (
        Literal["random", "curriculum"] | float | list[float] | Json[list[float]] | None
    ) = "random"
    weights: dict[str, float] | None = None
    params: dict[str, dict[str, Any]] | None = None
    seed: int = 0
    eval_samples_per_task: int | None = None
    eval_seed: int = 123


class ReasoningGymTaskset(vf.Taskset[ReasoningGymTask, ReasoningGymConfig]):
    """The stream of items, or a fixed set of them."""

    INFINITE = True

    def __init__(self, config: ReasoningGymConfig) -> None:
        super().__init__(config)
        if config.levels == "curriculum":
            raise SettingError(
                "levels: 'curriculum' follows the results of groups, which verifiers"
                " hands to no taskset; use 'random', a level or a range"
            )
        self.INFINITE = config.eval_samples_per_task is None

    def load(self) -> Iterable[ReasoningGymTask]:
        """Yield the items, from the first one on."""
        config = self.config
        tasks = Tasks(
            *(config.tasks or ()),
            levels=config.levels,
            seed=config.seed,
            weights=config.weights,
            params=config.params,
            categories=config.categories,
            exclude=config.exclude or (),
            task_modules=config.task.task_modules,
        )
        items: Iterable[Item] = tasks
        if config.eval_samples_per_task is not None:
            items = tasks.evaluation(config.eval_samples_per_task, config.eval_seed)
        for item in items:
            data = ReasoningGymData(
                name=f"{item.task}-{item.index}",
                prompt=item.question,
                system_prompt=SYSTEM_PROMPT,
                item=item.to_json(),
            )
            yield ReasoningGymTask(data, config.task)


class ReasoningGymHarness(vf.Harness[vf.HarnessConfig]):
    """Asks the model once, in this process: there is no program to start."""

    APPENDS_SYSTEM_PROMPT = True
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    _client: httpx.AsyncClient | None = None

    async def launch(
        self,
        ctx: vf.ModelContext,
        trace: vf.Trace,
        runtime: vf.Runtime,
        endpoint: str,
        secret: str,
        mcp_urls: dict[str, str],
        data: vf.TaskData,
    ) -> ProgramResult:
        """Send one request to the interception server, which records the reply."""
        if self._client is None:  # in the loop that uses it
            self._client = httpx.AsyncClient(timeout=REQUEST_TIMEOUT_S)
        system, prompt = self.resolve_text_prompt(data)
        texts = {"system": system, "user": prompt}
        messages = [{"role": r, "content": t} for r, t in texts.items() if t]
        response = await self._client.post(
            f"{endpoint.rstrip('/')}/chat/completions",
            headers={"Authorization": f"Bearer {secret}"},
            json={"model": ctx.model, "messages": messages},
        )
        if trace.stop_condition is None:  # else it was verifiers that refused
            response.raise_for_status()
        return ProgramResult(exit_code=0, stdout="", stderr="")


class ReasoningGymEnvConfig(SingleAgentEnvConfig):
    """One agent, without a container: nothing that a model writes is run."""

    agent: vf.AgentConfig = vf.AgentConfig(runtime=vf.SubprocessConfig())


class ReasoningGymSingleTurn(SingleAgentEnv, vf.Env[ReasoningGymEnvConfig]):
    """The environment of the taskset: one agent, one reply."""
