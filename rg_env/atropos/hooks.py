"""The framework's hooks that a group passes, and a run whose parts call them.

A run calls `get_next_item` for each item and `postprocess_histories` before it delivers
a group. It calls the other hooks only where a subclass, a mixin or an instance replaces
them: `with_hooks` puts a part that calls the hook in the place of ours.

    collect_trajectories    the model and the reward, with the sinks of scored groups
    score                   the reward, with the sinks of scored groups
    handle_send_to_api      the sink that delivers the group

`super()` finds the methods of `Hooks`. They get what the framework gives them,
and work on the group of the task that calls them.

Mends B4, B7, B8 and B13 of docs/host_defects.md: the framework cancels groups in flight
when there is one too many, loses one with `group_overrides: None` or an error in the
rows for W&B, and drops one that raises without a traceback or a pause.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from atroposlib.envs.base import BaseEnv, ScoredDataGroup

from rg_env.atropos.delivery import GroupSender, check
from rg_env.atropos.model import Completions, ItemPrompts
from rg_env.atropos.rewards import GroupRewards
from rg_env.run.group import Ending, Group, Ledger, listed, rollouts_in
from rg_env.run.group_loop import Lost, Part, Refused, Run
from rg_env.run.metrics import Metrics
from rg_env.stream.group_scorer import ScoringUnavailableError
from rg_env.stream.prefetch import NoItemsError

if TYPE_CHECKING:
    from rg_env.atropos.evaluation_run import Evaluation

logger = logging.getLogger(__name__)

# Items in a row without room for an answer before the run ends.
LONG_PROMPTS_IN_A_ROW = 200

Item = tuple[Sequence[Mapping[str, str]], Mapping[str, Any], Any]

group_at_work: ContextVar[Group | None] = ContextVar("group_at_work", default=None)
"""The group that a hook works on. A part sets it for the task of its group before it
calls a hook; elsewhere, a hook works on a new group."""


def own_method(env: Any, name: str, ours: type) -> Any:
    """Return a method that replaces the one of a class of ours; None if it is ours."""
    method = getattr(env, name, None)
    is_ours = getattr(method, "__func__", method) is getattr(ours, name, None)
    return None if is_ours else method


class Hooks(BaseEnv):
    """The hooks that a group passes, from its item to its delivery, and an evaluation.

    An item is `(messages, entry, dataset)`: the prompt; a dict with question, answer
    and `metadata` with the task's name in `source_dataset`; and an object with
    `score_answer(answer, entry) -> float`. A subclass that returns such items from
    `get_next_item` has them queried and scored; None says that there are no more.
    """

    ledger: Ledger
    metrics: Metrics
    _run: Run
    _prompts: ItemPrompts
    _model: Completions
    _rewards: GroupRewards
    _scored_sinks: Sequence[Part]
    _sender: GroupSender
    _evaluation: Evaluation

    def _group_for(self, item: Any = None, data: Any = None) -> Group:
        """Return the group that a hook works on; a new one if nothing works on any."""
        in_flight = rollouts_in(data)
        return group_at_work.get() or Group(item, self.ledger, in_flight=in_flight)

    async def get_next_item(self) -> Item:
        """Return the next item of the stream that leaves room for an answer.

        Raises:
            NoItemsError: `LONG_PROMPTS_IN_A_ROW` prompts did not fit.
        """
        items = self._prepared_items()
        limit = self.limit_tokens
        for _ in range(LONG_PROMPTS_IN_A_ROW):
            item = await items.next()
            messages = self._prompts.messages(item.question, item.seed)
            if await self._prompts.has_room(messages, limit):
                logger.debug("next item %r", item)
                return messages, item.entry, item
            self.metrics.events["prompts_too_long"] += 1
        raise NoItemsError(
            f"{LONG_PROMPTS_IN_A_ROW} prompts in a row reach the limit of"
            f" {limit} tokens; raise env.max_token_length or the trainer's"
        )

    async def collect_trajectories(
        self, item: Item
    ) -> tuple[ScoredDataGroup | None, list[Item]]:
        """Query the servers for rollouts of an item, and have them scored."""
        group = self._group_for(item)
        try:
            await self._model.complete(group, item)
            data = await self.score(group.completions)
        except (Lost, ScoringUnavailableError) as error:
            ending = getattr(error, "ending", Ending.UNSCORED)
            group.end(ending, self.config.group_size)
            return None, [item] if self._run.may_retry(group, error) else []
        if data is None:
            group.end(Ending.ZERO_VARIANCE, self.config.group_size)
        return data, []

    async def score(
        self, rollout_group_data: Sequence[Mapping[str, Any]]
    ) -> ScoredDataGroup | None:
        """Score the rollouts of one item.

        Args:
            rollout_group_data: One dict per rollout, shape (G,), with messages,
                rg_item, dataset_obj, finish_reason, tokens, masks and logprobs.

        Returns:
            The group in the same order, shape (G,); None if it is empty, or if its
            scores are all equal and `ensure_scores_are_not_same` is set.

        Raises:
            ScoringUnavailableError: The worker pool gave no scores.
        """
        if not rollout_group_data:
            return None
        group = self._group_for()
        group.completions = rollout_group_data
        await self._rewards.score(group)
        try:
            for sink in self._scored_sinks:
                await sink(group)
        except Refused:
            return None
        return group.data

    async def handle_send_to_api(
        self,
        scored_data: Any,
        item: Any = None,
        do_send_to_api: bool = True,
        abort_on_any_max_length_exceeded: bool = True,
    ) -> None:
        """Check a group, or several; those that pass are written and sent.

        Source: atroposlib 0.4.0, BaseEnv.handle_send_to_api(); differs: mends B7 and
        B8, and rows for W&B are made after the send.
        """
        group = self._group_for(item, scored_data)
        group.data = scored_data
        group.is_for_trainer = do_send_to_api
        with contextlib.suppress(Refused):  # refused rollouts have their ending
            await self._deliver(group, abort_on_any_max_length_exceeded)

    async def _deliver(self, group: Group, is_limited: bool | None = None) -> None:
        """Write and send a group, or those of several that pass the checks."""
        is_limited = group.is_for_trainer if is_limited is None else is_limited
        await check(self, group, self.max_token_len if is_limited else 0)
        if self.jsonl_writer is not None:
            await self.jsonl_writer.take(group)
        if group.is_for_trainer:
            await self._sender.take(group)
        for part in listed(group.data):
            await self.add_rollouts_for_wandb(part, group.item)

    async def rollout_and_score_eval(self, test_data_tuple: Any) -> float:
        """Return the score of a completion of an item, which no metric counts.

        The item is whole, or (entry, dataset).
        """
        return await self._evaluation.score_of(test_data_tuple)

    async def evaluate(self, *args: Any, **kwargs: Any) -> None:
        """Query all evaluation items; write, show and keep the results."""
        await self._evaluation.run()


# -- the parts that call them ----------------------------------------------------------


class OwnParts:
    """The parts of a run that call hooks."""

    def __init__(self, env: Hooks) -> None:
        self._env = env

    async def complete(self, group: Group) -> None:
        """Have an own `collect_trajectories` complete and score a group.

        Items that it puts back are sampled again.
        """
        group_at_work.set(group)
        data, again = await self._env.collect_trajectories(group.item)
        self._env.backlog += [
            group.next_try() if item is group.item else item for item in again
        ]
        _keep(group, data)

    async def score(self, group: Group) -> None:
        """Have an own `score` score a group."""
        group_at_work.set(group)
        data = await self._env.score(group.completions)
        if data is None:
            raise Refused(Ending.ZERO_VARIANCE)
        _keep(group, data)

    async def postprocess(self, group: Group) -> None:
        """Have the hook change the data of a group, or drop it."""
        group_at_work.set(group)
        _keep(group, await self._env.postprocess_histories(group.data))

    async def deliver(self, group: Group) -> None:
        """Have an own `handle_send_to_api` deliver a group."""
        # As the framework does: the defaults in `serve`, False twice in `process`.
        names = ("do_send_to_api", "abort_on_any_max_length_exceeded")
        told = {} if group.is_for_trainer else dict.fromkeys(names, False)
        group_at_work.set(group)
        await self._env.handle_send_to_api(group.data, group.item, **told)


def _keep(group: Group, data: Any) -> None:
    group.keep(data)
    if group.data is None:
        raise Refused(Ending.DISCARDED)


def with_hooks(env: Hooks) -> Run:
    """Return the run of an environment; its parts call the replaced hooks."""
    run = env._run
    own = OwnParts(env)
    scored = env._scored_sinks
    deliver: Part = env._deliver
    if own_method(env, "collect_trajectories", Hooks):
        run = dataclasses.replace(run, complete=own.complete, score=None)
        scored = []
    elif own_method(env, "score", Hooks):
        run = dataclasses.replace(run, score=own.score)
        scored = []
    if own_method(env, "handle_send_to_api", Hooks):
        deliver = own.deliver
    return dataclasses.replace(run, sinks=[*scored, own.postprocess, deliver])
