"""A group: the rollouts of one item, from the item to their ending.

A `Group` contains everything that is known about a group. Each step receives it and
adds its result: prompt and completions, scores, rewards, the record, and the data for
the trainer. All of these list the same rollouts in the same order.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import time
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

from rg_env.inference.completions import PROMPT_LOGPROB, PROMPT_MASK, Completion
from rg_env.inference.prompts import Prompt
from rg_env.items.group_scorer import TaskHandle
from rg_env.rollouts.group_record import GroupRecord, Provenance, RolloutRecord
from rg_env.rollouts.ledger import Ending
from rg_env.scoring.score import Score

Rollout = Mapping[str, Any]
"""messages, rg_item, dataset_obj, finish_reason, tokens, masks, logprobs; and
thinking_open where the chat template began the thinking."""


def completion_tokens(rollout: Rollout) -> int:
    """Return the length of a rollout's completion, in tokens."""
    masks = list(rollout["masks"])
    return len(masks) - masks.count(PROMPT_MASK)


def mean_logprob(rollout: Rollout) -> float | None:
    """Return the mean log-probability over a completion, None where there is none."""
    logprobs, length = rollout.get("logprobs"), completion_tokens(rollout)
    if logprobs is None or not length:
        return None
    # The prompt is left out by its sum: a slice of a long list costs more.
    of_prompt = (len(logprobs) - length) * PROMPT_LOGPROB
    return float((sum(logprobs) - of_prompt) / length)


def listed(data: Any) -> list[dict[str, Any]]:
    """Return one group's data, or that of several of which some may be None."""
    several = data if isinstance(data, list) else [data]
    return [one for one in several if one is not None]


def rollouts_in(data: Any) -> int:
    """Return the rollouts in the data of a group, of several, of None."""
    return sum(len(one["tokens"]) for one in listed(data) if one)


