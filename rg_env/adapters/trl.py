"""The tasks as the data and the reward of TRL's `GRPOTrainer`.

Every process of a distributed run walks the same stream. They draw the same items only
if the same results move their levels, so the results of all processes are gathered.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, groupby
from operator import itemgetter
from typing import Any, NamedTuple

from accelerate.utils import gather_object
from datasets import Dataset, IterableDataset
from transformers import Trainer, TrainerCallback

from rg_env.errors import RunError, SettingError
from rg_env.reward.chat_messages import completion_text
from rg_env.reward.extraction import opens_thinking
from rg_env.run.metrics import GroupLog
from rg_env.stream.completion_scores import Result, score_async
from rg_env.stream.item import Item
from rg_env.stream.tasks import Tasks

STATE = "reasoning_gym_tasks"
"""The key in `trainer_state.json` of levels, weights and the position in the stream."""

# The `position` of evaluation rows, whose results move nothing.
NOT_TRAINING = -1
# Beyond it, the oldest item is made again when it is scored.
MAX_UNSCORED_ITEMS = 4096


class _ScoredRow(NamedTuple):
    """A completion of one process, which all processes get."""

    item: str
    position: int
    result: Result
    is_truncated: bool


class GRPOTasks(TrainerCallback):
    """The data, the reward and the callback of a `GRPOTrainer`, from a stream of tasks.

    Args:
        tasks: The stream. This must be its only user.
        processing_class: The tokenizer or processor of the model. Prompts are messages
            if it has a chat template, and otherwise their texts.

    Attributes:
        settings: Required arguments of `GRPOConfig`. Without them, TRL would shuffle
            the stream, which draws 1,000 items first, and draw it again in a resumed
            run.
        reward_funcs: One function, which also logs the metrics of `GroupLog`. A
            completion without a score has the reward None, which TRL leaves out.
        callbacks: One callback, which checks the settings and saves the stream's state
            in every checkpoint. A trainer without it gets it with the first rewards,
            when a resumed run has already drawn its first batches again.

    Example:
        tasks = GRPOTasks(Tasks("gcd", levels="curriculum"), tokenizer)
        args = GRPOConfig(max_steps=500, **tasks.settings)
        trainer = GRPOTrainer(model, tasks.reward_funcs, args, tasks.train_dataset)
        trainer.add_callback(tasks)
    """

    settings: Mapping[str, Any] = {
        "shuffle_dataset": False,
        "ignore_data_skip": True,
        "remove_unused_columns": False,
    }

    def __init__(self, tasks: Tasks, processing_class: Any) -> None:
        self.tasks = tasks
        self.reward_funcs = [self.reasoning_gym]
        self.callbacks = [self]
        self._tokenizer = processing_class
        self._template_kwargs: Mapping[str, Any] = {}
        self._max_completion_tokens: int | None = None
        self._has_begun = False
        self._log = GroupLog()
        self._trained_position = tasks.position
        self._unscored: dict[str, Item] = {}  # items by their JSON
        # Without `self`: datasets pickles it to compute a digest.
        has_template = processing_class.chat_template is not None
        self._row = functools.partial(_row, self._unscored, has_template)

    @property
    def train_dataset(self) -> IterableDataset:
        """Endless rows of `prompt`, `item` (JSON) and `position`; set `max_steps`."""
        rows = functools.partial(_training_rows, self.tasks, self._row)
        return IterableDataset.from_generator(rows)

    def eval_dataset(
        self, samples_per_task: int, seed: int = 123, level: float | None = None
    ) -> Dataset:
        """Return the rows of `Tasks.evaluation`; their results move nothing."""
        items = self.tasks.evaluation(samples_per_task, seed, level)
        return Dataset.from_list([self._row(item, NOT_TRAINING) for item in items])

    async def reasoning_gym(
        self, completions: Sequence[Any], **kwargs: Any
    ) -> list[float | None]:
        """Return the reward of each completion, in [0, 1] or None, shape (B,).

        Args:
            completions: Texts, or lists of messages.
            **kwargs: The columns of the rows, and TRL's own arguments.
        """
        log = kwargs.get("log_metric") or (lambda name, value: None)
        self._ensure_callback(log)
        items = kwargs["item"]
        is_open = self._opens_thinking()
        pairs = zip(items, map(completion_text, completions), strict=True)
        groups = [
            score_async(
                self._item(item), [text for _, text in group], thinking_open=is_open
            )
            for item, group in groupby(pairs, itemgetter(0))
        ]
        results = [*chain.from_iterable(await asyncio.gather(*groups))]
        tokens = kwargs.get("completion_ids", [()] * len(items))
        is_truncated = [len(ids) == self._max_completion_tokens for ids in tokens]
        columns = zip(items, kwargs["position"], results, is_truncated, strict=True)
        metrics = self._feed_back([_ScoredRow(*values) for values in columns])
        for name, value in metrics.items():
            log(f"reasoning_gym/{name}", value)
        return [result.value for result in results]

    def _ensure_callback(self, log: Any) -> None:
        """Add the callback to a trainer that was made without it."""
        # In the training process, `log_metric` is a method of the trainer.
        trainer = getattr(log, "__self__", None)
        if isinstance(trainer, Trainer) and not self._has_begun:
            trainer.add_callback(self)
            self.on_train_begin(trainer.args, trainer.state, None)

    def _opens_thinking(self) -> bool:
        if self._tokenizer.chat_template is None:
            return False
        prompt = self._tokenizer.apply_chat_template(
            [{"role": "user", "content": "1 + 1 ="}],
            tokenize=False,
            add_generation_prompt=True,
            **self._template_kwargs,
        )
        return opens_thinking(prompt)

    def _item(self, line: str) -> Item:
        modules = self.tasks.task_modules
        return self._unscored.get(line) or Item.from_json(line, modules)

    def _feed_back(self, rows: Sequence[_ScoredRow]) -> dict[str, float]:
        """Feed the groups of all processes back to the stream, and return metrics."""
        is_training = rows[0].position != NOT_TRAINING
        log = self._log if is_training else GroupLog()
        for (line, position), group in groupby(gather_object(rows), itemgetter(0, 1)):
            members = list(group)
            results = [row.result for row in members]
            item = self._item(line)
            log.take(item, results, sum(row.is_truncated for row in members))
            if is_training:
                self.tasks.feedback(item, results)
                self._trained_position = max(self._trained_position, position)
                self._unscored.pop(line, None)
        return log.metrics()

    def __getstate__(self) -> dict[str, Any]:
        """Raise TypeError if results move levels: those of a copy would move others."""
        if self.tasks.follows_results:
            raise TypeError(
                "levels and weights that follow results cannot be sent to another"
                " process, as AsyncGRPO does; fixed levels can"
            )
        return dict(vars(self))

    def on_train_begin(self, args: Any, state: Any, *_: Any, **others: Any) -> None:
        """Check the settings, and restore the state of a resumed run."""
        for name, value in self.settings.items():
            if getattr(args, name, None) != value:
                raise SettingError(
                    f"GRPOConfig: {name} must be {value!r};"
                    " pass GRPOConfig(**tasks.settings, ...)"
                )
        self._has_begun = True
        self._max_completion_tokens = args.max_completion_length
        self._template_kwargs = args.chat_template_kwargs or {}
        if state.global_step:
            try:
                self.tasks.load_state_dict(state.stateful_callbacks[STATE])
            except (KeyError, ValueError) as error:
                raise RunError(
                    f"the checkpoint has no state of the tasks ({error});"
                    " was it saved with these tasks?"
                ) from error
            self._trained_position = self.tasks.position

    def on_step_end(self, args: Any, state: Any, *_: Any, **others: Any) -> None:
        """Save the state as of the last trained item, for a checkpoint."""
        tasks_state = self.tasks.state_dict()
        tasks_state["position"] = self._trained_position
        state.stateful_callbacks[STATE] = tasks_state


def _training_rows(
    tasks: Tasks, row: Callable[[Item, int], dict[str, Any]]
) -> Iterator[dict[str, Any]]:
    """Yield the rows of the stream, with the position after each item."""
    for item in tasks.ahead():
        yield row(item, tasks.position)


def _row(
    unscored: dict[str, Item],
    is_conversational: bool,
    item: Item,
    position: int,
) -> dict[str, Any]:
    """Return the row of an item, and keep the item until it is scored."""
    texts = [f"{message['content']}\n\n" for message in item.messages]
    prompt = item.messages if is_conversational else "".join(texts)
    line = item.to_json()
    unscored[line] = item
    if len(unscored) > MAX_UNSCORED_ITEMS:
        unscored.pop(next(iter(unscored)))
    return {"prompt": prompt, "item": line, "position": position}
