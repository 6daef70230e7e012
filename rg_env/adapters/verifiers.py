"""The tasks as a taskset of verifiers, and a harness that queries the model.

    vf-eval reasoning-gym-verifiers -n 4 --no-push --env.taskset.tasks '["gcd"]'

The id names the module `reasoning_gym_verifiers`, which exports these classes. The
stream is infinite; with `eval_samples_per_task` it is a fixed set.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import httpx
import verifiers.v1 as vf
from pydantic import Field, Json
from verifiers.v1.envs.single_agent import SingleAgentEnv, SingleAgentEnvConfig
from verifiers.v1.runtimes import ProgramResult

from rg_env import Item, Tasks, score_async
from rg_env.errors import NoScoreError, SettingError

REQUEST_TIMEOUT_S = 1200.0  # the server may be busy with other rollouts


class ReasoningGymData(vf.TaskData):
    """The JSON of an item; see `rg_env.Item`."""

    item: str


class ReasoningGymTaskConfig(vf.TaskConfig):
    """Settings of scoring; see `rg_env.score` and `Tasks(task_modules=...)`."""

    task_modules: list[str] = Field(default_factory=list)
    thinking_open: bool = False


class ReasoningGymTask(vf.Task[ReasoningGymData, vf.State, ReasoningGymTaskConfig]):
    """One item."""

    @property
    def item(self) -> Item:
        """The item."""
        return Item.from_json(self.data.item, self.config.task_modules)

    @property
    def key(self) -> str:
        """The identity of the item."""
        return str(self.data.item)

    @vf.reward(weight=1.0)  # type: ignore[untyped-decorator]
    async def reasoning_gym(self, trace: vf.Trace) -> float:
        """Return the score of the last reply, in [0, 1]; raises `NoScoreError`."""
        # If the server has split off the thinking, the reply does not begin in it.
        is_split = any(m.reasoning_content for m in trace.assistant_messages[-1:])
        is_open = self.config.thinking_open and not is_split
        return await self._score(trace.last_reply, is_open)

    async def validate(self, runtime: vf.Runtime) -> bool | None:
        """Return whether the reference answer scores 1.0; None if there is none.

        Raises:
            NoScoreError: There is no score.
        """
        item = self.item
        gold = item.gold
        if gold is None:
            return None
        texts = {"tags": f"<answer>{gold}</answer>", "boxed": rf"\boxed{{{gold}}}"}
        return await self._score(texts[item.answer_format]) == 1.0

    async def _score(self, text: str, is_open: bool = False) -> float:
        """Return the score of a text; raises `NoScoreError` if there is none."""
        item = self.item
        (result,) = await score_async(item, [text], thinking_open=is_open)
        if result.value is None:
            raise NoScoreError(f"{item.task}: {result.outcome}: {result.reason}")
        return result.value


class ReasoningGymConfig(vf.TasksetConfig):
    """The items, as in `rg_env.Tasks`, or `eval_samples_per_task` fixed ones."""

    task: ReasoningGymTaskConfig = ReasoningGymTaskConfig()
    tasks: list[str] | None = None
    categories: list[str] | None = None
    exclude: list[str] | None = None
    levels: (
        Literal["random", "curriculum"] | float | list[float] | Json[list[float]] | None
    ) = "random"
    weights: dict[str, float] | None = None
    params: dict[str, dict[str, Any]] | None = None
    choice: Literal["weighted", "in_turn"] = "weighted"
    answer_format: Literal["tags", "boxed"] = "tags"
    partial_credit: bool = True
    seed: int = 0
    eval_samples_per_task: int | None = None
    eval_seed: int = 123


class ReasoningGymTaskset(vf.Taskset[ReasoningGymTask, ReasoningGymConfig]):
    """The stream of items, or a fixed set."""

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
        """Yield the items from the beginning of the stream."""
        config = self.config
        tasks = Tasks(
            *(config.tasks or ()),
            levels=config.levels,
            seed=config.seed,
            weights=config.weights,
            params=config.params,
            categories=config.categories,
            exclude=config.exclude or (),
            choice=config.choice,
            system_prompt=self.system_prompt,
            answer_format=config.answer_format,
            partial_credit=config.partial_credit,
            task_modules=config.task.task_modules,
        )
        items: Iterable[Item] = tasks
        if config.eval_samples_per_task is not None:
            items = tasks.evaluation(config.eval_samples_per_task, config.eval_seed)
        for item in items:
            data = ReasoningGymData(
                name=f"{item.task}-{item.index}",
                prompt=item.question,
                system_prompt=item.messages[0]["content"],
                item=item.to_json(),
            )
            yield ReasoningGymTask(data, config.task)


class ReasoningGymHarness(vf.Harness[vf.HarnessConfig]):
    """Queries the model once, in this process, so no program is started."""

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
        if self._client is None:  # created in the event loop that uses it
            self._client = httpx.AsyncClient(timeout=REQUEST_TIMEOUT_S)
        system, prompt = self.resolve_text_prompt(data)
        texts = {"system": system, "user": prompt}
        messages = [{"role": r, "content": t} for r, t in texts.items() if t]
        response = await self._client.post(
            f"{endpoint.rstrip('/')}/chat/completions",
            headers={"Authorization": f"Bearer {secret}"},
            json={"model": ctx.model, "messages": messages},
        )
        if trace.stop_condition is None:  # otherwise verifiers refused the request
            response.raise_for_status()
        return ProgramResult(exit_code=0, stdout="", stderr="")


class ReasoningGymEnvConfig(SingleAgentEnvConfig):
    """One agent without a container, because no text of a model is executed."""

    agent: vf.AgentConfig = vf.AgentConfig(runtime=vf.SubprocessConfig())


class ReasoningGymSingleTurn(SingleAgentEnv, vf.Env[ReasoningGymEnvConfig]):
    """The environment of the taskset: one agent, one reply."""
