"""Run calls in worker processes that can be killed.

`WorkerPool` hands each call to one of a fixed number of worker processes. A call
that uses up the CPU time of its deadline fails alone; its worker is replaced within
milliseconds by a fork of a process that has everything imported (see
fork_server_program.py). A call whose worker ends is run again on another one: it fails
as `WorkerDiedError` only where it ends that one too, and as `WorkerLostError` where
others, such as a kernel without memory, end one after the other.

Covered: hangs that hold the interpreter lock, os._exit, abort, running out of
memory, output, cancelled callers, results that run code, hang or grow when they are
read, a killed owner, a forked one, killed workers.
What a job can reach outside its process is hardening.py's, what it leaves changed for
the next call of the same worker is process_state.py's; both say what they do not cover.
Linux only. A library does not do this: see docs/measurements.md.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar, cast

from rg_env.logs import is_worth_a_line
from rg_env.workers.call_runner import BELIEVED, Call, CallRunner, Trust
from rg_env.workers.fork_server import ForkServer
from rg_env.workers.pool_errors import PoolClosedError
from rg_env.workers.sandbox import hardening

logger = logging.getLogger(__name__)

T = TypeVar("T")
DEFAULT_MEMORY_LIMIT_BYTES = 2 * 2**30
FEWEST_WORKERS, MOST_WORKERS = 2, 8
"""Where nobody says how many; one is kept free for scoring."""

_open_pools: set[WorkerPool] = set()


def _begin_in_child() -> None:
    for pool in tuple(_open_pools):
        pool._begin()


os.register_at_fork(after_in_child=_begin_in_child)


def default_pool_size() -> int:
    """Return half the number of cores, within the bounds."""
    return max(FEWEST_WORKERS, min(MOST_WORKERS, (os.cpu_count() or 1) // 2))


class WorkerPool:
    """A fixed number of worker processes; calls beyond it wait, first come first.

    Nothing is started before the first call, which therefore waits for the preloading.
    So it is in a forked child too, whose calls get workers of the child's own. Calls
    from before the fork are answered in the parent alone.

    Args:
        num_workers: How many calls run at once; positive.
        memory_limit_bytes: Address space of a worker, the preloaded modules included;
            None for no limit.
        preload: Modules imported once, before any worker is forked; after a colon, a
            function of the module that is called then, and after another one the text
            that it is given.

    Attributes:
        deaths: Workers that have ended under a call, but for those that the pool ended.
    """

    def __init__(
        self,
        num_workers: int,
        *,
        memory_limit_bytes: int | None = DEFAULT_MEMORY_LIMIT_BYTES,
        preload: Sequence[str] = (),
    ) -> None:
        self.preload = tuple(preload)
        self._num_workers = num_workers
        self._memory_limit_bytes = memory_limit_bytes
        self._closed = False
        self.deaths = 0
        self._begin()
        _open_pools.add(self)
        atexit.register(self.close)

    def _begin(self) -> None:
        """Begin without workers and calls; a forked child has none of its parent's."""
        self._fork_server = ForkServer(self.preload, self._memory_limit_bytes)
        self._close_lock = threading.RLock()  # a refused call's callback may close too
        self._lock = threading.Lock()  # guards all below, and _closed
        self._waiting: OrderedDict[Future[Any], Call] = OrderedDict()
        self._runners = [
            CallRunner(self._fork_server, self._next_call, self._note_death)
            for _ in range(self._num_workers)
        ]
        # Last in, first out: the worker that ran last has the warmest caches.
        self._idle = list(self._runners)

    @property
    def sandbox_layers(self) -> tuple[str, ...]:
        """The layers (hardening.py) that protect from workers; () before the first."""
        missing = self._fork_server.missing_layers
        return () if missing is None else hardening.layers_without(missing)

    def submit(
        self,
        job: Callable[..., T],
        /,
        *args: Any,
        deadline_s: float,
        trust: Trust = BELIEVED,
    ) -> Future[T]:
        """Queue a call and return its future at once; thread-safe.

        Cancelling it helps only before the job begins. plain_values.py says what
        a result may hold.

        Args:
            job: A function that workers can import, so not one of `__main__`.
            *args: Its arguments; pickled.
            deadline_s: CPU time that the worker may use from the job's beginning on.
            trust: How far what the worker answers is believed.

        Raises:
            PoolClosedError: The pool is closed.
            ValueError: The job or the deadline is of no use.
            pickle.PicklingError, TypeError, AttributeError: It does not pickle.
        """
        return self._enqueue(Call(job, args, deadline_s, trust)).future

    async def run(
        self,
        job: Callable[..., T],
        /,
        *args: Any,
        deadline_s: float,
        trust: Trust = BELIEVED,
    ) -> T:
        """As `submit`, waiting for the result; cancelling kills the call."""
        call = self._enqueue(Call(job, args, deadline_s, trust))
        try:
            result: T = await asyncio.wrap_future(call.future)
            return result
        finally:
            call.abandon()

    def call(
        self,
        job: Callable[..., T],
        /,
        *args: Any,
        deadline_s: float,
        trust: Trust = BELIEVED,
    ) -> T:
        """As `run`, for callers without an event loop."""
        call = self._enqueue(Call(job, args, deadline_s, trust))
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
                waiting = list(self._waiting)
                self._waiting.clear()
            atexit.unregister(self.close)
            # Outside of the lock, which the callbacks of a future take.
            for future in waiting:
                if future.set_running_or_notify_cancel():
                    future.set_exception(PoolClosedError("the pool was closed"))
            # First: this wakes the threads that wait for a worker.
            self._fork_server.close()
            for runner in self._runners:
                runner.close()
            _open_pools.discard(self)

    def _enqueue(self, call: Call) -> Call:
        """Hand the call to an idle worker or let it wait, behind those that do."""
        with self._lock:
            if self._closed:
                raise PoolClosedError("the pool is closed")
            if self._idle:
                self._idle_for(call).take(call)
            else:
                self._waiting[call.future] = call
        # Outside of the lock: of a future that is done, this calls `_forget` at once.
        call.future.add_done_callback(self._forget)
        return call

    def _idle_for(self, call: Call) -> CallRunner:
        """Take the idle worker that ran the same kind last, or else the newest.

        A worker that does one job keeps what it built for it; a worker that does all
        would build all, which costs time and memory.
        """
        for place in range(len(self._idle) - 1, -1, -1):
            if self._idle[place].last_kind == call.kind:
                return self._idle.pop(place)
        return self._idle.pop()

    def _next_call(self, runner: CallRunner) -> Call | None:
        with self._lock:
            if self._waiting:
                return self._waiting.popitem(last=False)[1]
            self._idle.append(runner)
            return None

    def _note_death(self, how: str) -> None:
        """Count a worker that ended under a call, and say it ever more seldom."""
        with self._lock:
            self.deaths += 1
            count = self.deaths
        if is_worth_a_line(count):
            logger.warning(
                "a worker process ended: %s; its call is run again (%d so far)",
                how,
                count,
            )

    def _forget(self, future: Future[Any]) -> None:
        with self._lock:
            self._waiting.pop(future, None)


# -- callers without an event loop -----------------------------------------------------


class _BlockingPool:
    """A pool whose `run` blocks, so a coroutine that awaits it is not suspended."""

    def __init__(self, pool: WorkerPool) -> None:
        self.preload = pool.preload
        self._call = pool.call

    async def run(self, *args: Any, **limits: Any) -> Any:
        return self._call(*args, **limits)


def run_blocking(
    job: Callable[[WorkerPool], Coroutine[Any, Any, T]], pool: WorkerPool
) -> T:
    """Return the result of a coroutine that awaits nothing but `pool.run`.

    This makes code for an event loop usable for callers without one, and in threads
    that already run one.

    Args:
        job: Makes the coroutine of the pool that it is given.
        pool: Does the work; this thread waits for it.

    Raises:
        RuntimeError: The coroutine has waited for something else.
    """
    coroutine = job(cast(WorkerPool, _BlockingPool(pool)))
    try:
        # It never suspends, so the first step is also its last.
        coroutine.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    coroutine.close()
    raise RuntimeError(f"{coroutine} waits for something else than a worker")
