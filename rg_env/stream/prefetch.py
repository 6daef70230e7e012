"""The items of a run, made ahead in workers and handed out in the stream's order.

How far ahead and how fast items are made affects only when they are ready. If an item
is late, items of other tasks overtake it, and it is handed out when it is ready.

Each draw has several attempts. One is rejected if the entry cannot be solved, if its
question belongs to the evaluation, or if the task had the question recently. If the
last attempt is only a repeat, it is sampled anyway; otherwise the draw is skipped, as
where an entry cannot be made. A skipped draw uses up its index, so later items do not
change. A question is remembered as a digest of eight bytes.
"""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
import logging
import math
import struct
from collections import Counter, deque
from contextlib import nullcontext
from typing import Any

import msgspec

from rg_env.errors import RunError, counted, in_section
from rg_env.library.installed_library import read_library
from rg_env.library.registry import LibraryDescription
from rg_env.library.task_check import is_unusable
from rg_env.stream.curriculum import Count, Feedback, Share
from rg_env.stream.evaluation_items import EvaluationItems, wanted_items
from rg_env.stream.item import Item, first_usable
from rg_env.stream.sampler import MAX_ATTEMPTS
from rg_env.stream.selection import StreamSettings
from rg_env.stream.stream import Draw, Stream, prepare_stream
from rg_env.workers.pool_errors import PoolClosedError, PoolError
from rg_env.workers.worker_pool import WorkerPool

logger = logging.getLogger(__name__)

LOOKAHEAD = 64  # items made ahead: a slow one is hidden as long as these last
MAX_FAILURES_IN_A_ROW = 200
REMEMBERED = 1_000  # questions of each task, the oldest forgotten first
SLOW_MS = 50.0
# How long a run waits for its next item before others overtake it: as long, a place in
# which the inference server could work stays empty.
PATIENCE_S = 0.05

REJECTED = {
    "unusable": ("items_unusable", "items_unusable"),
    "evaluation": ("evaluations_avoided", "evaluations_skipped"),
    "repeat": ("repeats_avoided", "repeats_sampled"),
}
"""Why an attempt is rejected, to what is counted then, and at the last attempt."""

EVENTS = ("items_overtaken", *dict.fromkeys(sum(REJECTED.values(), ())))
"""What is counted of the items, beside those that could not be made."""


NO_ITEMS = f"{MAX_FAILURES_IN_A_ROW} items in a row could not be made; see the log"


class NoItemsError(RunError):
    """No item could be made for too long."""


def question_digest(question: str) -> int:
    """Return what a question is remembered by, in [0, 2**64)."""
    hashed = hashlib.blake2b(question.encode(errors="surrogatepass"), digest_size=8)
    return int.from_bytes(hashed.digest(), "big")


@dataclasses.dataclass(eq=False)
class _Ahead:
    """A draw that is not handed out yet."""

    draw: Draw
    making: asyncio.Future[Item | None]  # None where its task is left out
    sampled: int | None = None  # digest of its question, if an earlier run has made it
    attempt: int = 0
    is_late: bool = False


class _State(msgspec.Struct):
    drawn: Count
    outstanding: list[tuple[Count, Count, Share | None]]  # position, choice, level
    asked: dict[str, bytes]