@dataclasses.dataclass(eq=False)
class Group:
    """Everything that belongs to one group; each step adds what the next one needs.

    The framework's hooks take an item or a group's data, and their arguments are fixed.
    Our hooks find the rest with `Group.of`.

    Attributes:
        item: (messages, entry, dataset), or what a subclass samples.
        tries: How often groups of this item were lost before.
        prompt: What the servers were sent.
        completions: What they replied, shape (G,).
        rollouts: What the hook `score` takes, shape (G,).
        scores: The task's score of each, shape (G,).
        rewards: What the trainer gets for each, in [0, 1], shape (G,).
        record: All that is known of it once it is scored, as it is dumped.
        data: What the trainer gets, as the newest hook returned it: one group, a list
            of several, or None where there is none.
        in_flight: Rollouts of `data` that have not ended.
        ending: How its rollouts ended, once it is known of all.
        worker: The task that works on it in `serve`.
        start_time: When it was started, a framework's name; the system's clock jumps.
        began_s: The same of a clock that does not jump.
    """

    item: Any
    tries: int = 0
    prompt: Prompt | None = None
    completions: Sequence[Completion] = ()
    rollouts: Sequence[Rollout] = ()
    scores: Sequence[Score] = ()
    rewards: Sequence[float] = ()
    record: GroupRecord | None = None
    data: Any = None
    in_flight: int = 0
    ending: Ending | None = None
    worker: asyncio.Task[Any] | None = None
    start_time: float = dataclasses.field(default_factory=time.time)
    began_s: float = dataclasses.field(default_factory=time.monotonic)

    def __getitem__(self, name: str) -> Any:
        """Return item, worker or start_time, as the framework's `running_items` do."""
        return getattr(self, name)

    @classmethod
    def of(cls, item: Any) -> Group:
        """Return the group that the current hook works on.

        If a hook is called from elsewhere, a new group for the item is returned.
        """
        current = _current.get()
        return (current and current()) or cls(item)

    @classmethod
    def of_rollouts(cls, rollouts: Sequence[Rollout]) -> Group:
        """Return the group that these rollouts belong to.

        If a hook has made or changed the list, a new group is returned, because the
        hook may score several lists at a time.
        """
        current = _current.get()
        group = current and current()
        # By identity: a hook that copies or filters the list scores another group.
        if group and group.rollouts is rollouts:
            return group
        first = rollouts[0]
        item = first["messages"][:-1], first["rg_item"], first["dataset_obj"]
        return cls(item, rollouts=rollouts)

    @contextlib.contextmanager
    def in_hooks(self) -> Iterator[None]:
        """Make `of` return this group in the hooks that are called inside."""
        token = _current.set(weakref.ref(self))
        try:
            yield
        finally:
            _current.reset(token)

    # -- what each step writes on it ---------------------------------------------------

    def take_completions(self, completions: Sequence[Completion]) -> None:
        """Take the completions of its prompt, and make its rollouts of them."""
        prompt, (_, entry, dataset) = self.prompt, self.item
        assert prompt is not None  # noqa: S101 - it is what the servers completed
        self.completions = completions
        self.rollouts = [
            {
                "messages": [
                    *prompt.messages,
                    {"role": "assistant", "content": completion.text},
                ],
                "rg_item": entry,
                "dataset_obj": dataset,
                "finish_reason": completion.finish_reason,
                "tokens": completion.tokens,
                "masks": completion.masks,
                "logprobs": completion.logprobs,
                "thinking_open": prompt.thinking_open,
            }
            for completion in completions
        ]

    @property
    def entry(self) -> Any:
        """The library's entry; the rollouts say it, which a hook may have changed."""
        return self.rollouts[0]["rg_item"]

    @property
    def dataset(self) -> Any:
        """What scores the entry's answers, likewise."""
        return self.rollouts[0]["dataset_obj"]

    @property
    def task(self) -> str:
        """The task that made the entry."""
        if isinstance(self.dataset, TaskHandle):
            return self.dataset.task
        metadata = self.entry.get("metadata") or {}
        return str(metadata.get("source_dataset", "unknown"))

    @property
    def baseline(self) -> float:
        """What guessing scores; 0 for an item from outside."""
        is_ours = isinstance(self.dataset, TaskHandle)
        return self.dataset.baseline if is_ours else 0.0

    def make_record(self) -> GroupRecord:
        """Return the record, of the rollouts, scores and rewards."""
        provenance = None  # nothing regenerates an item from outside
        if isinstance(made := self.dataset, TaskHandle):
            provenance = Provenance(
                split=made.split,
                index=made.index,
                seed=made.seed,
                level=made.level,
                params=dict(made.params),
            )
        records = map(_rollout_record, self.rollouts, self.scores, self.rewards)
        return GroupRecord(
            task=self.task,
            rollouts=list(records),
            gold_answer=self.entry.get("answer"),
            provenance=provenance,
            baseline=self.baseline,
        )

    def keep(self, data: Any) -> None:
        """Take over what a hook returned; its rollouts are in flight from now on."""
        self.data, self.in_flight = data, rollouts_in(data)

    def next_try(self) -> Group:
        """Return a new group of the same item, as often tried."""
        return Group(self.item, self.tries)


def _rollout_record(rollout: Rollout, score: Score, reward: float) -> RolloutRecord:
    length, formats = completion_tokens(rollout), score.formats
    return RolloutRecord(
        conversation=[dict(message) for message in rollout["messages"]],
        score=score.value,
        reward=reward,
        outcome=score.outcome,
        answer=score.answer,
        finish_reason=rollout.get("finish_reason"),
        prompt_tokens=len(rollout["tokens"]) - length,
        completion_tokens=length,
        normalized=score.normalized,
        formats={"bare": formats.bare, "tagged": formats.tagged} if formats else None,
    )


_current: ContextVar[weakref.ref[Group] | None]
# Weak: a connection that is opened in a hook keeps the hook's context as long as it
# lives, and a group has much data.
_current = ContextVar("current_group", default=None)
