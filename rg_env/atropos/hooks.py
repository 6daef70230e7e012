"""The framework's hooks that a group passes, and a run whose parts call them.

A run calls no hook of ours: its parts do the same. `with_hooks` puts a part that calls
the hook in the place of each part that a subclass, a mixin or an instance replaces:

    get_next_item           the source
    collect_trajectories    the model and the reward, with the sinks of scored groups
    score                   the reward, with the sinks of scored groups
    postprocess_histories   one more sink, before the group is delivered
    handle_send_to_api      the sinks that deliver the group

`super()` finds the methods of `Hooks`. They get what the framework gives them,
and work on the group of the task that calls them.

Mends B4, B7, B8 and B13 of docs/host_defects.md: the framework cancels groups in flight
when there is one too many, loses one with `group_overrides: None` or an error in the
rows for W&B, and drops one that raises without a traceback or a pause.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from atroposlib.envs.base import BaseEnv, ScoredDataGroup

from rg_env.atropos.completions import Completions
from rg_env.atropos.new_items import NewItems
from rg_env.atropos.rewards import GroupRewards
from rg_env.atropos.trainer_data import Checks
from rg_env.run.group import Ending, Group, Ledger, rollouts_in
from rg_env.run.loop import Lost, Refused, Run, Sink
from rg_env.stream.group_scorer import ScoringUnavailableError

if TYPE_CHECKING:
    from rg_env.atropos.evaluation_run import Evaluation

Item = tuple[Sequence[Mapping[str, str]], Mapping[str, Any], Any]

_current_group: ContextVar[Group | None] = ContextVar("current_group", default=None)


@contextlib.contextmanager
def working_on(group: Group) -> Iterator[None]:
    """Have the hooks that are called inside work on a group."""
    before = _current_group.set(group)
    try:
        yield
    finally:
        _current_group.reset(before)


def group_at_work() -> Group | None:
    """Return the group that the caller, a hook, works on; None if it works on none."""
    return _current_group.get()


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
    _run: Run
    _new_items: NewItems
    _model: Completions
    _rewards: GroupRewards
    _scored_sinks: Sequence[Sink]
    _checks: Checks
    _evaluation: Evaluation

    def _deliveries(self, *, to_trainer: bool) -> list[Sink]:
        """Return the sinks of groups that have passed the checks."""
        raise NotImplementedError

    def _group_for(self, item: Any = None, data: Any = None) -> Group:
        """Return the group that a hook works on; a new one if nothing works on any."""
        in_flight = rollouts_in(data)
        return group_at_work() or Group(item, self.ledger, in_flight=in_flight)

    async def get_next_item(self) -> Item:
        """Return the next item of the stream that leaves room for an answer."""
        return await self._new_items.next()

    async def collect_trajectories(
        self, item: Item
    ) -> tuple[ScoredDataGroup | None, list[Item]]:
        """Query the servers for rollouts of an item, and have them scored."""
        group = self._group_for(item)
        size = self._model.completions
        group.query(size)
        try:
            await self._model.complete(group, item)
            data = await self.score(group.completions)
        except (Lost, ScoringUnavailableError) as error:
            group.end(getattr(error, "ending", Ending.UNSCORED), size)
            return None, [item] if self._run.may_retry(group, error) else []
        if data is None:
            group.end(Ending.ZERO_VARIANCE, size)
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
                await sink.take(group)
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
        limit = self.max_token_len if abort_on_any_max_length_exceeded else 0
        with contextlib.suppress(Refused):  # refused rollouts have their ending
            await self._checks.check(group, limit)
            for sink in self._deliveries(to_trainer=do_send_to_api):
                await sink.take(group)

    async def rollout_and_score_eval(self, test_data_tuple: Any) -> float:
        """Return the score of a completion of an item, which no metric counts.

        The item is whole, or (entry, dataset).
        """
        return await self._evaluation.score_of(test_data_tuple)

    async def evaluate(self, *args: Any, **kwargs: Any) -> None:
        """Query all evaluation items; write, show and keep the results."""
        await self._evaluation.run()


# -- the parts that call them ----------------------------------------------------------


class Own:
    """A part that calls a hook."""

    def __init__(self, env: Hooks) -> None:
        self._env = env


class OwnItems(Own):
    """The source of an own `get_next_item`."""

    async def next(self) -> Any:
        """Return the item that the hook returns."""
        return await self._env.get_next_item()


class OwnRollouts(Own):
    """The model, and the reward, of an own `collect_trajectories`."""

    completions = 0  # the hook counts those that it queries

    async def complete(self, group: Group) -> None:
        """Have the hook collect a group; items that it puts back are sampled again."""
        with working_on(group):
            data, again = await self._env.collect_trajectories(group.item)
        self._env.backlog += [
            group.next_try() if item is group.item else item for item in again
        ]
        _keep(group, data)

    async def score(self, group: Group) -> None:
        """Do nothing: the hook has scored the group."""


class OwnScores(Own):
    """The reward of an own `score`."""

    async def score(self, group: Group) -> None:
        """Have the hook score a group."""
        with working_on(group):
            data = await self._env.score(group.completions)
        if data is None:
            raise Refused(Ending.ZERO_VARIANCE)
        _keep(group, data)


class OwnHistories(Own):
    """The sink of an own `postprocess_histories`."""

    async def take(self, group: Group) -> None:
        """Have the hook change the data of a group, or drop it."""
        with working_on(group):
            _keep(group, await self._env.postprocess_histories(group.data))


class OwnDelivery(Own):
    """The sink of an own `handle_send_to_api`."""

    async def take(self, group: Group) -> None:
        """Have the hook deliver a group."""
        # As the framework does: the defaults in `serve`, False twice in `process`.
        is_default = group.is_for_trainer
        told = {} if is_default else dict.fromkeys(OF_PROCESS, False)
        with working_on(group):
            await self._env.handle_send_to_api(group.data, group.item, **told)


OF_PROCESS = ("do_send_to_api", "abort_on_any_max_length_exceeded")


def _keep(group: Group, data: Any) -> None:
    group.keep(data)
    if group.data is None:
        raise Refused(Ending.DISCARDED)


def with_hooks(env: Hooks, *, to_trainer: bool) -> Run:
    """Return the run of an environment; its parts call the replaced hooks."""
    run = env._run
    scored = list(env._scored_sinks)
    delivering = [env._checks, *env._deliveries(to_trainer=to_trainer)]
    own = {name for name in HOOKS if own_method(env, name, Hooks) is not None}
    if "get_next_item" in own:
        run = dataclasses.replace(run, source=OwnItems(env))
    if "collect_trajectories" in own:
        rollouts = OwnRollouts(env)
        run = dataclasses.replace(run, model=rollouts, reward=rollouts)
        scored = []
    elif "score" in own:
        run = dataclasses.replace(run, reward=OwnScores(env))
        scored = []
    if "handle_send_to_api" in own:
        delivering = [OwnDelivery(env)]
    if "postprocess_histories" in own:
        delivering = [OwnHistories(env), *delivering]
    return dataclasses.replace(run, sinks=[*scored, *delivering])


HOOKS = (
    "get_next_item",
    "collect_trajectories",
    "score",
    "postprocess_histories",
    "handle_send_to_api",
)
