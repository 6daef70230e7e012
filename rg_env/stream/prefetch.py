"""Prefetched items: made ahead in workers and handed out in the order of their draws.

The number of items made ahead, and the time they take, affect only when an item is
ready. If an item is late, later ones overtake it, and it is handed out when it is
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
from rg_env.stream.evaluation_items import EvaluationItems, wanted_items
from rg_env.stream.item import Item, ItemMaker
from rg_env.stream.task_selection import StreamSettings
from rg_env.workers.call import WorkerLostError
from rg_env.workers.worker_pool import WorkerPool

logger = logging.getLogger(__name__)

LOOKAHEAD = 64  # items made ahead: a slow one is hidden as long as these last
MAX_FAILURES_IN_A_ROW = 200
SLOW_MS = 50.0  # expected time to make an item

# How long a run waits for its next item before others overtake it: for as long, a place
# in which the inference server could work stays empty.
PATIENCE_S = 0.05

# Before an item whose workers were lost is tried again.
PAUSES_S = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0, 60.0)


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
    """A draw that is not handed out yet, and its item in the making."""

    draw: Draw
    making: asyncio.Future[Item | None]  # None if the draw gives no item
    is_late: bool = False


class _State(msgspec.Struct):
    drawn: Count
    outstanding: list[tuple[Count, Count, Share | None]]  # position, choice, level


class PrefetchedItems:
    """The items of one instance, for an event loop.

    Args:
        stream: The draws.
        make: Makes the item of a draw, None if the draw gives none.
        lookahead: Number of items made ahead, at least 1.

    Attributes:
        sampled: Indices that an earlier run has sampled; they are passed over.
        needed: Number of items that are still taken; more are not drawn, because they
            would overtake late ones.
        patience_s: How long the next item is waited for before later ones overtake it;
            None to keep the order whatever it costs.
        events: `items_overtaken` counts the items that others overtook.

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
        self._places = asyncio.Semaphore(workers)
        # A slow item does not take the last worker, which scores.
        self._slow_places = asyncio.Semaphore(max(1, workers - 1))
        self._turn = asyncio.Lock()
        self._drawn = 0
        self._ahead: list[PrefetchedItem] = []
        self.sampled: Collection[int] = ()
        self.needed = math.inf
        self.patience_s: float | None = None
        self.events: Counter[str] = Counter()

    # -- the place in the stream -------------------------------------------------------

    @property
    def position(self) -> int:
        """Number of draws that were handed out or skipped."""
        return self._drawn - len(self._ahead)

    @position.setter
    def position(self, position: int) -> None:
        self._go_to(position, [])

    def _go_to(self, position: int, outstanding: list[Draw]) -> None:
        self._cancel()
        self._drawn = position
        self._ahead = list(map(self._begin, outstanding))

    def _cancel(self) -> None:
        for ahead in self._ahead:
            ahead.making.cancel()

    def state_dict(self) -> dict[str, Any]:
        """Return the state from which a resumed run continues with the next item."""
        draws = [ahead.draw for ahead in self._ahead]
        return {
            "drawn": self._drawn,
            "outstanding": [[draw.position, draw.choice, draw.level] for draw in draws],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue where a state was taken; ValueError, and no change, for no state."""
        try:
            loaded = msgspec.convert(state, _State)
            outstanding = [self.stream.drawn(*row) for row in loaded.outstanding]
        except (IndexError, ValueError) as error:
            raise ValueError(f"this is no state of items: {error!r}") from error
        self._go_to(loaded.drawn, outstanding)

    # -- making ------------------------------------------------------------------------

    def _begin(self, draw: Draw) -> PrefetchedItem:
        making = asyncio.ensure_future(self._made(draw))
        # The error of an abandoned item is not reported.
        making.add_done_callback(lambda done: done.cancelled() or done.exception())
        return PrefetchedItem(draw, making)

    async def _made(self, draw: Draw) -> Item | None:
        """Make an item while there is a place, again if its workers are lost."""
        expected_ms = self.stream.difficulty.expected_ms(draw.task, draw.level)
        slow_place = self._slow_places if expected_ms > SLOW_MS else nullcontext()
        async with slow_place, self._places:
            for pause_s in PAUSES_S:
                try:
                    return await self._make(draw)
                except WorkerLostError as error:
                    logger.warning("an item is tried again in %g s: %s", pause_s, error)
                await asyncio.sleep(pause_s)
            return await self._make(draw)

    def _fill(self) -> None:
        """Draw until enough items are being made, not counting late ones (bounded)."""
        late = min(sum(ahead.is_late for ahead in self._ahead), self._lookahead)
        while len(self._ahead) < min(self._lookahead + late, self.needed):
            if self.stream.index_at(self._drawn) not in self.sampled:
                self._ahead.append(self._begin(self.stream.draw(self._drawn)))
            self._drawn += 1

    # -- handing out -------------------------------------------------------------------

    async def next(self) -> Item:
        """Return the next item.

        Raises:
            NoItemsError: `MAX_FAILURES_IN_A_ROW` draws gave no item.
            PoolError: The pool was closed meanwhile, or its workers are lost.
        """
        async with self._turn:
            failures = 0
            while failures < MAX_FAILURES_IN_A_ROW:
                self._fill()
                ahead = await self._next_ready()
                if ahead in self._ahead:  # else the position was set meanwhile
                    item = ahead.making.result()
                    self._ahead.remove(ahead)
                    if item is not None:
                        return item
                    failures += 1
        raise NoItemsError(NO_ITEMS)

    async def _next_ready(self) -> PrefetchedItem:
        """Wait for the item whose turn it is; one that is late is overtaken."""
        while True:
            on_time = next((one for one in self._ahead if not one.is_late), None)
            waited = [one for one in self._ahead if one.is_late or one is on_time]
            for ahead in waited:
                if ahead.making.done():
                    return ahead
            done, _ = await asyncio.wait(
                {ahead.making for ahead in waited},
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
        failures: Number of draws that gave no item, by task.
    """

    def __init__(
        self,
        pool: WorkerPool,
        library: LibraryDescription,
        stream: Stream,
        evaluation: EvaluationItems,
        lookahead: int = LOOKAHEAD,
    ) -> None:
        super().__init__(stream, self._item_of, lookahead)
        self.library = library
        self.evaluation = evaluation
        self._pool = pool
        self.events.update(dict.fromkeys(EVENTS, 0))
        self._maker = ItemMaker(
            deadline_s=stream.settings.item_deadline_s,
            left_out=evaluation.left_out,
            avoided=evaluation.questions,
            events=self.events,
        )
        self.failures = self._maker.failures

    async def _item_of(self, draw: Draw) -> Item | None:
        await self.evaluation.checked(draw.task)
        attempts = self.stream.attempts(draw)
        return await self._maker.make(self._pool, draw.task, attempts)

    def stop(self) -> None:
        """Make no more items; outstanding draws stay in the state."""
        self._cancel()
        self.evaluation.stop()


async def check_items(pool: WorkerPool, of_run: object) -> None:
    """Raise the errors of `prepare_items` for wrong settings, before anything else."""
    library = await read_library(pool)
    with in_section("env."):
        await prepare_stream(
            pool, library, StreamSettings.from_config(of_run), Feedback(0.5)
        )


async def prepare_items(
    pool: WorkerPool, of_run: object, feedback: Feedback
) -> RunItems:
    """Return the items of a run, whose levels follow the feedback.

    `of_run` has the settings of a run.

    Raises:
        SettingError: A name or parameter does not exist.
        LibraryError: reasoning-gym cannot be used.
    """
    settings = StreamSettings.from_config(of_run)
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
        wanted, evaluated = wanted_items(stream)
    evaluation = EvaluationItems(pool, stream, wanted, evaluated)
    return RunItems(pool, library, stream, evaluation)
