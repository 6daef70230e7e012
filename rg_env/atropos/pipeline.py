"""The one loop over groups: items, their completions, their scores, and who gets them.

    command     items                      a group goes to              module
    serve       hook get_next_item         dumps, metrics, the API      serve_loop
    process     hook get_next_item         dumps, metrics, rows         process_run
    screen      the same, tasks in turn    the same; then a table       process_run
    evaluate    the evaluation items       samples, then the numbers    evaluation_run

`Flight` works on as many at once as there is place. `Pipeline._work_on` takes a group
from its item to the ending of each of its rollouts, through hooks of the framework that
are called once, from there:

    collect_trajectories    queries the servers, and has the hook `score` score
    postprocess_histories
    handle_send_to_api      checks the group, and hands it to those that take groups

A sink is whoever takes groups by `async take(group)`. Those of `GroupRewards` get each
group that was scored: metrics, dumps. Those of `Pipeline` get each that passed the
checks: rows, the API.

A hook gets the arguments that the framework gives it, and works on the group of the
task that it runs in, or of the task that started this one: `Pipeline._group_for`.

Mends B4, B7, B8 and B13 of docs/host_defects.md: the framework cancels groups in flight
when there is one too many, loses one with `group_overrides: None` or an error in the
rows for W&B, and drops one that raises without a traceback or a pause.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

from atroposlib.envs.base import APIServerConfig, BaseEnv, ScoredDataGroup

from rg_env.atropos.group_rewards import GroupRewards
from rg_env.atropos.result_files import RowRefusedError
from rg_env.atropos.rollout_requests import RolloutRequests, completion_tokens
from rg_env.ending import IN_FLIGHT_GRACE_S, cancel_and_wait
from rg_env.inference.connection import RequestFailedError
from rg_env.inference.servers import Servers
from rg_env.logs import is_worth_a_line
from rg_env.off_loop import off_loop
from rg_env.run.group import Ending, Group, Sink, listed, rollouts_in
from rg_env.run.metrics import Metrics
from rg_env.stream.group_scorer import ScoringUnavailableError
from rg_env.stream.prefetch import PrefetchedItems

logger = logging.getLogger(__name__)

# Groups of one item that may be lost before the item is.
ITEM_TRIES = 5

# After an error of ours, so that a fault that repeats does not spin.
ERROR_PAUSE_S = 1.0

SET_IF_ABSENT = (
    *("ref_logprobs", "overrides", "group_overrides"),
    *("distill_token_ids", "distill_logprobs"),
)

Item = tuple[Sequence[Mapping[str, str]], Mapping[str, Any], Any]

current_group: ContextVar[Group | None] = ContextVar("current_group", default=None)
"""The group that a task works on."""


class Flight:
    """What is worked on at once; `freed` is set when another may perhaps begin."""

    def __init__(self) -> None:
        self.workers: set[asyncio.Task[Any]] = set()
        self.freed = asyncio.Event()
        self._error: BaseException | None = None

    async def fill(
        self,
        next_work: Callable[[], Awaitable[Coroutine[Any, Any, None] | None]],
        may_begin: Callable[[], bool],
    ) -> None:
        """Begin work while it may.

        `next_work` returns what is done next, None where there is nothing.
        """
        while may_begin() and (work := await next_work()) is not None:
            worker = asyncio.get_running_loop().create_task(work)
            self.workers.add(worker)
            worker.add_done_callback(self._note_end)
            # It begins now; and what else is due does not wait for a whole burst.
            await asyncio.sleep(0)

    def _note_end(self, worker: asyncio.Task[Any]) -> None:
        self.workers.discard(worker)
        self.freed.set()
        if not worker.cancelled():
            self._error = self._error or worker.exception()

    async def run(
        self,
        next_work: Callable[[], Awaitable[Coroutine[Any, Any, None] | None]],
        may_begin: Callable[[], bool],
    ) -> None:
        """Work until nothing more may begin and all has ended.

        If some work raises an error, the rest is ended after a short grace.
        """
        try:
            while True:
                self.freed.clear()
                await self.fill(next_work, may_begin)
                if self._error is not None:
                    raise self._error
                if not self.workers:
                    return
                await self.freed.wait()
        finally:
            await cancel_and_wait(self.workers, IN_FLIGHT_GRACE_S)


class Pipeline(BaseEnv):
    """The hooks that a group passes, from its item to the ending of its rollouts.

    An item is `(messages, entry, dataset)`: the prompt; a dict with question, answer
    and `metadata`, whose `source_dataset` is the task's name; and an object with
    `score_answer(answer, entry) -> float`. A subclass that returns such items from
    `get_next_item` has them queried and scored; None says that there are no more.
    """

    backlog: list[Any]
    """Lost groups whose items are sampled again before any new one; a subclass may add
    items of its own."""

    metrics: Metrics
    _collect_within_s: float | None = None
    _items: PrefetchedItems | None
    _requests: RolloutRequests
    _server: APIServerConfig  # the settings of the first server
    _servers: Servers
    _rewards: GroupRewards
    _sinks: Sequence[Sink]
    _trainer: Sink

    # -- a group -----------------------------------------------------------------------

    async def _next_group(self) -> Group | None:
        """Return a group of an item of the backlog, or else of a new one, if any."""
        item = self.backlog.pop() if self.backlog else await self.get_next_item()
        if item is None or isinstance(item, Group):
            return item
        return Group(item, self.metrics.ledger)

    def _group_for(self, item: Any = None, data: Any = None) -> Group:
        """Return the group that a hook works on; a new one if nothing works on any."""
        group = current_group.get()
        return group or Group(item, self.metrics.ledger, in_flight=rollouts_in(data))

    async def _work_on(self, group: Group, **how: Any) -> None:
        """Query, score and deliver a group; each of its rollouts has an ending then.

        What a hook drops is `discarded`. What it loses to an error is `failed`, and
        the item is sampled again. `how` is what `handle_send_to_api` is told besides.

        Source: atroposlib 0.4.0, BaseEnv.handle_env(); differs: that, and errors have
        their traceback.
        """
        otherwise, before = Ending.CANCELLED, current_group.set(group)
        try:
            collecting = self.collect_trajectories(group.item)
            data, again = await asyncio.wait_for(collecting, self._collect_within_s)
            self.backlog += [
                group.next_try() if item is group.item else item for item in again
            ]
            group.keep(data)
            if group.data is not None:
                group.keep(await self.postprocess_histories(group.data))
            if group.data is not None:
                await self.handle_send_to_api(group.data, group.item, **how)
            otherwise = Ending.DISCARDED
        except RowRefusedError:
            otherwise = Ending.FAILED
            raise
        except Exception as error:
            otherwise = Ending.FAILED
            self.metrics.events["errors"] += 1
            count = self.metrics.events["errors"]
            if is_worth_a_line(count):
                logger.error("a group failed (error %d)", count, exc_info=error)
            await asyncio.sleep(ERROR_PAUSE_S)
            # Else all of it was delivered before the error.
            if group.in_flight or group.data is None:
                self._retry(group)
        finally:
            current_group.reset(before)
            group.end(otherwise)

    def _may_retry(self, group: Group) -> bool:
        """Count a lost try; return whether the item is to be sampled again.

        Its rollouts are counted as lost at every try.
        """
        group.tries += 1
        if group.tries < ITEM_TRIES:
            return True
        logger.error("%r is given up after %d tries", group.item[-1], group.tries)
        return False

    def _retry(self, group: Group) -> None:
        if self._may_retry(group):
            self.backlog.append(group.next_try())

    @property
    def limit_tokens(self) -> int:
        """The longest sequence that may be generated, in tokens."""
        # The framework drops a whole group when one of its sequences reaches the
        # trainer's limit.
        limit, trainer = self.config.max_token_length, self.max_token_len
        return min(limit, trainer - 1) if trainer > 0 else int(limit)

    # -- its hooks ---------------------------------------------------------------------

    async def get_next_item(self) -> Item:
        """Return the next item of the stream whose prompt leaves room for an answer."""
        if self._items is None:
            raise RuntimeError("this needs setup() first")
        limit, events = self.limit_tokens, self.metrics.events
        return await self._requests.next_that_fits(self._items, events, limit)

    async def collect_trajectories(
        self, item: Item
    ) -> tuple[ScoredDataGroup | None, list[Item]]:
        """Query the servers for rollouts of an item, and have them scored."""
        group, began = self._group_for(item), time.monotonic()
        group.query(size := self.config.group_size)
        try:
            completed = await self._requests.query(
                item, self.limit_tokens, group.on_reply
            )
            group.on_reply()  # the client of a subclass may not have called it
            data = await self.score(completed)
        except RequestFailedError:
            group.end(Ending.UNANSWERED, size)
            # An outage is not the fault of the item, and costs it no try.
            is_retried = self._servers.is_down or self._may_retry(group)
            return None, [item] if is_retried else []
        except ScoringUnavailableError as error:
            group.end(Ending.UNSCORED, size)
            logger.error("a group is lost: %s", error)
            return None, [item] if self._may_retry(group) else []
        if data is None:
            group.end(Ending.ZERO_VARIANCE, size)
        elif isinstance(data, dict):  # as ours is
            data["seconds"] = round(time.monotonic() - began, 3)
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
        group, limit = self._group_for(), self.limit_tokens
        return await self._rewards.score(group, rollout_group_data, limit)

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
        group, passed = self._group_for(item, scored_data), list[dict[str, Any]]()
        group.is_for_trainer = do_send_to_api
        limit = self.max_token_len if abort_on_any_max_length_exceeded else 0
        for part in listed(scored_data):
            fault = await self._fault_of(part, do_send_to_api, limit)
            if fault is None:
                passed.append(part)
            else:
                logger.warning("a group is not sent: %s", fault)
                group.end(Ending.DISCARDED, rollouts_in(part))
        is_list = isinstance(scored_data, list)
        group.data = passed if is_list else next(iter(passed), None)
        for sink in self._sinks if passed else ():
            if do_send_to_api or sink is not self._trainer:
                await sink.take(group)
        for part in passed:
            await self.add_rollouts_for_wandb(part, group.item)

    async def _fault_of(
        self, part: dict[str, Any], is_for_trainer: bool, limit_tokens: int
    ) -> str | None:
        """Return why a group cannot be delivered; set what the API expects in it.

        Every sequence must stay below `limit_tokens`, 0 or less for no limit.
        """
        config, rows = self.config, part.get("tokens", [])
        size = (part.get("group_overrides") or {}).get("group_size", config.group_size)
        if len(rows) != size:
            return f"it has {len(rows)} rollouts instead of {size}"
        if config.ensure_scores_are_not_same and len(set(part["scores"])) == 1:
            return "its scores are all the same"
        for key in SET_IF_ABSENT:
            part.setdefault(key, None)
        lengths = [*map(completion_tokens, part["masks"])]
        self.completion_lengths += lengths
        if is_for_trainer and 0 in lengths:
            return "a completion has no token that could be trained on"
        longest = max(map(len, rows), default=0)
        if 0 < limit_tokens <= longest:
            return f"{longest} tokens reach the trainer's limit, {limit_tokens}"
        if config.include_messages and part.get("messages") is None:
            decode = self.tokenizer.decode
            texts = await off_loop(lambda: [*map(decode, part["tokens"])])
            part["messages"] = [[{"role": "user", "content": text}] for text in texts]
        return None
