"""The tasks as a dataset of tinker-cookbook; each group is scored as a whole."""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import chz
import tinker
from tinker_cookbook import renderers, tokenizer_utils
from tinker_cookbook.rl import types
from tinker_cookbook.rl.rollout_strategy import RetryOnFailure, RolloutResult

from rg_env import Item, Result, Tasks, score_async
from rg_env.errors import NoScoreError, RunError


@dataclasses.dataclass
class ReasoningGymEnv(types.Env):
    """One completion of an item: its `text`, and its `result` once it is scored."""

    renderer: renderers.Renderer
    prompt: tinker.ModelInput
    text: str | None = None
    result: Result | None = None

    async def initial_observation(self) -> tuple[types.Observation, Any]:
        """Return the tokens of the prompt and the stop sequences."""
        return self.prompt, self.renderer.get_stop_sequences()

    async def step(self, action: types.Action, **_: Any) -> types.StepResult:
        """Take the tokens of the completion; the reward comes from the group."""
        content = self.renderer.parse_response(action)[0]["content"]
        text = renderers.format_content_as_string(content, separator="")
        end = self.renderer.tokenizer.decode(self.prompt.to_ints()[-8:]).rstrip()
        # The prompt may have opened the thinking; parsed content is a list.
        if isinstance(content, str) and end.endswith("<think>"):
            text = f"<think>{text.lstrip().removeprefix('<think>')}"
        self.text = text
        return types.StepResult(
            reward=0.0,
            episode_done=True,
            next_observation=tinker.ModelInput.empty(),
            next_stop_condition=[],
            logs={"completion": text},
        )


@dataclasses.dataclass(frozen=True)
class ReasoningGymGroup(types.EnvGroupBuilder):
    """The `size` completions of one item; their results move the levels of `tasks`."""

    item: Item
    renderer: renderers.Renderer
    size: int
    tasks: Tasks | None = None

    async def make_envs(self) -> Sequence[ReasoningGymEnv]:
        """Return new environments, shape (G,)."""
        prompt = self.renderer.build_generation_prompt(self.item.messages)
        return [ReasoningGymEnv(self.renderer, prompt) for _ in range(self.size)]

    async def scores(self, envs: Sequence[Any]) -> list[float]:
        """Return the scores, shape (G,); raises `NoScoreError` if one is missing."""
        new = [env for env in envs if env.result is None]
        results = await score_async(self.item, [env.text for env in new])
        for env, one in zip(new, results, strict=True):
            if one.value is None:
                raise NoScoreError(f"{self.item.task}: {one.outcome}: {one.reason}")
            env.result = one
        return [env.result.value for env in envs]

    async def compute_group_rewards(self, trajectory_group: Any, env_group: Any) -> Any:
        """Return scores in [0, 1] with metrics, shape (G,); they move the levels."""
        values = await self.scores(env_group)
        if self.tasks is not None:
            self.tasks.feedback(self.item, values)
        level = {} if self.item.level is None else {"level": self.item.level}
        return [
            (value, {"right": value == 1.0, **env.result.parts, **level})
            for value, env in zip(values, env_group, strict=True)
        ]

    def logging_tags(self) -> list[str]:
        """Return the prefixes of its metrics."""
        return ["reasoning_gym", self.item.task]

    def __getstate__(self) -> dict[str, Any]:
        """Raise TypeError if the results of a copy would move other levels."""
        if self.tasks is not None:
            raise TypeError("results move levels in one process; use fixed levels")
        return dict(vars(self))


class RetryUnscored(RetryOnFailure):
    """Tries a group again, with new completions, if a member has no score."""

    async def execute(self, env_group_builder: Any, policy: Any) -> RolloutResult:
        """Return a group in which every member has a score; raises `NoScoreError`."""
        for number in range(self.max_retries + 1):
            result = await super().execute(env_group_builder, policy)
            try:
                if isinstance(env_group_builder, ReasoningGymGroup):
                    await env_group_builder.scores(result.envs)
                break
            except NoScoreError:
                if number == self.max_retries:
                    raise
        return result


