"""The tasks as an environment of OpenEnv: an episode is one item and one completion.

`reset` returns an item: with a seed, the item at that position of the stream; without a
seed, the next one. `step` scores a completion and ends the episode. OpenEnv only has
sessions over WebSocket; over plain HTTP, the action must contain the item. A completion
without a score is an error of the step and never a reward.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from typing import Any

from fastapi import HTTPException
from openenv.core.env_server import create_app
from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.types import Action, ConcurrencyConfig, Observation, State
from pydantic import Field

from rg_env.stream.completion_scores import UNMATCHED, score
from rg_env.stream.item import Item
from rg_env.stream.prefetch import MAX_FAILURES_IN_A_ROW, NO_ITEMS, NoItemsError
from rg_env.stream.tasks import Tasks

MAX_SESSIONS = 256
SESSION_TIMEOUT_S = 1800.0


class ReasoningGymAction(Action):
    """A whole completion.

    Attributes:
        completion: The text of the model.
        item: The JSON from `reset`; "" for the item of the session.
        thinking_open: Whether the chat template ends the prompt with `<think>`.
    """

    completion: str
    item: str = ""
    thinking_open: bool = False


class ReasoningGymObservation(Observation):
    """An item (see `rg_env.Item`), and the outcome of a completion.

    `messages` is only set by `reset`, `outcome` and `answer` only by `step`.
    """

    task: str
    level: float | None = None
    messages: list[dict[str, str]] = Field(default_factory=list)
    item: str
    outcome: str = ""
    answer: str | None = None


class ReasoningGymEnvironment(
    Environment[ReasoningGymAction, ReasoningGymObservation, State]
):
    """A session: `reset` draws an item, and `step` scores a completion of it.

    Args:
        tasks: The stream of items.
        positions: The next positions in the stream, which all sessions share.
    """

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self, tasks: Tasks, positions: Iterator[int]) -> None:
        super().__init__()
        self._tasks = tasks
        self._positions = positions
        self._item: Item | None = None
        self._state = State()

    def reset(
        self, seed: int | None = None, episode_id: str | None = None, **others: Any
    ) -> ReasoningGymObservation:
        """Begin an episode with an item; raises as `Tasks.at`."""
        positions = self._positions if seed is None else itertools.count(seed)
        # If no item can be made at a position, the next one is used.
        for position in itertools.islice(positions, MAX_FAILURES_IN_A_ROW):
            item = self._tasks.at(position)
            if item is not None:
                break
        else:
            raise NoItemsError(NO_ITEMS)
        self._item = item
        self._state = State(episode_id=episode_id, step_count=0)
        return ReasoningGymObservation(
            task=item.task,
            level=item.level,
            messages=item.messages,
            item=item.to_json(),
        )

    def step(
        self, action: ReasoningGymAction, timeout_s: float | None = None, **others: Any
    ) -> ReasoningGymObservation:
        """Score a completion, which ends the episode.

        Raises:
            HTTPException: There is no score. A session gets an error message.
        """
        item = self._item
        try:
            if action.item:
                item = Item.from_json(action.item, self._tasks.task_modules)
        except ValueError as error:
            raise HTTPException(422, str(error)) from error
        if item is None:
            raise HTTPException(409, "no item: call reset, or send its JSON as `item`")
        (result,) = score(item, [action.completion], thinking_open=action.thinking_open)
        if result.value is None:
            status = 422 if result.outcome == UNMATCHED else 503
            raise HTTPException(status, f"{result.outcome}: {result.reason}")
        self._item = None
        self._state.step_count += 1
        return ReasoningGymObservation(
            done=True,
            reward=result.value,
            task=item.task,
            level=item.level,
            item=item.to_json(),
            outcome=result.outcome,
            answer=result.answer,
        )

    @property
    def state(self) -> State:
        """The id of the episode, and its number of scored completions."""
        return self._state


def application(tasks: Tasks) -> Any:
    """Return OpenEnv's application for a stream; results do not move its levels."""
    return create_app(
        functools.partial(ReasoningGymEnvironment, tasks, itertools.count()),
        ReasoningGymAction,
        ReasoningGymObservation,
        env_name="reasoning_gym",
        concurrency_config=ConcurrencyConfig(
            max_concurrent_envs=MAX_SESSIONS, session_timeout=SESSION_TIMEOUT_S
        ),
    )
