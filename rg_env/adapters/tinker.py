"""The tasks as a dataset of tinker-cookbook; each group is scored as a whole."""

from __future__ import annotations

import dataclasses
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

# Tokens at the end of a prompt that contain a <think> which opens the thinking.
PROMPT_END_TOKENS = 8


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
        # A renderer that parses thinking returns a list, with <think> in its place. In
        # a text it is missing if the prompt ends with it.
        last_tokens = self.prompt.to_ints()[-PROMPT_END_TOKENS:]
        prompt_end = self.renderer.tokenizer.decode(last_tokens).rstrip()
        if isinstance(content, str) and prompt_end.endswith("<think>"):
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

    async def score(self, envs: Sequence[Any]) -> list[float]:
        """Score the completions without a result; return all scores, shape (G,).

        Raises:
            NoScoreError: A completion has no score.
        """
        unscored = [env for env in envs if env.result is None]
        results = await score_async(self.item, [env.text for env in unscored])
        for env, result in zip(unscored, results, strict=True):
            if result.value is None:
                raise NoScoreError(
                    f"{self.item.task}: {result.outcome}: {result.reason}"
                )
            env.result = result
        return [env.result.value for env in envs]

    async def compute_group_rewards(self, trajectory_group: Any, env_group: Any) -> Any:
        """Return scores in [0, 1] with metrics, shape (G,); they move the levels."""
        values = await self.score(env_group)
        if self.tasks is not None:
            self.tasks.feedback(self.item, values)
        level = {} if self.item.level is None else {"level": self.item.level}
        return [
            (value, {"right": value == 1.0, **env.result.parts, **level})
            for value, env in zip(values, env_group, strict=True)
        ]

    def logging_tags(self) -> list[str]:
        """Return the prefixes of the metrics of the group."""
        return ["reasoning_gym", self.item.task]

    def __getstate__(self) -> dict[str, Any]:
        """Raise TypeError if results move levels: those of a copy would move others."""
        if self.tasks is not None:
            raise TypeError("results move levels in one process; use fixed levels")
        return dict(vars(self))


class RetryUnscored(RetryOnFailure):
    """Samples the completions of a group again if one of them has no score."""

    async def execute(self, env_group_builder: Any, policy: Any) -> RolloutResult:
        """Return a group in which every completion has a score.

        Raises:
            NoScoreError: One has no score after `max_retries` retries.
        """
        for retry in range(self.max_retries + 1):
            result = await super().execute(env_group_builder, policy)
            try:
                if isinstance(env_group_builder, ReasoningGymGroup):
                    await env_group_builder.score(result.envs)
                break
            except NoScoreError:
                if retry == self.max_retries:
                    raise
        return result


class LevelCheckpoints:
    """Saves levels and weights that follow results, at the beginning of each batch.

    A checkpoint of tinker-cookbook only says which batch of a dataset is next, so there
    is a file for each batch.
    """

    def __init__(self, tasks: Tasks, log_path: str) -> None:
        self._tasks = tasks
        self._folder = Path(log_path).expanduser() / "reasoning_gym_levels"
        self._has_begun = False

    def begin(self, batch: int) -> None:
        """Save the state before a batch; a resumed run first restores it.

        Raises:
            RunError: A resumed run has no state of that batch.
        """
        path = self._folder / f"{batch:06}.json"
        if batch and not self._has_begun:
            try:
                self._tasks.load_state_dict(json.loads(path.read_text()))
            except (OSError, ValueError) as error:
                raise RunError(f"the levels cannot be restored: {error}") from error
        self._has_begun = True
        self._folder.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(".part")
        unfinished.write_text(json.dumps(self._tasks.state_dict()))
        unfinished.replace(path)


@dataclasses.dataclass(frozen=True)
class ReasoningGymDataset(types.RLDataset):
    """Batches of groups, one for each draw that gives an item.

    Attributes:
        item_at: Returns the item of a draw, None if it cannot be made.
        batch_size: The number of draws in a batch.
        num_batches: The number of batches.
        renderer: The renderer of prompts and completions.
        group_size: The number of completions of an item.
        tasks: The stream whose levels and weights follow the results, if any.
        checkpoints: Its checkpoints, if there are any.
    """

    item_at: Callable[[int], Item | None]
    batch_size: int
    num_batches: int
    renderer: renderers.Renderer
    group_size: int = 1
    tasks: Tasks | None = None
    checkpoints: LevelCheckpoints | None = None

    def __len__(self) -> int:
        return self.num_batches

    def get_batch(self, index: int) -> Sequence[ReasoningGymGroup]:
        """Return the groups of a batch, shape (P,); raises as `Tasks.at`."""
        if self.checkpoints is not None:
            self.checkpoints.begin(index)
        draws = range(index * self.batch_size, (index + 1) * self.batch_size)
        with ThreadPoolExecutor() as threads:  # keeps all workers busy
            items = list(threads.map(self.item_at, draws))
        return [
            ReasoningGymGroup(item, self.renderer, self.group_size, self.tasks)
            for item in items
            if item is not None
        ]


@chz.chz
class ReasoningGymDatasetBuilder(types.RLDatasetBuilder):
    """The items and the groups; `options` are other arguments of `rg_env.Tasks`.

    `log_path` is that of the training. Levels that follow results are saved in it, so
    that a resumed run continues with them.
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
        checkpoints = None
        if tasks.follows_results and self.log_path is not None:
            checkpoints = LevelCheckpoints(tasks, self.log_path)
        train = ReasoningGymDataset(
            item_at=tasks.at,
            batch_size=self.batch_size,
            num_batches=self.num_batches,
            renderer=renderer,
            group_size=self.group_size,
            tasks=tasks if tasks.follows_results else None,
            checkpoints=checkpoints,
        )
        test = ReasoningGymDataset(fixed.__getitem__, len(fixed), 1, renderer)
        return train, test if fixed else None
