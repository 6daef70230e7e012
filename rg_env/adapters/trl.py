"""The tasks as the data and the reward of TRL's `GRPOTrainer`.

Every process of a distributed run walks the same stream. They draw the same items only
if the same results move their levels, so the results of all processes are gathered.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, groupby, zip_longest
from operator import itemgetter
from typing import Any

from accelerate.utils import gather_object
from datasets import Dataset, IterableDataset
from transformers import Trainer, TrainerCallback

from rg_env.errors import RunError, SettingError
from rg_env.reward.extraction import completion_text, opens_thinking
from rg_env.run.metrics import GroupLog
from rg_env.stream.completion_scores import score_async
from rg_env.stream.item import Item
from rg_env.stream.tasks import Tasks

STATE = "reasoning_gym_tasks"
"""The key in `trainer_state.json` of levels, weights and the place in the stream."""

# The `position` of evaluation rows; their results move nothing.
NOT_TRAINING = -1
MAX_MADE = 4096  # items that are kept until they are scored; others are made again


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
        self._template = processing_class
        self._given: Mapping[str, Any] = {}  # arguments of the chat template
        self._longest: int | None = None  # completion in tokens
        self._log = GroupLog()
        self._used = tasks.position
        self._made: dict[str, Item] = {}  # JSON to item, until it is scored
        # A module function, because TRL's data sets pickle it to compute a digest.
        has_template = processing_class.chat_template is not None
        self._rows = functools.partial(_rows, tasks, self._made, has_template)

    @property
    def train_dataset(self) -> IterableDataset:
        """Endless rows of `prompt`, `item` (JSON) and `position`; set `max_steps`."""
        return IterableDataset.from_generator(self._rows)

    def eval_dataset(
        self, samples_per_task: int, seed: int = 123, level: float | None = None
    ) -> Dataset:
        """Return the rows of `Tasks.evaluation`; their results move nothing."""
        items = self.tasks.evaluation(samples_per_task, seed, level)
        return Dataset.from_list([*self._rows(items)])

    async def reasoning_gym(
        self, completions: Sequence[Any], **given: Any
    ) -> list[float | None]:
        """Return the reward of each completion, in [0, 1] or None, shape (B,).

        Args:
            completions: Texts, or lists of messages.
            **given: The columns of the rows, and TRL's own arguments.
        """
        log = given.get("log_metric") or (lambda name, value: None)
        # In the training process, `log_metric` is a method of the trainer.
        trainer = getattr(log, "__self__", None)
        if isinstance(trainer, Trainer) and self._longest is None:
            trainer.add_callback(self)
            self.on_train_begin(trainer.args, trainer.state, None)
        is_open = self._opens_thinking()
        lines = given["item"]
        pairs = zip(lines, map(completion_text, completions), strict=True)
        groups = [
            score_async(
                self._item(line), [text for _, text in some], thinking_open=is_open
            )
            for line, some in groupby(pairs, itemgetter(0))
        ]
        results = [*chain.from_iterable(await asyncio.gather(*groups))]
        is_cut = [len(ids) == self._longest for ids in given.get("completion_ids", ())]
        rows = zip_longest(lines, given["position"], results, is_cut, fillvalue=False)
        for name, value in self._take([*rows]).items():
            log(f"reasoning_gym/{name}", value)
        return [result.value for result in results]

    def _opens_thinking(self) -> bool:
        if self._template.chat_template is None:
            return False
        prompt = self._template.apply_chat_template(
            [{"role": "user", "content": "1 + 1 ="}],
            tokenize=False,
            add_generation_prompt=True,
            **self._given,
        )
        return opens_thinking(prompt)

    def _item(self, line: str) -> Item:
        return self._made.get(line) or Item.from_json(line, self.tasks.task_modules)

    def _take(self, rows: Sequence[tuple[Any, ...]]) -> dict[str, float]:
        """Feed the groups of all processes back to the stream, and return metrics.

        A row is (JSON of the item, position, result, whether it was truncated).
        """
        is_training = rows[0][1] != NOT_TRAINING
        log = self._log if is_training else GroupLog()
        for (line, position), group in groupby(gather_object(rows), itemgetter(0, 1)):
            _, _, results, is_cut = zip(*group, strict=True)
            item = self._item(line)
            log.take(item, results, sum(is_cut))
            if is_training:
                self.tasks.feedback(item, results)
                self._used = max(self._used, position)
                self._made.pop(line, None)
        return log.metrics()

    def __getstate__(self) -> dict[str, Any]:
        """Raise TypeError if the results of a copy would move other levels."""
        if self.tasks.follows_results:
            text = "levels and weights that follow results cannot be sent to another"
            raise TypeError(f"{text} process, as AsyncGRPO does; fixed levels can")
        return dict(vars(self))

    def on_train_begin(self, args: Any, state: Any, *_: Any, **others: Any) -> None:
        """Check the settings, and restore the state of a resumed run."""
        for name, value in self.settings.items():
            if getattr(args, name, None) != value:
                text = "pass GRPOConfig(**tasks.settings, ...)"
                raise SettingError(f"GRPOConfig: {name} must be {value!r}; {text}")
        self._longest = args.max_completion_length or -1
        self._given = args.chat_template_kwargs or {}
        if state.global_step:
            try:
                self.tasks.load_state_dict(state.stateful_callbacks[STATE])
            except (KeyError, ValueError) as error:
                text = f"the checkpoint has no state of the tasks ({error})"
                raise RunError(f"{text}; was it saved with these tasks?") from error
            self._used = self.tasks.position

    def on_step_end(self, args: Any, state: Any, *_: Any, **others: Any) -> None:
        """Save the state as of the last trained item, for a checkpoint."""
        whole = {**self.tasks.state_dict(), "position": self._used}
        state.stateful_callbacks[STATE] = whole


def _rows(
    tasks: Tasks,
    made: dict[str, Item],
    is_conversational: bool,
    evaluation: Sequence[Item] | None = None,
) -> Iterator[dict[str, Any]]:
    """Yield the rows of evaluation items, or of a stream with the position behind."""
    for item in tasks.ahead() if evaluation is None else evaluation:
        place = tasks.position if evaluation is None else NOT_TRAINING
        texts = [f"{message['content']}\n\n" for message in item.messages]
        prompt = item.messages if is_conversational else "".join(texts)
        made[line := item.to_json()] = item
        if len(made) > MAX_MADE:
            made.pop(next(iter(made)))
        yield {"prompt": prompt, "item": line, "position": place}
