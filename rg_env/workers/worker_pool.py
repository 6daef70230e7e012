"""Runs calls in worker processes that can be killed.

`WorkerPool` gives each call to one of a fixed number of worker processes. If a call
uses up the CPU time of its deadline, only this call fails. Its worker is replaced
within milliseconds by a fork of a process that has everything imported (see
fork_server_program.py). If a worker ends, its call is run again on another one. The
call fails with `WorkerDiedError` if it ends that worker, too, and with
`WorkerLostError` if others, such as a kernel without memory, end several workers.

Covered: hangs that hold the interpreter lock, os._exit, abort, running out of memory,
output, cancelled callers, results that run code, hang or grow when they are parsed, a
killed owner, a forked owner, killed workers. hardening.py restricts the access of a job
to other resources, and worker_program.py resets the process between two calls; both
list what they do not cover. Linux only. docs/measurements.md says why no library is
used.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import logging
import os
import queue
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any, TypeVar, cast

from rg_env.logs import should_log
from rg_env.workers.call import (
    DEFAULT_OPTIONS,
    Call,
    CallOptions,
    JobError,
    KilledError,
    NotStartedError,
    PoolClosedError,
    PoolError,
    Worker,
    WorkerDiedError,
    WorkerLostError,
)
from rg_env.workers.fork_server import ForkServer
from rg_env.workers.sandbox import hardening

logger = logging.getLogger(__name__)

T = TypeVar("T")

DEFAULT_MEMORY_LIMIT_BYTES = 2 * 2**30
# Bounds of the default number of workers; one is kept free for scoring.
MIN_WORKERS = 2
MAX_WORKERS = 8
# Attempts of a call if something other than its job ends its workers.
MAX_ATTEMPTS = 5
# Attempts of a call if its job ends its workers. There are two, because an earlier job
# may have broken the first worker.
MAX_CRASHES = 2
JOIN_LIMIT_S = 1.0

_open_pools: set[WorkerPool] = set()


def _begin_in_child() -> None:
    for pool in _open_pools:
        pool._begin()


os.register_at_fork(after_in_child=_begin_in_child)


def default_pool_size() -> int:
    """Return half the number of cores, from 2 to 8."""
    return max(MIN_WORKERS, min(MAX_WORKERS, (os.cpu_count() or 1) // 2))


class WorkerPool:
    """A fixed number of worker processes; further calls wait in a queue.

    Nothing is started before the first call, which waits for the preloading. A forked
    child of this process starts workers of its own. Only the parent gets the results of
    calls from before the fork.

    Args:
        num_workers: The number of calls that run at once; None for half the cores.
        memory_limit_bytes: Address space of a worker, including preloaded modules; None
            for no limit.
        preload: Modules that are imported once, before any worker is forked. Each is
            "module", "module:function" to call a function, or
            "module:function:argument".

    Attributes:
        deaths: The number of workers that ended during a call and not by the pool.

    Example:
        pool = WorkerPool(2, preload=["reasoning_gym.factory"])
        gcd = pool.call(math.gcd, 12, 18, deadline_s=1.0)
        pool.close()
    """

    def __init__(
        self,
        num_workers: int | None = None,
        *,
        memory_limit_bytes: int | None = DEFAULT_MEMORY_LIMIT_BYTES,
        preload: Sequence[str] = (),
    ) -> None:
        self._preload = tuple(preload)
        self._num_workers = num_workers or default_pool_size()
        self._memory_limit_bytes = memory_limit_bytes
        self._closed = False
        self.deaths = 0
        self._begin()
        _open_pools.add(self)
        atexit.register(self.close)

    def _begin(self) -> None:
        """Start without workers and calls, also in a forked child."""
        self._fork_server = ForkServer(self._preload, self._memory_limit_bytes)
        self._close_lock = threading.RLock()  # a callback of a failed call may close
        self._lock = threading.Lock()  # guards the attributes below, and _closed
        self._waiting = deque[Call]()
        self._threads = [
            _Thread(self._fork_server, self._next_call, self._note_death)
            for _ in range(self._num_workers)
        ]
        # Last in, first out: the thread that worked last has the warmest caches.
        self._idle = list(self._threads)

    @property
    def sandbox_layers(self) -> tuple[str, ...]:
        """The active layers of hardening.py; () before the first worker."""
        missing = self._fork_server.missing_layers
        if missing is None:
            return ()
        active = [layer for layer in hardening.RISKS if layer not in missing]
        return ("limits", *active)

    def submit(
        self,
        job: Callable[..., T],
        /,
        *args: Any,
        deadline_s: float,
        options: CallOptions = DEFAULT_OPTIONS,
    ) -> Future[T]:
        """Start a job like `run`, and return its future; thread-safe."""
        return self._enqueue(Call(job, args, deadline_s, options)).future

    async def run(
        self,
        job: Callable[..., T],
        /,
        *args: Any,
        deadline_s: float,
        options: CallOptions = DEFAULT_OPTIONS,
    ) -> T:
        """Return the result of a job; cancellation kills the call.

        wire.py lists the types of results.

        Args:
            job: A function that workers can import, so not one of `__main__`.
            *args: The arguments of the job. They are pickled.
            deadline_s: CPU time of the job.
            options: Other limits, and how the worker is used.

        Raises:
            PoolError: The job failed, or no worker could run it; see call.py.
            ValueError: The pickled call is too long.
            pickle.PicklingError, TypeError, AttributeError: The call does not pickle.
        """
        call = self._enqueue(Call(job, args, deadline_s, options))
        try:
            return cast(T, await asyncio.wrap_future(call.future))
        finally:
            call.abandon()

    def call(
        self,
        job: Callable[..., T],
        /,
        *args: Any,
        deadline_s: float,
        options: CallOptions = DEFAULT_OPTIONS,
    ) -> T:
        """Run a job like `run`, for callers without an event loop; thread-safe."""
        call = self._enqueue(Call(job, args, deadline_s, options))
        try:
            return cast(T, call.future.result())
        finally:
            call.abandon()

    def close(self) -> None:
        """End every worker and fail pending calls; idempotent, from any thread."""
        with self._close_lock:
            with self._lock:
                if self._closed:
                    return
                self._closed = True
                waiting = list(self._waiting)
                self._waiting.clear()
            atexit.unregister(self.close)
            for call in waiting:
                if call.future.set_running_or_notify_cancel():
                    call.future.set_exception(PoolClosedError("the pool was closed"))
            # Before the threads, because this wakes those that wait for a worker.
            self._fork_server.close()
            for thread in self._threads:
                thread.close()
            _open_pools.discard(self)

    def _enqueue(self, call: Call) -> Call:
        """Give the call to an idle thread, or append it to the queue."""
        with self._lock:
            if self._closed:
                raise PoolClosedError("the pool is closed")
            if self._idle:
                self._idle_for(call).take(call)
            else:
                self._waiting.append(call)
        return call

    def _idle_for(self, call: Call) -> _Thread:
        """Take an idle thread whose last call had this affinity, or the latest one."""
        # A worker that runs all kinds of jobs would load the data of each.
        for index in range(len(self._idle) - 1, -1, -1):
            if self._idle[index].last_affinity == call.affinity:
                return self._idle.pop(index)
        return self._idle.pop()

    def _next_call(self, thread: _Thread) -> Call | None:
        with self._lock:
            if self._waiting:
                return self._waiting.popleft()
            self._idle.append(thread)
            return None

    def _note_death(self, how: str) -> None:
        """Count a worker that ended during a call; log the 1st, 2nd, 4th, ... one."""
        with self._lock:
            self.deaths += 1
            count = self.deaths
        if should_log(count):
            logger.warning(
                "a worker process ended during a call: %s (%d so far)", how, count
            )


# -- the threads that pass calls to workers --------------------------------------------


class _Thread:
    """A thread that runs one call at a time on worker processes of its own.

    One worker process runs the untrusted calls and another one all other calls. Each is
    forked for its first call. After each call, the thread calls `next_call`; if that
    returns None, the thread waits.

    Attributes:
        last_affinity: The affinity of its last call.
    """

    def __init__(
        self,
        fork_server: ForkServer,
        next_call: Callable[[_Thread], Call | None],
        note_death: Callable[[str], None],
    ) -> None:
        self.last_affinity: tuple[Callable[..., Any], bool] | None = None
        self._fork_server = fork_server
        self._next_call = next_call
        self._note_death = note_death
        # By whether calls are untrusted; None after a worker was closed.
        self._workers: dict[bool, Worker | None] = {}
        self._inbox: queue.SimpleQueue[Call | None] = queue.SimpleQueue()
        # A daemon, because Python joins other threads before atexit closes the pool.
        self._thread = threading.Thread(
            target=self._loop, name="worker-thread", daemon=True
        )

    def take(self, call: Call) -> None:
        """Run this call next; only for a waiting thread, one caller at a time."""
        self._inbox.put(call)
        if self._thread.ident is None:
            self._thread.start()

    def close(self) -> None:
        """End the thread after the fork server is closed."""
        self._inbox.put(None)
        # A callback of the last future may close the pool in this thread.
        if self._thread.ident not in (None, threading.get_ident()):
            self._thread.join(JOIN_LIMIT_S)

    def _loop(self) -> None:
        while (call := self._inbox.get()) is not None:
            while call is not None:
                self.last_affinity = call.affinity
                if call.future.set_running_or_notify_cancel():
                    self._complete(call)
                    self._renew_worker(call.options)
                # The old call, which holds the arguments of its job, is dropped.
                call = self._next_call(self)
        for untrusted in list(self._workers):
            self._close_worker(untrusted)

    def _worker(self, untrusted: bool) -> Worker:
        worker = self._workers.get(untrusted)
        if worker is None:
            worker = self._workers[untrusted] = self._fork_server.fork()
        return worker

    def _close_worker(self, untrusted: bool) -> None:
        if (worker := self._workers.get(untrusted)) is not None:
            self._workers[untrusted] = None
            worker.close()

    def _renew_worker(self, options: CallOptions) -> None:
        """Replace the worker of a call if it is closed or has run enough calls."""
        untrusted = options.untrusted
        worker = self._workers.get(untrusted)
        if worker and untrusted and worker.calls >= options.max_untrusted_calls:
            self._close_worker(untrusted)
        if untrusted in self._workers:
            # Ahead of the next call; if this fails, that call reports it.
            with contextlib.suppress(NotStartedError, WorkerLostError, PoolClosedError):
                self._worker(untrusted)

    def _complete(self, call: Call) -> None:
        """Run a call and set the result or the error of its future."""
        try:
            result = self._run(call)
        except PoolError as error:
            # An exception of the job leaves the worker intact.
            if not isinstance(error, JobError):
                self._close_worker(call.options.untrusted)
            # If the fork server was closed, running calls see their worker end.
            if isinstance(error, WorkerLostError) and self._fork_server.closed:
                error = PoolClosedError("the pool was closed")
            # The traceback would keep the call alive.
            call.future.set_exception(error.with_traceback(None))
        else:
            call.future.set_result(result)

    def _run(self, call: Call) -> Any:
        """Run a call; if its worker ends, run it again on another one."""
        untrusted = call.options.untrusted
        crashes = 0
        for _ in range(MAX_ATTEMPTS):
            try:
                result = call.run_on(self._worker(untrusted))
            except (NotStartedError, KilledError, WorkerDiedError) as error:
                end = error
            else:
                # The worker may have been killed just after its reply.
                if call.abandoned:
                    self._close_worker(untrusted)
                return result
            self._close_worker(untrusted)
            if call.abandoned or isinstance(end, NotStartedError):
                continue
            self._note_death(str(end))
            if isinstance(end, WorkerDiedError):
                crashes += 1
                if crashes == MAX_CRASHES:
                    raise end
        raise WorkerLostError(f"{MAX_ATTEMPTS} workers ended, the last one: {end}")


# -- callers without an event loop -----------------------------------------------------


def run_blocking(
    job: Callable[[WorkerPool], Coroutine[Any, Any, T]], pool: WorkerPool
) -> T:
    """Return the result of the coroutine `job(pool)`, which awaits only `pool.run`.

    It needs no event loop, and blocks a running one.
    """

    async def run(*args: Any, **kwargs: Any) -> Any:
        return pool.call(*args, **kwargs)

    coroutine = job(cast(WorkerPool, SimpleNamespace(run=run)))
    try:
        # It never suspends, so the first step is also the last one.
        coroutine.send(None)
    except StopIteration as end:
        return cast(T, end.value)
    raise RuntimeError(f"{coroutine} awaits something other than a worker")
