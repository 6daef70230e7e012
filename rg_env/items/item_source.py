"""Items made ahead in the worker processes and handed out in the stream's order.

An item depends only on its draw and on the state of the run at that time. How far ahead
and how fast items are made affects only when they are ready. If an item is late, items
of other tasks overtake it, and it is handed out when it is ready. So a slow task does
not hold up the others.

Questions of the evaluation are never sampled. A question that the task had recently is
replaced by another attempt at the same draw, as long as the task has others (see
tasks/recent_questions.py), and so is a faulty entry. If all attempts are faulty, the
draw is skipped. If an entry cannot be made, the draw is counted, logged once and
skipped. A skipped draw uses up its index, so later items do not change.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from rg_env.errors import RunError, counted
from rg_env.items.entry_maker import EntryMaker, LeftOutError, is_unusable
from rg_env.items.group_scorer import TaskHandle
from rg_env.tasks.baselines import NO_BASELINES, Baselines
from rg_env.tasks.item_stream import DrawnItem, ItemStream
from rg_env.tasks.recent_questions import QuestionFilter, RecentQuestions
from rg_env.workers.pool_errors import PoolClosedError, PoolError

logger = logging.getLogger(__name__)

MAX_FAILURES_IN_A_ROW = 200
"""Draws that may fail one after the other before the source gives up."""

PATIENCE_S = 0.05
"""How long a run waits for its next item before others overtake it: as long, a place in
which the inference server could work stays empty."""

EVENTS = (
    "items_overtaken",
    "items_unusable",
    "repeats_avoided",
    "repeats_sampled",
    "evaluations_avoided",
    "evaluations_skipped",
)
"""What is counted of the items, beside those that could not be made."""


class NoItemsError(RunError):
    """No item could be made for so long that going on makes no sense."""


@dataclasses.dataclass(frozen=True)
class MadeItem:
    """An entry and the handle that scores it."""

    entry: Mapping[str, Any]
    handle: TaskHandle


@dataclasses.dataclass(eq=False)
class _Outstanding:
    """An item that was drawn and not yet handed out, with its entry to come."""

    drawn: DrawnItem
    making: asyncio.Future[dict[str, Any]]
    attempt: int = 0
    is_late: bool = False


class ItemSource:
    """The items of one instance.

    Args:
        maker: Makes the entries of the stream; told of the tasks that are left out.
        lookahead: Entries being made ahead, at least 1.
        handle: Makes the handle of an item from the fields of its `ItemSpec`.

    Attributes:
        failures: Number of draws that gave no entry, by task.
        events: Number of items that were replaced, repeated or overtaken, by name.
        unused: Number of faulty items, by task and what is wrong with them.
        needed: Items that the run still takes; no more are drawn, lest they overtake.
        patience_s: How long the next item is waited for before others overtake it;
            None to keep the order whatever it costs.
    """

    def __init__(
        self,
        stream: ItemStream,
        maker: EntryMaker,
        *,
        lookahead: int,
        handle: Callable[..., TaskHandle] = TaskHandle,
        baselines: Baselines = NO_BASELINES,
    ) -> None:
        self._stream = stream
        self.maker = maker
        self._lookahead = lookahead
        self.handle = handle
        self._baselines = baselines
        self._ahead: list[_Outstanding] = []
        self._turn = asyncio.Lock()
        self._filter = QuestionFilter()
        self.failures: Counter[str] = Counter()
        self.events: Counter[str] = Counter(dict.fromkeys(EVENTS, 0))
        self.unused: Counter[tuple[str, str]] = Counter()
        self.needed = math.inf
        self.patience_s: float | None = None

    def keep_for_evaluation(self, questions: Collection[str]) -> None:
        """Never hand out an item with one of these questions."""
        self._filter.keep_for_evaluation(questions)

    @property
    def is_catching_up(self) -> bool:
        """Whether items of an earlier run still lie ahead."""
        return bool(self._stream.sampled)

    # -- the place in the stream -------------------------------------------------------

    @property
    def position(self) -> int:
        """Items that were handed out or skipped."""
        return self._stream.position - len(self._ahead)

    @position.setter
    def position(self, position: int) -> None:
        self._go_to(position, [])
        self._filter.recent.clear()

    def _go_to(self, position: int, outstanding: list[DrawnItem]) -> None:
        self.cancel_ahead()
        self._stream.position = position
        self._ahead = list(map(self._begun, outstanding))

    def cancel_ahead(self) -> None:
        """Stop making entries; what was drawn stays outstanding in the state."""
        for item in self._ahead:
            item.making.cancel()

    def state_dict(self) -> dict[str, Any]:
        """Return what a resumed run needs to continue with the next item."""
        ahead = (item.drawn for item in self._ahead)
        return {
            "drawn": self._stream.position,
            "outstanding": [[one.position, one.choice, one.level] for one in ahead],
            "asked": self._filter.recent.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue where a state was taken; ValueError, and no change, for no state."""
        recent = RecentQuestions()
        try:
            drawn = state["drawn"]
            if not isinstance(drawn, int) or isinstance(drawn, bool) or drawn < 0:
                raise ValueError(f"drawn is {drawn!r}")
            outstanding = [self._stream.drawn(*row) for row in state["outstanding"]]
            for one in outstanding:
                if not 0 <= one.position < drawn:
                    raise ValueError(f"position {one.position} of {drawn} drawn")
            recent.load_state_dict(state["asked"])
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(
                f"items need `drawn`, `outstanding` and `asked` ({error!r})"
            ) from error
        self._go_to(drawn, outstanding)
        self._filter.recent = recent

    # -- handing out -------------------------------------------------------------------

    async def next_item(self) -> MadeItem:
        """Return the next item.

        Raises:
            NoItemsError: `MAX_FAILURES_IN_A_ROW` draws gave no entry.
            PoolClosedError: The pool was closed meanwhile.
        """
        async with self._turn:
            failures = 0
            while failures < MAX_FAILURES_IN_A_ROW:
                self._fill()
                item = await self._next_ready()
                before = len(self._ahead)
                made = self._taken(item)
                if made is not None:
                    return made
                # A draw that was skipped has left the list, one made again has not.
                failures += len(self._ahead) < before
                if item.drawn.sampled is not None:
                    failures = 0
                    await asyncio.sleep(0)  # thousands may follow one another
        raise NoItemsError(
            f"{MAX_FAILURES_IN_A_ROW} items in a row could not be made; the log names"
            " each task and the reason"
        )

    def _begun(self, drawn: DrawnItem) -> _Outstanding:
        if drawn.sampled is None:
            return _Outstanding(drawn, self._making(drawn, 0))
        # Sampled by an earlier run: it takes its turn, and nothing is made for it.
        nothing: asyncio.Future[dict[str, Any]] = asyncio.Future()
        nothing.set_result({})
        return _Outstanding(drawn, nothing)

    def _making(self, drawn: DrawnItem, attempt: int) -> asyncio.Future[dict[str, Any]]:
        return self.maker.begin(self._stream.attempt(drawn, attempt))

    def _fill(self) -> None:
        """Draw until enough items are being made, not counting late ones (bounded)."""
        for item in self._ahead:
            if item.making.cancelled():
                item.making = self._making(item.drawn, item.attempt)
                item.is_late = False
        late = min(sum(item.is_late for item in self._ahead), self._lookahead)
        while len(self._ahead) < min(self._lookahead + late, self.needed):
            self._ahead.append(self._begun(self._stream.next_draw()))

    def _in_turn(self) -> Iterator[_Outstanding]:
        """Yield the first outstanding item of each task, oldest first.

        Those of one task keep their order, because whether a question repeats another
        depends on it.
        """
        seen = set()
        for item in self._ahead:
            if item.drawn.task not in seen:
                seen.add(item.drawn.task)
                yield item

    async def _next_ready(self) -> _Outstanding:
        """Wait for the item whose turn it is; whoever is late is overtaken."""
        while True:
            candidates = list(self._in_turn())
            on_time = next((item for item in candidates if not item.is_late), None)
            waited = [item for item in candidates if item.is_late or item is on_time]
            for item in waited:
                if item.making.done():
                    return item
            done, _ = await asyncio.wait(
                {item.making for item in waited},
                timeout=self.patience_s if on_time is not None else None,
                return_when=asyncio.FIRST_COMPLETED,
            )
            if on_time is not None and not done:
                on_time.is_late = True
                self.events["items_overtaken"] += 1
                self._fill()

    def _taken(self, item: _Outstanding) -> MadeItem | None:
        """Return an item that is ready, or make it again; None if none is ready yet."""
        if item not in self._ahead or item.making.cancelled():
            # The position was set while it was waited for, or `cancel_ahead` was
            # called; then `_fill` begins it again.
            return None
        task = item.drawn.task
        if item.drawn.sampled is not None:
            # An earlier run has handed it out; only its question is remembered.
            self._filter.recent.add_digest(task, item.drawn.sampled)
            self._ahead.remove(item)
            return None
        error = item.making.exception()
        if isinstance(error, PoolClosedError):
            raise error
        if is_unusable(error):
            self._count_unused(task, error.message)
            entry = None
        elif isinstance(error, (LeftOutError, PoolError)):
            self._skip(item, error)
            return None
        else:
            entry = item.making.result()
        question = None if entry is None else str(entry["question"])
        ruling = self._filter.judge(task, question, item.attempt)
        if ruling.event is not None:
            self.events[ruling.event] += 1
        if ruling.action == "retry":
            item.attempt += 1
            item.making = self._making(item.drawn, item.attempt)
            return None
        if ruling.action == "skip" or entry is None:
            self._skip(item, error)
            return None
        self._ahead.remove(item)
        spec = self._stream.attempt(item.drawn, item.attempt)
        baseline = self._baselines.of(task, spec.params)
        return MadeItem(entry, self.handle(**vars(spec), baseline=baseline))

    def _skip(self, item: _Outstanding, error: BaseException | None) -> None:
        """Skip an item; one that could not be made is counted."""
        self._ahead.remove(item)
        if not isinstance(error, PoolError) or is_unusable(error):
            return
        drawn = item.drawn
        self.failures[drawn.task] += 1
        if self.failures[drawn.task] == 1:
            logger.warning(
                "no item for task %s (index %d, level %s): %s",
                *(drawn.task, drawn.index, drawn.level, error),
            )

    def _count_unused(self, task: str, fault: str) -> None:
        """Count an item; of each fault the first is logged, as a detail."""
        self.unused[task, fault] += 1
        if self.unused[task, fault] == 1:
            logger.debug("%s: an item was not sampled: %s", task, fault)

    def unused_said(self) -> str:
        """Return in one line how many items were not sampled, the most frequent."""
        total = counted(self.unused.total(), "item")
        first = [f"{t} {n} ({why})" for (t, why), n in self.unused.most_common(3)]
        more = ["..."] * (len(self.unused) > len(first))
        return f"{total} not sampled: {', '.join([*first, *more])}"

    def unused_table(self) -> tuple[list[str], list[list[Any]]]:
        """Return columns and rows of a table: a row for each fault of a task."""
        rows = [[*names, number] for names, number in sorted(self.unused.items())]
        return ["task", "fault", "items"], rows