class PrefetchedItems:
    """The items of one instance.

    Args:
        stream: What the items are.
        pool: Its workers make the entries.
        evaluation: It checks each task before the first of its entries is made, and
            has the questions that are not handed out.
        lookahead: Entries made ahead, at least 1.

    Attributes:
        sampled: Index to task and digest of the question, of the items to come that an
            earlier run has sampled.
        needed: Items that the run still takes; no more are drawn, lest they overtake.
        patience_s: How long the next item is waited for before others overtake it;
            None to keep the order whatever it costs.
    """

    library: LibraryDescription

    def __init__(
        self,
        pool: WorkerPool,
        stream: Stream,
        evaluation: EvaluationItems,
        lookahead: int = LOOKAHEAD,
    ) -> None:
        self._pool = pool
        self.stream = stream
        self.evaluation = evaluation
        self._lookahead = lookahead
        slow = max(1, stream.settings.worker_count - 1)
        self._slow_places = asyncio.Semaphore(slow)
        self._places = asyncio.Semaphore(slow + 1)
        self._drawn = 0
        self._ahead: list[_Ahead] = []
        self._turn = asyncio.Lock()
        self._recent: dict[str, deque[int]] = {}
        self.sampled: dict[int, tuple[str, int]] = {}
        self.failures: Counter[str] = Counter()  # draws without an entry, by task
        self.events: Counter[str] = Counter(dict.fromkeys(EVENTS, 0))
        self.needed = math.inf
        self.patience_s: float | None = None

    # -- the place in the stream -------------------------------------------------------

    @property
    def position(self) -> int:
        """Items that were handed out or skipped."""
        return self._drawn - len(self._ahead)

    @position.setter
    def position(self, position: int) -> None:
        self._go_to(position, [])
        self._recent.clear()

    def _go_to(self, position: int, outstanding: list[Draw]) -> None:
        for ahead in self._ahead:
            ahead.making.cancel()
        self._drawn = position
        self._ahead = [_Ahead(draw, self._begin(draw)) for draw in outstanding]

    def stop(self) -> None:
        """Make no more items; what was drawn stays outstanding in the state."""
        for ahead in self._ahead:
            ahead.making.cancel()
        self.evaluation.stop()

    def state_dict(self) -> dict[str, Any]:
        """Return what a resumed run needs to continue with the next item."""
        draws = [ahead.draw for ahead in self._ahead]
        asked = {t: struct.pack(f">{len(q)}Q", *q) for t, q in self._recent.items()}
        return {
            "drawn": self._drawn,
            "outstanding": [[draw.position, draw.choice, draw.level] for draw in draws],
            "asked": msgspec.to_builtins(asked),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue where a state was taken; ValueError, and no change, for no state."""
        try:
            loaded = msgspec.convert(state, _State)
            outstanding = [self.stream.drawn(*row) for row in loaded.outstanding]
            recent = {
                task: deque(struct.unpack(f">{len(data) // 8}Q", data), REMEMBERED)
                for task, data in loaded.asked.items()
            }
        except (IndexError, ValueError, struct.error) as error:
            raise ValueError(f"this is no state of items: {error!r}") from error
        self._go_to(loaded.drawn, outstanding)
        self._recent = recent

    # -- making ------------------------------------------------------------------------

    def _begin(self, draw: Draw, attempt: int = 0) -> asyncio.Future[Item | None]:
        making = asyncio.ensure_future(self._make(self.stream.attempt(draw, attempt)))
        # The error of one that is abandoned is of no interest.
        making.add_done_callback(lambda done: done.cancelled() or done.exception())
        return making

    async def _make(self, item: Item) -> Item | None:
        """Make an item while there is a place, once its task is checked."""
        # A slow one may not take the last worker, which scores.
        is_slow = self.stream.difficulty.expected_ms(item.task, item.level) > SLOW_MS
        async with self._slow_places if is_slow else nullcontext(), self._places:
            await self.evaluation.checked(item.task)
            if item.task in self.evaluation.left_out:
                return None
            deadline_s = self.stream.settings.item_deadline_s
            return await first_usable(self._pool, [item], deadline_s)

    def _next_draw(self) -> _Ahead:
        draw = self.stream.draw(self._drawn)
        self._drawn += 1
        if draw.index not in self.sampled:
            return _Ahead(draw, self._begin(draw))
        # An earlier run has sampled it, of the task that it was drawn for then: weights
        # may have moved since. It takes its turn, and nothing is made for it.
        task, question = self.sampled.pop(draw.index)
        nothing: asyncio.Future[Item | None] = asyncio.Future()
        nothing.set_result(None)
        return _Ahead(dataclasses.replace(draw, task=task), nothing, question)

    def _fill(self) -> None:
        """Draw until enough items are being made, not counting late ones (bounded)."""
        for ahead in self._ahead:
            if ahead.making.cancelled():
                ahead.making = self._begin(ahead.draw, ahead.attempt)
                ahead.is_late = False
        late = min(sum(ahead.is_late for ahead in self._ahead), self._lookahead)
        while len(self._ahead) < min(self._lookahead + late, self.needed):
            self._ahead.append(self._next_draw())

    # -- handing out -------------------------------------------------------------------

    async def next(self) -> Item:
        """Return the next item.

        Raises:
            NoItemsError: `MAX_FAILURES_IN_A_ROW` draws gave no entry.
            PoolClosedError: The pool was closed meanwhile.
        """
        async with self._turn:
            failures = 0
            while failures < MAX_FAILURES_IN_A_ROW:
                self._fill()
                ahead = await self._next_ready()
                before = len(self._ahead)
                item = self._taken(ahead)
                if item is not None:
                    return item
                # A draw that was skipped has left the list, one made again has not.
                failures += len(self._ahead) < before
                if ahead.sampled is not None:
                    failures = 0
                    await asyncio.sleep(0)  # thousands may follow one another
        raise NoItemsError(NO_ITEMS)

    async def _next_ready(self) -> _Ahead:
        """Wait for the item whose turn it is; whoever is late is overtaken."""
        while True:
            # Those of one task keep their order: it decides what repeats a question.
            first: dict[str, _Ahead] = {}
            for ahead in self._ahead:
                first.setdefault(ahead.draw.task, ahead)
            on_time = next((one for one in first.values() if not one.is_late), None)
            waited = [one for one in first.values() if one.is_late or one is on_time]
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

    def _taken(self, ahead: _Ahead) -> Item | None:
        """Return an item that is ready, or make it again; None if none is ready yet."""
        if ahead not in self._ahead or ahead.making.cancelled():
            # The position was set while it was waited for; `_fill` begins it again.
            return None
        task, error = ahead.draw.task, ahead.making.exception()
        item, question, fault = None, ahead.sampled, ""
        if error is None:
            item = ahead.making.result()
        elif is_unusable(error):
            fault = "unusable"
        elif isinstance(error, PoolError) and not isinstance(error, PoolClosedError):
            self.failures[task] += 1
            if self.failures[task] == 1:
                where = (task, ahead.draw.index, ahead.draw.level)
                logger.warning("no item for task %s (%d, level %s): %s", *where, error)
        else:
            raise error
        if item is not None:
            question = question_digest(item.question)
            if item.question in self.evaluation.questions:
                fault = "evaluation"
            elif question in self._recent.get(task, ()):
                fault = "repeat"
        is_last = ahead.attempt + 1 == MAX_ATTEMPTS
        if fault:
            self.events[REJECTED[fault][is_last]] += 1
        if fault and not is_last:
            ahead.attempt += 1
            ahead.making = self._begin(ahead.draw, ahead.attempt)
            return None
        self._ahead.remove(ahead)
        if question is None or fault == "evaluation":
            return None
        self._recent.setdefault(task, deque(maxlen=REMEMBERED)).append(question)
        return item


async def check_items(pool: WorkerPool, of_run: object) -> None:
    """Raise what `prepare_items` raises for wrong settings, before anything else."""
    library, settings = await read_library(pool), StreamSettings.of(of_run)
    with in_section("env."):
        await prepare_stream(pool, library, settings, Feedback(0.5))


async def prepare_items(
    pool: WorkerPool, of_run: object, feedback: Feedback
) -> PrefetchedItems:
    """Return the items of a run, whose levels follow the feedback.

    `of_run` has the settings of a run.

    Raises:
        SettingError: A name or parameter does not exist.
        LibraryError: reasoning-gym cannot be used.
    """
    settings = StreamSettings.of(of_run)
    library = await read_library(pool)
    where = (library.release, library.location, len(library.tasks))
    logger.info("reasoning-gym %s from %s: %d tasks", *where)
    with in_section("env."):
        stream = await prepare_stream(pool, library, settings, feedback)
        names, levels = stream.task_names, stream.difficulty.scales
        logger.info("%s chosen", counted(len(names), "task"))
        unscaled = [name for name in names if name not in levels]
        if unscaled and (settings.complexity_mode is not None or settings.task_levels):
            what = "these have no levels and keep their default parameters"
            logger.info("%s: %s", what, ", ".join(unscaled))
        evaluation = EvaluationItems(pool, stream, *wanted_items(stream))
    items = PrefetchedItems(pool, stream, evaluation)
    items.library = library
    return items
