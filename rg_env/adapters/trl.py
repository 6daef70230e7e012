"""The tasks as the data and the reward of TRL's `GRPOTrainer`.

    from rg_env import Tasks
    from rg_env.adapters.trl import GRPOTasks

    tasks = GRPOTasks(Tasks("gcd", "*_sorting", levels="curriculum"))
    trainer = GRPOTrainer(
        model,
        args=GRPOConfig(max_steps=500, **tasks.settings),
        train_dataset=tasks.train_dataset,
        reward_funcs=tasks.reward_funcs,
        callbacks=tasks.callbacks,
    )

Every process of a distributed run walks the same stream. They draw the same items only
if the same results move their levels, so the results of all processes are gathered.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import itertools
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from accelerate import PartialState
from accelerate.utils import gather_object
from datasets import Dataset, IterableDataset
from transformers import TrainerCallback

from rg_env.errors import RunError, SettingError
from rg_env.stream.group_scorer import score_async
from rg_env.stream.item import Item
from rg_env.stream.tasks import Tasks
from rg_env.workers.pool_errors import WorkerLostError

# For an item whose workers were lost; its error would end the training.
TRIES, PAUSE_S = 4, 0.5

STATE = "reasoning_gym_tasks"
"""In `trainer_state.json` of each checkpoint: levels, weights, place in the stream."""

# The `position` of evaluation rows, whose results move nothing.
NOT_TRAINING = -1

Completion = str | Sequence[Mapping[str, Any]]


def _text(completion: Completion) -> str:
    if isinstance(completion, str):
        return completion
    last = completion[-1] if completion else {}
    content = str(last.get("content") or "")
    # A chat template with a response schema has split it off.
    thinking = last.get("reasoning_content") or last.get("thinking")
    return f"<think>{thinking}</think>{content}" if thinking else content


class GRPOTasks(TrainerCallback):
    """What a `GRPOTrainer` takes of a stream of tasks: its data, reward and callback.

    Args:
        tasks: The stream. Nobody else may draw from it.
        is_conversational: Whether a prompt is a list of messages; else it is their
            texts, for models without a chat template.
        thinking_open: Whether the chat template ends the prompt with `<think>`.

    Attributes:
        settings: Arguments of `GRPOConfig` that the stream needs: TRL would shuffle it
            (and draw 1,000 items before the first is used), and walk through all items
            of the first part of a resumed run.
        reward_funcs: One function; a completion that has no score has the reward None,
            which TRL leaves out. Its metric `reasoning_gym/unscored` is their share.
        callbacks: One, which keeps the stream's state in every checkpoint.
    """

    # TRL names the metrics of a reward function after this.
    __name__ = "reasoning_gym"

    settings: Mapping[str, Any] = {
        "shuffle_dataset": False,
        "ignore_data_skip": True,
        "remove_unused_columns": False,
    }

    def __init__(
        self,
        tasks: Tasks,
        *,
        is_conversational: bool = True,
        thinking_open: bool = False,
    ) -> None:
        self.tasks = tasks
        self.reward_funcs = self.callbacks = [self]
        self._is_training = False
        self._is_conversational = is_conversational
        self._thinking_open = thinking_open
        self._used = tasks.position

    # -- data --------------------------------------------------------------------------

    @property
    def train_dataset(self) -> IterableDataset:
        """Rows of `prompt`, `item` (JSON) and `position`; set `max_steps`, no end."""
        # A function of the module, since TRL's data sets pickle it to compute a digest.
        rows = functools.partial(_rows, self.tasks, self._is_conversational)
        return IterableDataset.from_generator(rows)

    def eval_dataset(
        self, samples_per_task: int, seed: int = 123, level: float | None = None
    ) -> Dataset:
        """Return the rows of `Tasks.evaluation`, whose results move nothing."""
        items = self.tasks.evaluation(samples_per_task, seed, level)
        how = NOT_TRAINING, self._is_conversational
        return Dataset.from_list([_row(item, *how) for item in items])

    # -- the reward --------------------------------------------------------------------

    async def __call__(
        self,
        completions: Sequence[Completion],
        item: Sequence[str],
        position: Sequence[int],
        **others: Any,
    ) -> list[float | None]:
        """Return the reward of each completion, in [0, 1] or None, shape (B,).

        Item and position are columns of the rows; `others` are TRL's own arguments.
        """
        # TRL gives it to a function of its own process, whose callbacks it calls.
        is_unchecked = "trainer_state" in others and not self._is_training
        if is_unchecked and {*position} != {NOT_TRAINING}:
            text = "GRPOTrainer: the tasks need callbacks=tasks.callbacks"
            raise SettingError(f"{text}, which check the settings and save their state")
        texts = map(_text, completions)
        pairs = itertools.groupby(zip(item, texts, strict=True), lambda pair: pair[0])
        how: Any = {"thinking_open": self._thinking_open}
        groups = [
            score_async(self._item(line), [text for _, text in group], **how)
            for line, group in pairs
        ]
        scored = itertools.chain.from_iterable(await asyncio.gather(*groups))
        values = [result.value for result in scored]
        self._feed_back([*zip(item, position, values, strict=True)])
        if (log := others.get("log_metric")) is not None:
            log("reasoning_gym/unscored", values.count(None) / len(values))
        return values

    def _item(self, line: str) -> Item:
        return Item.from_json(line, self.tasks.task_modules)

    def _feed_back(self, rows: Sequence[tuple[str, int, float | None]]) -> None:
        """Let item, position and reward of all processes move levels and weights."""
        if PartialState().num_processes > 1:
            rows = gather_object(list(rows))
        for (line, position), group in itertools.groupby(rows, lambda row: row[:2]):
            if position != NOT_TRAINING:
                self.tasks.feedback(self._item(line), [row[2] for row in group])
                self._used = max(self._used, position)

    def __getstate__(self) -> dict[str, Any]:
        """Raise an error on pickling: results of a copy would move other levels."""
        if self.tasks.follows_results:
            raise TypeError(
                "the levels or weights of these tasks follow results, so their reward"
                " function cannot be sent to another process, as AsyncGRPO does; use"
                " fixed levels there"
            )
        return dict(vars(self))

    # -- the callback ------------------------------------------------------------------

    def on_train_begin(
        self, args: Any, state: Any, control: Any, **others: Any
    ) -> None:
        """Check the settings, and go on where a resumed run was saved."""
        for name, value in self.settings.items():
            if getattr(args, name, None) != value:
                raise SettingError(
                    f"GRPOConfig: {name} must be {value!r};"
                    " pass GRPOConfig(**tasks.settings, ...)"
                )
        self._is_training = True
        if state.global_step:
            try:
                self.tasks.load_state_dict(state.stateful_callbacks[STATE])
            except (KeyError, ValueError) as error:
                raise RunError(
                    f"the checkpoint has no state of the tasks ({error}); was it saved"
                    " with callbacks=tasks.callbacks?"
                ) from error
            self._used = self.tasks.position

    def on_step_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        """Keep the state, as of the last item that was trained on, for a checkpoint."""
        whole = {**self.tasks.state_dict(), "position": self._used}
        state.stateful_callbacks[STATE] = whole


def _rows(tasks: Tasks, is_conversational: bool) -> Iterator[dict[str, Any]]:
    """Yield the rows of a stream, each with the position behind it."""
    while True:
        for number in range(1, TRIES):
            with contextlib.suppress(WorkerLostError):
                item = next(tasks)
                break
            time.sleep(PAUSE_S * number)
        else:
            item = next(tasks)
        yield _row(item, tasks.position, is_conversational)


def _row(item: Item, position: int, is_conversational: bool) -> dict[str, Any]:
    prompt: Any = item.messages
    if not is_conversational:
        prompt = "".join(f"{m['content']}\n\n" for m in item.messages)
    return {"prompt": prompt, "item": item.to_json(), "position": position}
