"""Prefetched items: made ahead in workers and handed out in the order of their draws.

The number of items made ahead, and the time they take, only affect when an item is
ready. If an item is late, later ones overtake it, and it is handed out once it is
ready. An item whose workers are lost is tried again for some minutes.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import math
from collections import Counter
from collections.abc import Awaitable, Callable, Collection
from contextlib import nullcontext
from typing import Any

import msgspec

from rg_env.errors import RunError, counted, in_section
from rg_env.library.installed_library import read_library
from rg_env.library.registry import LibraryDescription
from rg_env.stream.curriculum import Count, Feedback, Share
from rg_env.stream.draws import Draw, Stream, prepare_stream
from rg_env.stream.evaluation_items import EvaluationItems, plan_evaluation
from rg_env.stream.item import Item, ItemMaker
from rg_env.stream.task_selection import StreamSettings
from rg_env.workers.call import WorkerLostError
from rg_env.workers.worker_pool import WorkerPool

logger = logging.getLogger(__name__)

LOOKAHEAD = 64  # items made ahead; a slow item costs no time while the others last
MAX_FAILURES_IN_A_ROW = 200
SLOW_MS = 50.0  # an item that is expected to take longer is a slow one

# How long a run waits for its next item before later ones overtake it. Meanwhile a
# request slot of the inference server is idle.
PATIENCE_S = 0.05

# Pauses before an item whose workers were lost is tried again.
RETRY_PAUSES_S = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0, 60.0)

EVENTS = (
    "items_overtaken",
    "items_unusable",
    "evaluations_avoided",
    "evaluations_skipped",
)
"""Events that are counted while items are made."""

NO_ITEMS = f"{MAX_FAILURES_IN_A_ROW} items in a row could not be made; see the log"


class NoItemsError(RunError):
    """No item could be made for too long."""


@dataclasses.dataclass(eq=False)
class PrefetchedItem:
    """A draw that is not handed out yet, and its item, which is being made."""

    draw: Draw
    future: asyncio.Future[Item | None]  # None if the draw gives no item
    is_late: bool = False


class _State(msgspec.Struct):
    drawn: Count
    # Position, index of the choice, and level of each draw that is not handed out.
    outstanding: list[tuple[Count, Count, Share | None]]


class PrefetchedItems:
    """The items of one instance, for an event loop.

    Args:
        stream: The draws.
        make: Makes the item of a draw, None if the draw gives none.
        lookahead: Number of items made ahead, at least 1.

    Attributes:
        sampled: Indices that an earlier run has sampled; they are skipped.
        needed: Number of items that will still be taken; no more are drawn, because
            they would overtake late ones.
        patience_s: How long `next` waits for an item before later ones overtake it;
            None to keep the order.
        events: `items_overtaken` counts the items that later ones have overtaken.

    Example:
        items = PrefetchedItems(stream, make)
        item = await items.next()
    """

    def __init__(
        self,
        stream: Stream,
        make: Callable[[Draw], Awaitable[Item | None]],
        lookahead: int = LOOKAHEAD,
    ) -> None:
        self.stream = stream
        self._make = make
        self._lookahead = lookahead
        workers = stream.settings.worker_count
        self._slots = asyncio.Semaphore(workers)
        # Slow items leave one worker free, which scores.
        self._slow_slots = asyncio.Semaphore(max(1, workers - 1))
        self._next_lock = asyncio.Lock()
        self._num_drawn = 0
        self._prefetched: list[PrefetchedItem] = []
        self.sampled: Collection[int] = ()
        self.needed = math.inf
        self.patience_s: float | None = None
        self.events: Counter[str] = Counter()

    # -- the position in the stream ----------------------------------------------------

    @property
    def position(self) -> int:
        """Number of draws that were handed out or skipped."""
        return self._num_drawn - len(self._prefetched)

    @position.setter
    def position(self, position: int) -> None:
        self._go_to(position, [])

    def _go_to(self, position: int, outstanding: list[Draw]) -> None:
        self._cancel()
        self._num_drawn = position
        self._prefetched = list(map(self._start, outstanding))

    def _cancel(self) -> None:
        for prefetched in self._prefetched:
            prefetched.future.cancel()

    def state_dict(self) -> dict[str, Any]:
        """Return the state from which a resumed run continues with the next item."""
        draws = [prefetched.draw for prefetched in self._prefetched]
        return {
            "drawn": self._num_drawn,
            "outstanding": [[d.position, d.choice_index, d.level] for d in draws],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a state; an invalid one raises ValueError, with no change."""
        try:
            loaded = msgspec.convert(state, _State)
            outstanding = [self.stream.build_draw(*row) for row in loaded.outstanding]
        except (IndexError, ValueError) as error:
            raise ValueError(f"this is not a state of items: {error!r}") from error
        self._go_to(loaded.drawn, outstanding)

    # -- making ------------------------------------------------------------------------

    def _start(self, draw: Draw) -> PrefetchedItem:
        future = asyncio.ensure_future(self._make_with_retries(draw))
        # Reads the error, so that asyncio does not report that of an abandoned item.
        future.add_done_callback(lambda done: done.cancelled() or done.exception())
        return PrefetchedItem(draw, future)

    async def _make_with_retries(self, draw: Draw) -> Item | None:
        """Make an item once there is a slot, and again if its workers are lost."""
        expected_ms = self.stream.difficulty.expected_ms(draw.task, draw.level)
        slow_slot = self._slow_slots if expected_ms > SLOW_MS else nullcontext()
        async with slow_slot, self._slots:
            for pause_s in RETRY_PAUSES_S:
                try:
                    return await self._make(draw)
                except WorkerLostError as error:
                    logger.warning("an item is tried again in %g s: %s", pause_s, error)
                await asyncio.sleep(pause_s)
            return await self._make(draw)

    def _fill(self) -> None:
        """Draw until `lookahead` items are being made, besides late ones (bounded)."""
        num_late = sum(prefetched.is_late for prefetched in self._prefetched)
        wanted = self._lookahead + min(num_late, self._lookahead)
        while len(self._prefetched) < min(wanted, self.needed):
            if self.stream.index_at(self._num_drawn) not in self.sampled:
                draw = self.stream.draw(self._num_drawn)
                self._prefetched.append(self._start(draw))
            self._num_drawn += 1

    # -- handing out -------------------------------------------------------------------

    async def next(self) -> Item:
        """Return the next item.

        Raises:
            NoItemsError: `MAX_FAILURES_IN_A_ROW` draws gave no item.
            PoolError: The pool was closed meanwhile, or its workers are lost.
        """
        async with self._next_lock:
            failures = 0
            while failures < MAX_FAILURES_IN_A_ROW:
                self._fill()
                ready = await self._next_ready()
                if ready in self._prefetched:  # else the position was set meanwhile
                    item = ready.future.result()
                    self._prefetched.remove(ready)
                    if item is not None:
                        return item
                    failures += 1
        raise NoItemsError(NO_ITEMS)

    async def _next_ready(self) -> PrefetchedItem:
        """Return the first item in order or a late one, whichever is ready first.

        After `patience_s`, the first item counts as late, and the next one is first.
        """
        while True:
            on_time = next((p for p in self._prefetched if not p.is_late), None)
            candidates = [p for p in self._prefetched if p.is_late or p is on_time]
            for candidate in candidates:
                if candidate.future.done():
                    return candidate
            done, _ = await asyncio.wait(
                {candidate.future for candidate in candidates},
                timeout=self.patience_s if on_time is not None else None,
                return_when=asyncio.FIRST_COMPLETED,
            )
            if on_time is not None and not done:
                on_time.is_late = True
                self.events["items_overtaken"] += 1
                self._fill()


