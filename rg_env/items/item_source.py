"""Items made ahead in the worker processes and handed out in the stream's order.

What the items are depends on the draws alone, and on what the run had decided when
each was drawn; how far ahead and how fast they are made changes only when they are
ready. An item that is late although it was begun early is overtaken by those of other
tasks and handed out when it is ready, so that no slow task holds up the others.

A question of the evaluation is never asked, and one that its task asked lately is
replaced by another attempt at the same draw, as long as the task has others to ask. A
draw whose entry cannot be made is counted, named once and skipped: it uses up its
index, so that the items after it stay what they are.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
from collections import Counter
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterator,
    Mapping,
)
from typing import Any

from rg_env.answers.scoring_rules import ScoringRules
from rg_env.items import worker_jobs
from rg_env.items.group_scorer import TaskHandle
from rg_env.pool.pool_errors import JobFailed, PoolClosed, PoolError
from rg_env.pool.worker_pool import WorkerPool
from rg_env.tasks.asked_questions import AskedQuestions, QuestionFilter
from rg_env.tasks.item_stream import ItemSpec, ItemStream
from rg_env.tasks.sampler import MAX_ATTEMPTS

logger = logging.getLogger(__name__)

MAX_FAILURES_IN_A_ROW = 200
"""Draws that may fail one after the other before the source gives up."""

QUICK_MS = 50.0
"""An item that takes longer may not take the last worker, which scores."""

PATIENCE_S = 0.05
"""How long a run waits for its next item before others overtake it: as long, a place in
which the inference server could work stays empty."""

EVENTS = (
    "items_overtaken",
    "items_unusable",
    "repeats_avoided",
    "repeats_asked",
    "evaluations_avoided",
    "evaluations_skipped",
)
"""What is counted of the items, beside those that could not be made."""


class NoItems(RuntimeError):
    """No item could be made for so long that going on makes no sense."""


class _LeftOut(Exception):
    """The task of an item turned out to be left out."""


@dataclasses.dataclass(frozen=True)
class MadeItem:
    """An entry and the handle that scores it."""

    entry: Mapping[str, Any]
    handle: TaskHandle


@dataclasses.dataclass(eq=False)
class _Outstanding:
    """An item that was drawn and not yet handed out.

    Attributes:
        spec: What it is.
        attempt: Which seed of its draw is being tried.
        making: Its entry to come; None where its task is left out.
        is_late: Whether others may overtake it.
    """

    spec: ItemSpec
    attempt: int
    making: asyncio.Task[dict[str, Any]] | None
    is_late: bool = False

    @property
    def is_ready(self) -> bool:
        return self.making is None or self.making.done()


class ItemSource:
    """The items of one instance.

    Args:
        pool: Where entries are made.
        stream: What the items are; owned by the source from here on.
        lookahead: Entries being made ahead, at least 1.
        making_at_once: Entries that may be made at the same time, at least 1; quick
            ones one more.
        item_deadline_s: Seconds that making one entry may take.
        scoring_deadline_s: Handed on to the handles.
        rules: Handed on to the handles.

    Attributes:
        failures: Number of draws that gave no entry, by task.
        events: Number of items that were replaced, repeated or overtaken, by name.
        left_out: Task to the reason why its draws are skipped unasked.
        places: Taken by whoever makes slow entries, so that a worker stays free.
        is_awaited: Whether a run waits for its next item.
        patience_s: How long the next item is waited for before others overtake it;
            None to keep the order whatever it costs.
    """

    def __init__(
        self,
        pool: WorkerPool,
        stream: ItemStream,
        *,
        lookahead: int,
        making_at_once: int,
        item_deadline_s: float,
        scoring_deadline_s: float,
        rules: ScoringRules,
    ) -> None:
        self._pool = pool
        self._stream = stream
        self._lookahead = lookahead
        self._item_deadline_s = item_deadline_s
        self._scoring_deadline_s = scoring_deadline_s
        self._rules = rules
        self._ahead: list[_Outstanding] = []
        self.places = asyncio.Semaphore(making_at_once)
        self._quick_places = asyncio.Semaphore(making_at_once + 1)
        self.is_awaited = False
        self._turn = asyncio.Lock()
        self._filter = QuestionFilter()
        self.failures: Counter[str] = Counter()
        self.events: Counter[str] = Counter(dict.fromkeys(EVENTS, 0))
        self.left_out: dict[str, str] = {}
        self.patience_s: float | None = None
        self._until_tried: Callable[[str], Awaitable[None]] | None = None

    # -- what is never asked -----------------------------------------------------------

    def leave_out(self, reasons: Mapping[str, str]) -> None:
        """Skip the draws of tasks from here on; each is named with its reason."""
        for task, reason in reasons.items():
            logger.warning("task %s is left out: %s", task, reason)
        self.left_out.update(reasons)

    def wait_for_trials(self, until_tried: Callable[[str], Awaitable[None]]) -> None:
        """Make no entry of a task before it is known whether it can be asked.

        Args:
            until_tried: Waits for the trial of a task, which may call `leave_out` and
                `keep_for_evaluation`.
        """
        self._until_tried = until_tried

    def keep_for_evaluation(self, questions: Collection[str]) -> None:
        """Never hand out an item with one of these questions."""
        self._filter.keep_for_evaluation(questions)

    # -- the place in the stream -------------------------------------------------------

    @property
    def position(self) -> int:
        """Items that were handed out or skipped."""
        return self._stream.position - len(self._ahead)

    @position.setter
    def position(self, position: int) -> None:
        self._go_to(position, [])
        self._filter.asked.clear()

    def _go_to(self, drawn: int, outstanding: list[ItemSpec]) -> None:
        self._stop_making()
        self._stream.position = drawn
        self._ahead = [self._begin(spec) for spec in outstanding]

    def _stop_making(self) -> None:
        for item in self._ahead:
            if item.making is not None:
                item.making.cancel()

    def cancel_ahead(self) -> None:
        """Stop making entries; what was drawn stays outstanding in the state."""
        self._stop_making()

    def state_dict(self) -> dict[str, Any]:
        """Return what a resumed run needs to continue with the next item."""
        return {
            "drawn": self._stream.position,
            "outstanding": [
                [item.spec.position, item.spec.choice, item.spec.level]
                for item in self._ahead
            ],
            "asked": self._filter.asked.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue where `state` was taken.

        Raises:
            ValueError: It has another form; nothing was changed.
        """
        asked = AskedQuestions()
        try:
            drawn = state["drawn"]
            if not isinstance(drawn, int) or isinstance(drawn, bool) or drawn < 0:
                raise ValueError(f"drawn is {drawn!r}")
            outstanding = [self._spec(drawn, *row) for row in state["outstanding"]]
            asked.load_state_dict(state["asked"])
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(
                f"items need `drawn`, `outstanding` and `asked` ({error!r})"
            ) from error
        self._go_to(drawn, outstanding)
        self._filter.asked = asked

    def _spec(
        self, drawn: int, position: int, choice: int, level: float | None
    ) -> ItemSpec:
        if not 0 <= position < drawn:
            raise ValueError(f"position {position} of {drawn} drawn")
        return self._stream.spec_of(position, choice, level)

    # -- making ------------------------------------------------------------------------

    def _begin(self, spec: ItemSpec, attempt: int = 0) -> _Outstanding:
        making = None
        if spec.task not in self.left_out:
            making = asyncio.ensure_future(self._make(spec, attempt))
            making.add_done_callback(_read_error)
        return _Outstanding(spec, attempt, making)

    @contextlib.asynccontextmanager
    async def _place_for(self, spec: ItemSpec) -> AsyncIterator[None]:
        """Hold a place; a slow item leaves a worker free for what cannot wait."""
        async with contextlib.AsyncExitStack() as held:
            if self._stream.expected_ms(spec) > QUICK_MS:
                await held.enter_async_context(self.places)
            await held.enter_async_context(self._quick_places)
            yield

    async def _make(self, spec: ItemSpec, attempt: int) -> dict[str, Any]:
        params = self._stream.params_of(spec, attempt)
        seed = self._stream.seed_of(spec, attempt)
        async with self._place_for(spec):
            if self._until_tried is not None:
                await self._until_tried(spec.task)
            if spec.task in self.left_out:
                raise _LeftOut(spec.task)
            return await self._pool.run(
                worker_jobs.make_entry,
                spec.task,
                params,
                seed,
                deadline_s=self._item_deadline_s,
            )

    def _fill(self) -> None:
        """Draw until the lead is full; late items take no part in it, to a bound."""
        for place, item in enumerate(self._ahead):
            if item.making is not None and item.making.cancelled():
                self._ahead[place] = self._begin(item.spec, item.attempt)
        late = min(sum(item.is_late for item in self._ahead), self._lookahead)
        while len(self._ahead) - late < self._lookahead:
            self._ahead.append(self._begin(self._stream.next_spec()))

    # -- handing out -------------------------------------------------------------------

    async def next_item(self) -> MadeItem:
        """Return the next item.

        Raises:
            NoItems: `MAX_FAILURES_IN_A_ROW` draws gave no entry.
            PoolClosed: The pool was closed meanwhile.
        """
        async with self._turn:
            failures = 0
            while failures < MAX_FAILURES_IN_A_ROW:
                self._fill()
                self.is_awaited = True
                try:
                    item = await self._next_ready()
                finally:
                    self.is_awaited = False
                before = len(self._ahead)
                made = self._taken(item)
                if made is not None:
                    return made
                failures += len(self._ahead) < before
        raise NoItems(
            f"{MAX_FAILURES_IN_A_ROW} items in a row could not be made; the log names"
            " each task and the reason"
        )

    def _in_turn(self) -> Iterator[_Outstanding]:
        """Yield the first outstanding item of each task, oldest first.

        Those of one task keep their order, because whether a question repeats another
        depends on it.
        """
        seen = set()
        for item in self._ahead:
            if item.spec.task not in seen:
                seen.add(item.spec.task)
                yield item

    async def _next_ready(self) -> _Outstanding:
        """Wait for the item whose turn it is; whoever is late is overtaken."""
        while True:
            candidates = list(self._in_turn())
            on_time = next((item for item in candidates if not item.is_late), None)
            waited = [item for item in candidates if item.is_late or item is on_time]
            for item in waited:
                if item.is_ready:
                    return item
            done, _ = await asyncio.wait(
                {item.making for item in waited if item.making is not None},
                timeout=self.patience_s if on_time is not None else None,
                return_when=asyncio.FIRST_COMPLETED,
            )
            if on_time is not None and not done:
                on_time.is_late = True
                self.events["items_overtaken"] += 1
                self._fill()

    def _taken(self, item: _Outstanding) -> MadeItem | None:
        """Take a ready item out, or have it made again; None if there is none yet."""
        spec = item.spec
        if item not in self._ahead:
            return None  # the position was set while it was waited for
        try:
            entry = None if item.making is None else item.making.result()
        except PoolClosed:
            raise
        except asyncio.CancelledError:
            return None  # `cancel_ahead` was called; `_fill` begins it again
        except _LeftOut:
            entry = None
        except PoolError as error:
            if _is_unusable(error) and self._try_again(item, "items_unusable"):
                return None
            self._count_failure(spec, error)
            entry = None
        if entry is None:
            self._ahead.remove(item)
            return None
        question = str(entry["question"])
        verdict = self._filter.verdict(spec.task, question)
        if verdict != "fresh" and self._try_again(item, f"{verdict}s_avoided"):
            return None
        if verdict == "evaluation":
            self.events["evaluations_skipped"] += 1
            self._ahead.remove(item)
            return None
        self.events["repeats_asked"] += verdict == "repeat"
        self._filter.asked.add(spec.task, question)
        self._ahead.remove(item)
        return MadeItem(entry, self._handle(item))

    def _try_again(self, item: _Outstanding, event: str) -> bool:
        """Begin another attempt at a draw; False if it has had them all."""
        if item.attempt + 1 == MAX_ATTEMPTS:
            return False
        self.events[event] += 1
        again = self._begin(item.spec, item.attempt + 1)
        item.attempt, item.making = again.attempt, again.making
        return True

    def _count_failure(self, spec: ItemSpec, error: PoolError) -> None:
        self.failures[spec.task] += 1
        if self.failures[spec.task] == 1:
            logger.warning(
                "no item for task %s (index %d, level %s): %s",
                spec.task,
                spec.index,
                spec.level,
                error,
            )

    def _handle(self, item: _Outstanding) -> TaskHandle:
        spec = item.spec
        return TaskHandle(
            task=spec.task,
            params=self._stream.params_of(spec, item.attempt),
            seed=self._stream.seed_of(spec, item.attempt),
            index=spec.index,
            level=spec.level,
            deadline_s=self._scoring_deadline_s,
            rules=self._rules,
        )


def _read_error(making: asyncio.Task[Any]) -> None:
    """Keep asyncio from saying that the error of a given-up entry was never read."""
    if not making.cancelled():
        making.exception()


def _is_unusable(error: PoolError) -> bool:
    """Say whether the library made an entry that nobody can solve."""
    return isinstance(error, JobFailed) and error.kind == "UnusableEntry"