class KeptLevels:
    """Saves levels and weights that follow results at the beginning of each batch.

    A checkpoint of tinker-cookbook knows nothing of a dataset but the next batch, so
    there is a file for each batch in the folder of the training, if that is known.
    """

    def __init__(self, tasks: Tasks, log_path: str | None) -> None:
        self._tasks = tasks
        self._folder: Path | None = None
        if tasks.follows_results and log_path is not None:
            self._folder = Path(log_path).expanduser() / "reasoning_gym_levels"
        self._has_begun = False

    def begin(self, batch: int) -> None:
        """Save the state; before, a resumed run restores it with its first batch.

        Raises:
            RunError: A resumed run has no state of that batch.
        """
        if self._folder is None:
            return
        path = self._folder / f"{batch:06}.json"
        if batch and not self._has_begun:
            try:
                self._tasks.load_state_dict(json.loads(path.read_text()))
            except (OSError, ValueError) as error:
                raise RunError(f"the levels cannot be restored: {error}") from error
        self._has_begun = True
        self._folder.mkdir(parents=True, exist_ok=True)
        new = path.with_suffix(".part")
        new.write_text(json.dumps(self._tasks.state_dict()))
        new.replace(path)


@dataclasses.dataclass(frozen=True)
class ReasoningGymDataset(types.RLDataset):
    """Batches of groups, one for each draw that gives an item.

    Attributes:
        item: Returns the item of a draw, None if it cannot be made.
        size: The number of draws in a batch.
        number: The number of batches.
        group: Makes the group of an item.
        begin: Called with the number of a batch before its items are drawn.
    """

    item: Callable[[int], Item | None]
    size: int
    number: int
    group: Callable[[Item], ReasoningGymGroup]
    begin: Callable[[int], object] = lambda batch: None

    def __len__(self) -> int:
        return self.number

    def get_batch(self, index: int) -> Sequence[ReasoningGymGroup]:
        """Return the groups of a batch, shape (P,); raises as `Tasks.at`."""
        self.begin(index)
        draws = range(index * self.size, (index + 1) * self.size)
        with ThreadPoolExecutor() as threads:  # keeps all workers busy
            items = filter(None, threads.map(self.item, draws))
            return [self.group(item) for item in items]


@chz.chz
class ReasoningGymDatasetBuilder(types.RLDatasetBuilder):
    """The items and the groups; `options` are other arguments of `rg_env.Tasks`.

    If levels follow results, they are kept in `log_path`, that of the training, so that
    a resumed run continues with them.
    """

    model_name_for_tokenizer: str
    renderer_name: str
    tasks: Sequence[str] = ()
    levels: Any = "random"
    seed: int = 0
    options: Mapping[str, Any] = chz.field(default_factory=dict)
    group_size: int = 8
    batch_size: int = 64
    num_batches: int = 1000
    eval_samples_per_task: int = 0
    log_path: str | None = None

    async def __call__(self) -> tuple[types.RLDataset, types.RLDataset | None]:
        """Return the stream, and fixed items of each task; raises like `Tasks`."""
        tasks = Tasks(*self.tasks, levels=self.levels, seed=self.seed, **self.options)
        fixed = tasks.evaluation(self.eval_samples_per_task)
        tokenizer = tokenizer_utils.get_tokenizer(self.model_name_for_tokenizer)
        renderer = renderers.get_renderer(self.renderer_name, tokenizer)
        group = functools.partial(ReasoningGymGroup, renderer=renderer)
        train = ReasoningGymDataset(
            item=tasks.at,
            size=self.batch_size,
            number=self.num_batches,
            group=functools.partial(
                group,
                size=self.group_size,
                tasks=tasks if tasks.follows_results else None,
            ),
            begin=KeptLevels(tasks, self.log_path).begin,
        )
        test = ReasoningGymDataset(
            item=fixed.__getitem__,
            size=len(fixed),
            number=1,
            group=functools.partial(group, size=1),
        )
        return train, test if fixed else None