class RunItems(PrefetchedItems):
    """The prefetched items of a run, which checks each task before it is sampled.

    Attributes:
        library: The description of the installed library.
        evaluation: The evaluation items; none of their questions is handed out.
    """

    def __init__(
        self,
        pool: WorkerPool,
        library: LibraryDescription,
        stream: Stream,
        evaluation: EvaluationItems,
        lookahead: int = LOOKAHEAD,
    ) -> None:
        super().__init__(stream, self._make_checked, lookahead)
        self.library = library
        self.evaluation = evaluation
        self._pool = pool
        self.events.update(dict.fromkeys(EVENTS, 0))
        self._maker = ItemMaker(
            deadline_s=stream.settings.item_deadline_s,
            left_out=evaluation.left_out,
            avoided_questions=evaluation.questions,
            events=self.events,
        )

    async def _make_checked(self, draw: Draw) -> Item | None:
        await self.evaluation.ensure_checked(draw.task)
        attempts = self.stream.attempts(draw)
        return await self._maker.make(self._pool, draw.task, attempts)

    def stop(self) -> None:
        """Stop making items; outstanding draws stay in the state."""
        self._cancel()
        self.evaluation.stop()


async def check_items(pool: WorkerPool, config: object) -> None:
    """Check the settings as `prepare_items` does, without preparing anything."""
    library = await read_library(pool)
    with in_section("env."):
        await prepare_stream(
            pool, library, StreamSettings.from_config(config), Feedback(0.5)
        )


async def prepare_items(
    pool: WorkerPool, config: object, feedback: Feedback
) -> RunItems:
    """Return the items of a run.

    Args:
        pool: Its workers make the items.
        config: Has the fields of `StreamSettings`.
        feedback: Its levels and weights decide the draws.

    Raises:
        SettingError: A name or parameter does not exist.
        LibraryError: reasoning-gym cannot be used.
    """
    settings = StreamSettings.from_config(config)
    library = await read_library(pool)
    logger.info(
        "reasoning-gym %s from %s: %d tasks",
        library.release,
        library.location,
        len(library.tasks),
    )
    with in_section("env."):
        stream = await prepare_stream(pool, library, settings, feedback)
        names = stream.task_names
        logger.info("%s chosen", counted(len(names), "task"))
        unscaled = [name for name in names if name not in stream.difficulty.scales]
        if unscaled and (settings.complexity_mode is not None or settings.task_levels):
            logger.info(
                "these have no levels and keep their default parameters: %s",
                ", ".join(unscaled),
            )
        wanted, evaluated = plan_evaluation(stream)
    evaluation = EvaluationItems(pool, stream, wanted, evaluated)
    return RunItems(pool, library, stream, evaluation)
