"""The tasks as an environment of OpenEnv: an episode is one item and one completion.

`reset` hands out an item: with a seed the one of that position in the stream, without
one the next. `step` scores a completion and ends the episode; over plain HTTP, where
OpenEnv keeps no session, the action carries the item as well. A completion without a
score is an error of the step and never a reward.
"""

from __future__ import annotations

import pickle
import threading
from typing import Any

from fastapi import HTTPException
from openenv.core.env_server import create_app
from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.types import (
    Action,
    ConcurrencyConfig,
    EnvironmentMetadata,
    Observation,
    State,
)
from pydantic import Field

from rg_env.installation import VERSION
from rg_env.standalone.item import Item
from rg_env.standalone.scores import UNMATCHED, score
from rg_env.standalone.tasks import Tasks

MOST_SESSIONS = 256
SESSION_TIMEOUT_S = 1800.0


class ReasoningGymAction(Action):
    """What a model has written.

    Attributes:
        completion: Its whole text.
        item: JSON of the item, as `reset` has shown it; "" for the one of the session.
    """

    completion: str
    item: str = ""


class ReasoningGymObservation(Observation):
    """An item, or what became of a completion.

    Attributes:
        task: The registered task.
        level: In [0, 1]; None for the library's defaults.
        messages: The prompt; none after the step.
        item: JSON of the item, see `rg_env.Item`.
        outcome: Of the completion, "" before the step.
        answer: What was extracted of it.
    """

    task: str
    level: float | None = None
    messages: list[dict[str, str]] = Field(default_factory=list)
    item: str
    outcome: str = ""
    answer: str | None = None


class Stream:
    """Hands out items to many sessions; the levels do not change.

    Args:
        tasks: A copy of it is used.
    """

    def __init__(self, tasks: Tasks) -> None:
        self.task_modules = tasks.task_modules
        self._tasks: Tasks = pickle.loads(pickle.dumps(tasks))  # noqa: S301 - our own
        self._lock = threading.Lock()
        self._next = 0

    def item(self, position: int | None) -> Item:
        """Return the item of a position, or the next one; raises as `next(tasks)`."""
        with self._lock:
            if position is None:
                position = self._next
                self._next += 1
            self._tasks.seek(position)
            return next(self._tasks)


class ReasoningGymEnvironment(
    Environment[ReasoningGymAction, ReasoningGymObservation, State]
):
    """One session.

    Args:
        stream: Where its items come from.
    """

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self, stream: Stream) -> None:
        super().__init__()
        self._stream = stream
        self._item: Item | None = None
        self._state = State()

    def reset(
        self, seed: int | None = None, episode_id: str | None = None, **others: Any
    ) -> ReasoningGymObservation:
        """Begin an episode with an item; raises as `next(tasks)`."""
        self._item = item = self._stream.item(seed)
        self._state = State(episode_id=episode_id, step_count=0)
        return ReasoningGymObservation(
            task=item.task,
            level=item.level,
            messages=[dict(message) for message in item.messages],
            item=item.to_json(),
        )

    def step(
        self, action: ReasoningGymAction, timeout_s: float | None = None, **others: Any
    ) -> ReasoningGymObservation:
        """Score a completion, which ends the episode.

        Raises:
            HTTPException: There is no item, or no score; in a session it is an error
                message with the same sentence.
        """
        try:
            modules, item = self._stream.task_modules, self._item
            item = Item.from_json(action.item, modules) if action.item else item
        except ValueError as error:
            raise HTTPException(422, str(error)) from error
        if item is None:
            raise HTTPException(409, "no item: call reset, or send its JSON as `item`")
        (result,) = score(item, [action.completion])
        if result.value is None:
            status = 422 if result.outcome == UNMATCHED else 503
            raise HTTPException(status, f"{result.outcome}: {result.reason}")
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
        """The episode and how many completions were scored in it."""
        return self._state

    def get_metadata(self) -> EnvironmentMetadata:
        """Say what this is."""
        return EnvironmentMetadata(
            name="reasoning_gym",
            description="The tasks of reasoning-gym, one question an episode",
            version=VERSION,
        )


def application(tasks: Tasks) -> Any:
    """Return the application of FastAPI that OpenEnv makes for a stream of items.

    Args:
        tasks: Whose items; a level of "curriculum" stays where it is.
    """
    stream = Stream(tasks)

    def environment() -> ReasoningGymEnvironment:
        return ReasoningGymEnvironment(stream)

    return create_app(
        environment,
        ReasoningGymAction,
        ReasoningGymObservation,
        env_name="reasoning_gym",
        concurrency_config=ConcurrencyConfig(
            max_concurrent_envs=MOST_SESSIONS, session_timeout=SESSION_TIMEOUT_S
        ),
    )
