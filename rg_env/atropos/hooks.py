"""The framework's hooks that a group passes, and a run that calls them in its parts.

A run calls `get_next_item` for each item, and `postprocess_histories` and then
`handle_send_to_api` for each scored group. It calls two other hooks only if a subclass,
a mixin or an instance overrides them. The hook then does the work of several parts:

    collect_trajectories    the model, the reward, and the sinks of scored groups
    score                   the reward, and the sinks of scored groups

`super()` finds the methods of `Hooks`. A hook is called with the framework's arguments,
and works on the group of the asyncio task that calls it.

Mends B4, B7, B8 and B13 of docs/host_defects.md: the framework cancels groups in flight
when there is one too many, loses one with `group_overrides: None` or an error in the
rows for W&B, and drops one that raises without a traceback or a pause.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from atroposlib.envs.base import BaseEnv, ScoredDataGroup

from rg_env.atropos.delivery import GroupSender, check
from rg_env.atropos.model import Completions, ItemPrompts
from rg_env.atropos.rewards import GroupRewards
from rg_env.run.group import Group, count_rollouts, groups_in
from rg_env.run.group_loop import Lost, Part, Refused, Run
from rg_env.run.ledger import Ending, Ledger
from rg_env.run.metrics import Metrics
from rg_env.stream.group_scorer import ScoringUnavailableError
from rg_env.stream.prefetch import NoItemsError

if TYPE_CHECKING:
    from rg_env.atropos.evaluation_run import Evaluation

logger = logging.getLogger(__name__)

# After this many items in a row whose prompt leaves no room for an answer, a run ends.
LONG_PROMPTS_IN_A_ROW = 200

HookItem = tuple[Sequence[Mapping[str, str]], Mapping[str, Any], Any]

group_at_work: ContextVar[Group | None] = ContextVar("group_at_work", default=None)
"""The group that a hook works on. `HookParts` sets it in the asyncio task of a group,
before it calls a hook. A hook that is called from elsewhere works on a new group."""


def override_of(env: Any, name: str, base: type) -> Any:
    """Return the method by which a subclass or an instance overrides that of `base`.

    None if it does not override it.
    """
    method = getattr(env, name, None)
    is_of_base = getattr(method, "__func__", method) is getattr(base, name, None)
    return None if is_of_base else method


class Hooks(BaseEnv):
    """The hooks that a group passes, from its item to its delivery, and an evaluation.

    An item is `(messages, entry, dataset)`: the prompt; a dict with question, answer
    and `metadata` with the task's name in `source_dataset`; and an object with
    `score_answer(answer, entry) -> float`. A subclass may return items of its own from
    `get_next_item`, and None if there are no more.
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
        """Return the group that a part works on, or a new one outside of a run."""
        in_flight = count_rollouts(data)
        return group_at_work.get() or Group(item, self.ledger, in_flight=in_flight)

    async def get_next_item(self) -> HookItem:
        """Return the next item of the stream that leaves room for an answer.

        Raises:
            NoItemsError: `LONG_PROMPTS_IN_A_ROW` prompts left no room.
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
        self, item: HookItem
    ) -> tuple[ScoredDataGroup | None, list[HookItem]]:
        """Query the servers for rollouts of an item, and score them.

        Returns:
            The scored group, or None; and the item if it is to be sampled again.
        """
        group = self._group_for(item)
        try:
            await self._model.complete(group, item)
            data = await self.score(group.completions)
        except (Lost, ScoringUnavailableError) as error:
            ending = error.ending if isinstance(error, Lost) else Ending.UNSCORED
            group.end(ending, self.config.group_size)
            return None, [item] if self._run.use_try(group, error) else []
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
        """Check a group, or several; write and send those that pass.

        Source: atroposlib 0.4.0, BaseEnv.handle_send_to_api(); differs: mends B7 and
        B8, and rows for W&B are made after the send.
        """
        group = self._group_for(item, scored_data)
        group.data = scored_data
        group.is_for_trainer = do_send_to_api
        is_limited = abort_on_any_max_length_exceeded
        try:
            await check(self, group, self.max_token_len if is_limited else 0)
        except Refused:  # `check` has counted the rollouts
            return
        if self.jsonl_writer is not None:
            await self.jsonl_writer.take(group)
        if do_send_to_api:
            await self._sender.take(group)
        for data in groups_in(group.data):
            await self.add_rollouts_for_wandb(data, group.item)

    async def rollout_and_score_eval(self, test_data_tuple: Any) -> float:
        """Return the score of a completion of an item, which no metric counts.

        The item is `(messages, entry, dataset)` or `(entry, dataset)`.
        """
        return await self._evaluation.score_of(test_data_tuple)

    async def evaluate(self, *args: Any, **kwargs: Any) -> None:
        """Query all evaluation items; save, print and log the results."""
        await self._evaluation.run()


# -- the parts that call them ----------------------------------------------------------


@dataclasses.dataclass
class HookParts:
    """Parts of a run that call the hooks of its environment."""

    env: Hooks

    async def complete(self, group: Group) -> None:
        """Call the overridden `collect_trajectories` for the item of a group.

        The items that it returns are sampled again.
        """
        group_at_work.set(group)
        data, items = await self.env.collect_trajectories(group.item)
        self.env.backlog += [
            group.next_try() if item is group.item else item for item in items
        ]
        _keep(group, data)

    async def score(self, group: Group) -> None:
        """Call the overridden `score` for the completions of a group."""
        group_at_work.set(group)
        data = await self.env.score(group.completions)
        if data is None:
            raise Refused(Ending.ZERO_VARIANCE)
        _keep(group, data)

    async def postprocess(self, group: Group) -> None:
        """Call `postprocess_histories`, which may change the data of a group."""
        group_at_work.set(group)
        _keep(group, await self.env.postprocess_histories(group.data))

    async def deliver(self, group: Group) -> None:
        """Call `handle_send_to_api`, with the framework's arguments."""
        group_at_work.set(group)
        send = self.env.handle_send_to_api
        if group.is_for_trainer:
            await send(group.data, group.item)
        else:
            await send(
                group.data,
                group.item,
                do_send_to_api=False,
                abort_on_any_max_length_exceeded=False,
            )


def _keep(group: Group, data: Any) -> None:
    group.set_data(data)
    if group.data is None:
        raise Refused(Ending.DISCARDED)


def with_hooks(env: Hooks) -> Run:
    """Return the run of an environment whose parts call its hooks."""
    parts = HookParts(env)
    run = dataclasses.replace(env._run, sinks=[parts.postprocess, parts.deliver])
    if override_of(env, "collect_trajectories", Hooks):
        run.complete = parts.complete
        run.score = None
    elif override_of(env, "score", Hooks):
        run.score = parts.score
    else:
        run.sinks = [*env._scored_sinks, *run.sinks]
    return run
