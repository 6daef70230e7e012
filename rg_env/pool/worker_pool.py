"""Run calls in worker processes that can be killed.

`WorkerPool` hands each call to one of a fixed number of worker processes. A call
that misses its deadline, or whose worker dies, fails alone; its worker is replaced
within milliseconds by a fork of a process that has everything imported (see
fork_server_program.py).

Covered: hangs that hold the interpreter lock, os._exit, abort, running out of
memory, output, cancelled callers, results that run code when read, a killed owner.
What a job can reach outside its process is hardening.py's, what it leaves changed for
the next call of the same worker is process_state.py's; both say what they do not cover.
Linux only. A library does not do this: see benchmarks/pools.py.
"""

from __future__ import annotations

import asyncio
import atexit
import collections
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

from rg_env.pool import early_start
from rg_env.pool.fair_semaphore import FairSemaphore
from rg_env.pool.pool_errors import PoolClosed, PoolFull
from rg_env.pool.worker_thread import Call, WorkerThread

T = TypeVar("T")
DEFAULT_MEMORY_LIMIT_BYTES = 2 * 2**30
_COUNTERS = ("calls", "failures", "timeouts", "deaths", "cancelled", "restarts")


class WorkerPool:
    """A fixed number of worker processes and a bounded number of calls.

    Nothing is started before the first call, which therefore waits for the
    preloading; submit something trivial early to have that done in the background.
    """

    def __init__(
        self,
        num_workers: int,
        *,
        memory_limit_bytes: int | None = DEFAULT_MEMORY_LIMIT_BYTES,
        max_pending: int = 256,
        preload: Sequence[str] = (),
    ) -> None:
        """Create the pool.

        Args:
            num_workers: How many calls run at once; positive.
            memory_limit_bytes: Address space of a worker, the preloaded modules
                included; None for no limit.
            max_pending: How many calls may be waiting and running together.
            preload: Modules imported once, before any worker is forked.

        Raises:
            ValueError: A number is not positive.
        """
        if num_workers < 1 or max_pending < 1:
            raise ValueError("num_workers and max_pending have to be at least 1")
        self._nursery = early_start.take(preload, memory_limit_bytes)
        self._places = FairSemaphore(max_pending)
        self._close_lock = threading.Lock()
        self._lock = threading.Lock()  # guards all below
        self._closed = False
        self._counters = dict.fromkeys(_COUNTERS, 0)
        self._backlog: collections.deque[Call] = collections.deque()
        self._lanes = [
            WorkerThread(self._nursery, self._next_call, self._count)
            for _ in range(num_workers)
        ]
        # Last in, first out: the worker that ran last has the warmest caches.
        self._idle = list(self._lanes)
        atexit.register(self.close)

    @property
    def counters(self) -> dict[str, int]:
        """Totals since the start.

        calls: accepted; failures: the job raised; timeouts: deadlines missed;
        deaths: calls lost with their worker; cancelled: calls given up while they
        ran; restarts: workers forked in the place of another.
        """
        with self._lock:
            return dict(self._counters)

    @property
    def hardening(self) -> tuple[str, ...]:
        """The layers that protect from workers, () before there was one.

        See hardening.py; a layer that is missing is in the log as well.
        """
        found = self._nursery.hardening
        return found.layers if found is not None else ()

    def submit(
        self, job: Callable[..., T], /, *args: Any, deadline_s: float
    ) -> Future[T]:
        """Queue a call and return at once; thread-safe.

        Cancelling the future helps only before the job begins.

        Args:
            job: A function that workers can import, so not one of `__main__`.
            args: Its arguments; pickled.
            deadline_s: Seconds from the job's beginning in the worker.

        Returns:
            A future with the result or an PoolError. See wire.py for what a
            result may hold.

        Raises:
            PoolFull: max_pending calls are waiting or running.
            PoolClosed: The pool is closed.
            ValueError: The job or the deadline is of no use.
            pickle.PicklingError, TypeError, AttributeError: It does not pickle.
        """
        call = Call(job, args, deadline_s)
        self._check_open()
        if not self._places.take():
            raise PoolFull("max_pending calls are under way; run() and call() wait")
        self._dispatch(call)
        return call.future

    async def run(self, job: Callable[..., T], /, *args: Any, deadline_s: float) -> T:
        """Wait for a place, then for the result; cancelling kills the call.

        Args and errors as `submit`, but for PoolFull.
        """
        call = Call(job, args, deadline_s)
        self._check_open()
        place = self._places.request()
        try:
            await asyncio.wrap_future(place)
        except asyncio.CancelledError:
            self._places.withdraw(place)
            raise
        self._dispatch(call)
        try:
            result: T = await asyncio.wrap_future(call.future)
            return result
        finally:
            call.abandon()

    def call(self, job: Callable[..., T], /, *args: Any, deadline_s: float) -> T:
        """As `run`, for callers without an event loop."""
        call = Call(job, args, deadline_s)
        self._check_open()
        place = self._places.request()
        try:
            place.result()
        except KeyboardInterrupt:
            self._places.withdraw(place)
            raise
        self._dispatch(call)
        try:
            result: T = call.future.result()
            return result
        finally:
            call.abandon()

    def close(self) -> None:
        """End every worker and fail what is pending; idempotent, from any thread."""
        with self._close_lock:
            with self._lock:
                if self._closed:
                    return
                self._closed = True
                backlog = list(self._backlog)
                self._backlog.clear()
            atexit.unregister(self.close)
            self._places.refuse(PoolClosed("the pool was closed"))
            for call in backlog:
                self._refuse(call)
            self._nursery.close()
            for lane in self._lanes:
                lane.close()

    def _check_open(self) -> None:
        if self._closed:
            raise PoolClosed("the pool is closed")

    def _dispatch(self, call: Call) -> None:
        """Send a call that holds a place on its way."""
        call.future.add_done_callback(self._finish)
        with self._lock:
            closed = self._closed
            if not closed:
                self._counters["calls"] += 1
                if self._idle:
                    self._idle_for(call).take(call)
                else:
                    self._backlog.append(call)
        if closed:
            self._refuse(call)

    def _idle_for(self, call: Call) -> WorkerThread:
        """Take the idle lane that ran the same job last, or else the newest.

        A worker that does one job keeps what it built for it; a worker that does all
        would build all, which costs time and memory.
        """
        for place in range(len(self._idle) - 1, -1, -1):
            if self._idle[place].last_job is call.job:
                return self._idle.pop(place)
        return self._idle.pop()

    def _refuse(self, call: Call) -> None:
        if call.future.set_running_or_notify_cancel():
            call.future.set_exception(PoolClosed("the pool was closed"))

    def _finish(self, future: Future[Any]) -> None:
        if future.cancelled():
            with self._lock:
                kept = [call for call in self._backlog if call.future is not future]
                self._backlog = collections.deque(kept)
        self._places.give_back()

    def _next_call(self, lane: WorkerThread) -> Call | None:
        with self._lock:
            if self._backlog:
                return self._backlog.popleft()
            self._idle.append(lane)
            return None

    def _count(self, name: str) -> None:
        with self._lock:
            self._counters[name] += 1
