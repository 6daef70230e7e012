"""Makes entries in workers: the first usable one of several attempts, or a stream's.

Of the workers, `EntryMaker` leaves one free for urgent calls. If the task of an entry
must be checked first, the entry is made after that check. Entries of a task that is
left out are never made.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import Any, TypeGuard

from rg_env.items import worker_jobs
from rg_env.tasks.item_stream import ItemSpec
from rg_env.tasks.library import UnusableEntryError
from rg_env.workers.pool_errors import DeadlineExceededError, JobError, PoolError
from rg_env.workers.worker_pool import WorkerPool

logger = logging.getLogger(__name__)

Entry = dict[str, Any]

QUICK_MS = 50.0
"""An item that takes longer may not take the last worker, which scores."""


class LeftOutError(Exception):
    """The task of an item is left out."""


def is_unusable(error: BaseException | None) -> TypeGuard[JobError]:
    """Return whether the library made an entry that must not be used."""
    return isinstance(error, JobError) and error.is_a(UnusableEntryError)


def why_no_entry(error: PoolError) -> str:
    """Return why an entry was not made, in a sentence or its end, on one line."""
    if isinstance(error, DeadlineExceededError):
        return f"its item was {error}"
    if not isinstance(error, JobError):
        return str(error)
    if error.is_a(MemoryError):
        return "its item takes more memory than a worker may have"
    return error.message.partition("\n")[0] or error.kind


async def first_usable(
    pool: WorkerPool,
    attempts: Iterable[ItemSpec],
    *,
    deadline_s: float,
    checked: bool = True,
) -> tuple[ItemSpec, Entry]:
    """Make the first of several attempts whose entry can be used.

    Args:
        pool: Its workers make the entries.
        attempts: At least one. An iterator is read no further than necessary, so a
            second call continues with the attempts that are left.
        deadline_s: Seconds of CPU time for each attempt.
        checked: Whether faulty entries are rejected; see `library.make_entry`.

    Returns:
        The attempt and its entry.

    Raises:
        PoolError: An entry cannot be made, or the last attempt cannot be used either.
    """
    unusable: PoolError | None = None
    for spec in attempts:
        how = (spec.task, dict(spec.params), spec.seed)
        job = (worker_jobs.make_entry, *how, checked, spec.published, spec.place)
        try:
            return spec, await pool.run(*job, deadline_s=deadline_s)
        except JobError as error:
            if not is_unusable(error):
                raise
            unusable = error
    raise unusable or ValueError("there is no attempt")


class EntryMaker:
    """Makes the entries of one stream.

    Args:
        expected_ms: About how long an item takes to make; 0 where nothing is known.
        making_at_once: Slow entries made at the same time; quick ones may be one more.
        deadline_s: Seconds that making one entry may take.
        checked: Whether faulty entries are rejected; see `library.make_entry`.

    Attributes:
        left_out: Task to the reason why its draws are skipped.
        places: Taken by whoever makes slow entries, so that a worker stays free.
    """

    def __init__(
        self,
        pool: WorkerPool,
        expected_ms: Callable[[str, float | None], float],
        *,
        making_at_once: int,
        deadline_s: float,
        checked: bool = True,
    ) -> None:
        self._checked = checked
        self._pool = pool
        self._expected_ms = expected_ms
        self._deadline_s = deadline_s
        self.places = asyncio.Semaphore(making_at_once)
        self._quick_places = asyncio.Semaphore(making_at_once + 1)
        self.left_out: dict[str, str] = {}
        self._until_checked: Callable[[str], Awaitable[None]] | None = None

    def leave_out(self, task: str, reason: str) -> None:
        """Make no entry of a task from here on, and say why."""
        logger.warning("task %s is left out: %s", task, reason)
        self.left_out[task] = reason

    def wait_for_check(self, until_checked: Callable[[str], Awaitable[None]]) -> None:
        """Make no entry before its task was checked, which may call `leave_out`."""
        self._until_checked = until_checked

    def begin(self, spec: ItemSpec) -> asyncio.Future[Entry]:
        """Begin to make the entry of an item.

        Returns:
            The entry to come; or `LeftOutError`, or the PoolError that came instead.
        """
        if spec.task in self.left_out:
            making = asyncio.get_running_loop().create_future()
            making.set_exception(LeftOutError(spec.task))
        else:
            making = asyncio.ensure_future(self._make(spec))
        making.add_done_callback(_read_error)
        return making

    async def _make(self, spec: ItemSpec) -> Entry:
        async with self._place_for(spec):
            if self._until_checked is not None:
                await self._until_checked(spec.task)
            if spec.task in self.left_out:
                raise LeftOutError(spec.task)
            _, entry = await first_usable(
                self._pool, [spec], deadline_s=self._deadline_s, checked=self._checked
            )
            return entry

    @contextlib.asynccontextmanager
    async def _place_for(self, spec: ItemSpec) -> AsyncIterator[None]:
        """Hold a place; a slow item leaves a worker free for what cannot wait."""
        async with contextlib.AsyncExitStack() as held:
            if self._expected_ms(spec.task, spec.level) > QUICK_MS:
                await held.enter_async_context(self.places)
            await held.enter_async_context(self._quick_places)
            yield


def _read_error(making: asyncio.Future[Any]) -> None:
    """Read the error of an abandoned entry, so that asyncio does not warn about it."""
    if not making.cancelled():
        making.exception()
