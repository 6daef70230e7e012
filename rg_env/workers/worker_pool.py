"""Runs calls in worker processes that can be killed.

`WorkerPool` gives each call to one of a fixed number of worker processes. If a call
uses up the CPU time of its deadline, only this call fails. Its worker is replaced
within milliseconds by a fork of a process that has everything imported (see
fork_server_program.py). If a worker ends, its call is run again on another one. The
call fails with `WorkerDiedError` if it ends that worker, too, and with
`WorkerLostError` if others, such as a kernel without memory, end several workers.

A deadline is CPU time, read from the kernel's clock of the worker process. So a job has
the same time on a busy machine as on an idle one, and a worker cannot forge it. A
worker that sleeps uses no CPU time; a limit of wall time ends it.

Covered: hangs that hold the interpreter lock, os._exit, abort, running out of memory,
output, cancelled callers, results that run code, hang or grow when they are parsed, a
killed owner, a forked owner, killed workers. hardening.py restricts the access of a job
to other resources, and process_state.py resets the process between two calls; both list
what they do not cover. Linux only. docs/measurements.md says why no library is used.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import dataclasses
import functools
import logging
import os
import pickle
import queue
import secrets
import threading
import time
import typing
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar, cast

import msgspec

from rg_env.errors import printable
from rg_env.logs import is_sampled
from rg_env.workers.fork_server import START_LIMIT_S, ForkServer, NotStartedError
from rg_env.workers.pool_errors import (
    DeadlineExceededError,
    JobError,
    PoolClosedError,
    PoolError,
    WorkerDiedError,
    WorkerLostError,
)
from rg_env.workers.sandbox import hardening
from rg_env.workers.wire import (
    MAX_BODY_BYTES,
    MAX_REPLY_BYTES,
    Channel,
    Frame,
    Message,
    NoFrameError,
    unpack,
)
from rg_env.workers.worker_program import MAX_DETAIL_CHARS, MAX_MESSAGE_CHARS

logger = logging.getLogger(__name__)

T = TypeVar("T")
_printable = functools.partial(printable, keep="\n")

DEFAULT_MEMORY_LIMIT_BYTES = 2 * 2**30
# Bounds of the default number; one worker is kept free for scoring.
FEWEST_WORKERS = 2
MOST_WORKERS = 8
# Attempts of a call if others end its workers.
MAX_ATTEMPTS = 5
# Attempts of a call if its job ends the workers; an earlier job may have broken the
# first one.
MAX_OWN_ENDS = 2
# A fork and repeated imports take 20 ms of CPU time. After so many groups, that is a
# twentieth of the whole time of a group.
BRIEF_CALLS = 24
# CPU time between the arrival of a call and the beginning of its job.
PREPARING_LIMIT_S = 30.0
LEAST_WALL_LIMIT_S = 60.0
# Wall time for each second of a deadline. It ends a worker that sleeps, but not one
# that gets a twentieth of a core on a busy machine.
WALL_LIMIT_FACTOR = 20.0
# The shortest time between two reads of the clock.
LEAST_WAIT_S = 0.01
JOIN_LIMIT_S = 1.0

_open_pools: set[WorkerPool] = set()


os.register_at_fork(after_in_child=lambda: [*map(WorkerPool._begin, _open_pools)])


def default_pool_size() -> int:
    """Return half the number of cores, from 2 to 8."""
    return max(FEWEST_WORKERS, min(MOST_WORKERS, (os.cpu_count() or 1) // 2))


@dataclasses.dataclass(frozen=True)
class Trust:
    """The trust in the answer of a worker, and the limits of a call.

    Attributes:
        max_reply_bytes: The longest answer.
        read: Makes the result from an answer of the job's annotated type; raises
            ValueError if the job cannot return this.
        brief: Whether the job might take over its worker, which then runs only such
            calls and is replaced after `max_calls`.
        max_calls: The number of brief calls of a worker.
        prepare: A pickled function that the worker calls before the job and its
            deadline begin, to load and keep its data. It must not depend on untrusted
            values.
        wall_limit_s: Wall time of the job; 0 for a multiple of its deadline.
    """

    max_reply_bytes: int = MAX_REPLY_BYTES
    read: Callable[[Any], Any] | None = None
    brief: bool = False
    max_calls: int = BRIEF_CALLS
    prepare: Callable[[], object] | None = None
    wall_limit_s: float = 0.0


BELIEVED = Trust()


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
        self.preload = tuple(preload)
        self._num_workers = num_workers or default_pool_size()
        self._memory_limit_bytes = memory_limit_bytes
        self._closed = False
        self.deaths = 0
        self._begin()
        _open_pools.add(self)
        atexit.register(self.close)

    def _begin(self) -> None:
        """Start without workers and calls, also in a forked child."""
        self._fork_server = ForkServer(self.preload, self._memory_limit_bytes)
        self._close_lock = threading.RLock()  # a callback of a failed call may close
        self._lock = threading.Lock()  # guards the attributes below, and _closed
        self._waiting: OrderedDict[Future[Any], _Call] = OrderedDict()
        self._threads = [
            _Thread(self._fork_server, self._next_call, self._note_death)
            for _ in range(self._num_workers)
        ]
        # Last in, first out: the worker that ran last has the warmest caches.
        self._idle = list(self._threads)

    @property
    def sandbox_layers(self) -> tuple[str, ...]:
        """The active layers of hardening.py; () before the first worker."""
        missing = self._fork_server.missing_layers
        if missing is None:
            return ()
        of_the_kernel = [x for x in hardening.UNPROTECTED if x not in missing]
        return ("limits", *of_the_kernel)

    def submit(
        self,
        job: Callable[..., T],
        /,
        *args: Any,
        deadline_s: float,
        trust: Trust = BELIEVED,
    ) -> Future[T]:
        """Start a job like `run`, and return its future; thread-safe."""
        return self._enqueue(_Call(job, args, deadline_s, trust)).future

    async def run(
        self,
        job: Callable[..., T],
        /,
        *args: Any,
        deadline_s: float,
        trust: Trust = BELIEVED,
    ) -> T:
        """Return the result of a job; cancellation kills the call.

        wire.py lists the types of results.

        Args:
            job: A function that workers can import, so not one of `__main__`.
            *args: The arguments of the job; pickled.
            deadline_s: CPU time of the job.
            trust: The trust in the answer of the worker.

        Raises:
            PoolError: See pool_errors.py.
            ValueError: The pickled call is too long.
            pickle.PicklingError, TypeError, AttributeError: The call does not pickle.
        """
        call = self._enqueue(_Call(job, args, deadline_s, trust))
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
        trust: Trust = BELIEVED,
    ) -> T:
        """Run a job like `run`, for callers without an event loop; thread-safe."""
        call = self._enqueue(_Call(job, args, deadline_s, trust))
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
            # Outside the lock, because callbacks of a future take it.
            for future in waiting:
                if future.set_running_or_notify_cancel():
                    future.set_exception(PoolClosedError("the pool was closed"))
            # This comes first, because it wakes the threads that wait for a worker.
            self._fork_server.close()
            for thread in self._threads:
                thread.close()
            _open_pools.discard(self)

    def _enqueue(self, call: _Call) -> _Call:
        """Give the call to an idle worker, or append it to the queue."""
        with self._lock:
            if self._closed:
                raise PoolClosedError("the pool is closed")
            if self._idle:
                self._idle_for(call).take(call)
            else:
                self._waiting[call.future] = call
        # Outside the lock: if the future is done, this calls `_forget` at once.
        call.future.add_done_callback(self._forget)
        return call

    def _idle_for(self, call: _Call) -> _Thread:
        """Take the idle worker that ran this kind last, or else the newest."""
        # A worker that runs all kinds of jobs would load the data of each.
        for place in range(len(self._idle) - 1, -1, -1):
            if self._idle[place].last_kind == call.kind:
                return self._idle.pop(place)
        return self._idle.pop()

    def _next_call(self, thread: _Thread) -> _Call | None:
        with self._lock:
            if self._waiting:
                return self._waiting.popitem(last=False)[1]
            self._idle.append(thread)
            return None

    def _note_death(self, how: str) -> None:
        """Count a worker that ended during a call; log this with growing intervals."""
        with self._lock:
            self.deaths += 1
            count = self.deaths
        if is_sampled(count):
            logger.warning(
                "a worker process ended: %s; its call is run again (%d so far)",
                how,
                count,
            )

    def _forget(self, future: Future[Any]) -> None:
        with self._lock:
            self._waiting.pop(future, None)


# -- one call, the thread that passes it to workers, and a worker ----------------------


@functools.cache
def _returns(job: Callable[..., Any]) -> Any:
    """Return the annotated return type of a job."""
    return typing.get_type_hints(job).get("return", Any)


class _Call:
    """A pickled job, its deadline, its future and the worker that runs it."""

    def __init__(
        self,
        job: Callable[..., Any],
        args: tuple[Any, ...],
        deadline_s: float,
        trust: Trust,
    ) -> None:
        self.trust = trust
        self.deadline_s = deadline_s
        self.kind = (job, trust.brief)
        self.future: Future[Any] = Future()
        self.abandoned = False
        # In the caller's thread, so that the caller gets errors of pickling.
        order = (trust.prepare, job, args, trust.max_reply_bytes)
        self.body = pickle.dumps(order, pickle.HIGHEST_PROTOCOL)
        if len(self.body) > MAX_BODY_BYTES:
            raise ValueError(f"the call takes {len(self.body)} bytes")
        self._lock = threading.Lock()
        self._worker: _Worker | None = None

    def run_on(self, worker: _Worker) -> Any:
        # `abandon` is either seen here, or it finds the worker to kill.
        with self._lock:
            if self.abandoned:
                raise WorkerLostError("the caller has left")
            self._worker = worker
        try:
            kind, body = worker.run(self)
        finally:
            with self._lock:
                self._worker = None
        return self._read(kind, body)

    def abandon(self) -> None:
        """Stop the call, because its caller no longer waits for it."""
        if self.future.done() or self.future.cancel():
            return
        with self._lock:
            self.abandoned = True
            if self._worker is not None:
                self._worker.kill()

    def _read(self, kind: Frame, body: bytes) -> Any:
        """Turn an untrusted answer into a value."""
        try:
            value = unpack(body)
            if kind is Frame.FAILURE:
                name, message, detail = msgspec.convert(value, tuple[str, str, str])
            else:
                result = msgspec.convert(value, _returns(self.kind[0]))
                return self.trust.read(result) if self.trust.read else result
        except (TypeError, ValueError) as error:
            reason = _printable(str(error)[:MAX_MESSAGE_CHARS])
            raise WorkerDiedError(
                f"the worker sent an invalid reply: {reason}"
            ) from None
        raise JobError(
            _printable(name[:MAX_MESSAGE_CHARS]),
            _printable(message[:MAX_MESSAGE_CHARS]),
            _printable(detail[-MAX_DETAIL_CHARS:]),
        )


class _Thread:
    """A thread that runs one call at a time on worker processes of its own.

    One worker process runs the brief calls and another one all other calls. Each is
    forked for its first call. After each call, the thread calls `next_call`; if that
    returns None, the thread waits.
    """

    def __init__(
        self,
        fork_server: ForkServer,
        next_call: Callable[[_Thread], _Call | None],
        note_death: Callable[[str], None],
    ) -> None:
        self.last_kind: tuple[Callable[..., Any], bool] | None = None
        self._fork_server = fork_server
        self._next_call = next_call
        self._note_death = note_death
        self._workers: dict[bool, _Worker | None] = {}  # by whether calls are brief
        self._inbox: queue.SimpleQueue[_Call | None] = queue.SimpleQueue()
        # A daemon, because Python joins other threads before atexit closes the pool.
        self._thread = threading.Thread(
            target=self._live, name="worker-thread", daemon=True
        )

    def take(self, call: _Call) -> None:
        """Run this call next; only for a waiting thread, one caller at a time."""
        self.last_kind = call.kind
        self._inbox.put(call)
        if self._thread.ident is None:
            self._thread.start()

    def close(self) -> None:
        """End the thread after the fork server is closed."""
        self._inbox.put(None)
        # A callback of the last future may close the pool in this thread.
        if self._thread.ident not in (None, threading.get_ident()):
            self._thread.join(JOIN_LIMIT_S)

    def _live(self) -> None:
        while (call := self._inbox.get()) is not None:
            while call is not None:
                if call.future.set_running_or_notify_cancel():
                    self._answer(call)
                # The old call, which holds the arguments of its job, is dropped.
                call = self._next_call(self)
        for brief in list(self._workers):
            self._clear(brief)

    def _worker(self, brief: bool) -> _Worker:
        worker = self._workers.get(brief)
        if worker is None:
            worker = self._workers[brief] = _Worker(*self._fork_server.fork())
        return worker

    def _clear(self, brief: bool) -> None:
        if (worker := self._workers.get(brief)) is not None:
            self._workers[brief] = None
            worker.close()

    def _answer(self, call: _Call) -> None:
        brief = call.trust.brief
        try:
            result = self._run(call)
        except PoolError as error:
            # An exception of the job leaves the worker intact.
            if not isinstance(error, JobError):
                self._clear(brief)
            # If the fork server was closed, running calls see their worker end.
            if isinstance(error, WorkerLostError) and self._fork_server.closed:
                error = PoolClosedError("the pool was closed")
            # The traceback would keep the call alive.
            call.future.set_exception(error.with_traceback(None))
        else:
            call.future.set_result(result)
        worker = self._workers.get(brief)
        if brief and worker is not None and worker.calls >= call.trust.max_calls:
            self._clear(brief)
        if brief in self._workers and self._workers[brief] is None:
            # Ahead of the next call; if this fails, that call reports it.
            with contextlib.suppress(NotStartedError, WorkerLostError, PoolClosedError):
                self._worker(brief)

    def _run(self, call: _Call) -> Any:
        """Run a call; if its worker ends, run it again on another one."""
        brief = call.trust.brief
        own_ends = 0
        for _ in range(MAX_ATTEMPTS):
            try:
                result = call.run_on(self._worker(brief))
            except (NotStartedError, _KilledError, WorkerDiedError) as error:
                ended = error
            else:
                # The worker may have been killed just after its answer.
                if call.abandoned:
                    self._clear(brief)
                return result
            self._clear(brief)
            if call.abandoned or isinstance(ended, NotStartedError):
                continue
            self._note_death(str(ended))
            own_ends += isinstance(ended, WorkerDiedError)
            if own_ends == MAX_OWN_ENDS:
                raise ended
        raise WorkerLostError(f"{MAX_ATTEMPTS} workers ended, the last one: {ended}")


class _KilledError(Exception):
    """Others ended the worker, so another one may run the call."""


class _Worker:
    """A worker process and the channel to it. Only `kill` is thread-safe."""

    def __init__(self, channel: Channel, kill: Callable[[], None], pid: int) -> None:
        self._channel = channel
        self.kill = kill
        self.calls = 0
        self._clock_id = ((~pid) << 3) | 2  # as in Linux' clock_getcpuclockid()
        self._used_s = 0.0

    def run(self, call: _Call) -> tuple[Frame, bytes]:
        """Run one call and return its RESULT or FAILURE."""
        self.calls += 1
        number = secrets.randbits(64)
        max_bytes = call.trust.max_reply_bytes
        try:
            self._channel.send(Frame.CALL, call.body, START_LIMIT_S, number=number)
            first = self._receive(PREPARING_LIMIT_S, max_bytes)
        except DeadlineExceededError as error:
            # The job has not begun, so it is not the cause.
            raise WorkerLostError(f"preparing the job: {error}") from None
        except (OSError, EOFError) as error:
            raise NotStartedError("the worker ended before the job began") from error
        if first.kind is Frame.KILLED:
            raise _KilledError(first.text)
        if first.number != number or first.kind not in (Frame.STARTED, Frame.FAILURE):
            raise NotStartedError("the worker ended, or sent, before the job began")
        if first.kind is Frame.FAILURE:  # the call cannot be unpickled or prepared
            return first.kind, first.body
        try:
            answer = self._receive(call.deadline_s, max_bytes, call.trust.wall_limit_s)
        except NoFrameError:
            raise WorkerDiedError("the worker sent no valid frame") from None
        except EOFError:
            # The fork server has this end, too, and sends a report before it closes.
            raise _KilledError("ended with its fork server") from None
        if answer.kind is Frame.ENDED:
            raise WorkerDiedError(f"the worker {answer.text}")
        if answer.kind is Frame.KILLED:
            raise _KilledError(answer.text)
        is_answer = answer.kind in (Frame.RESULT, Frame.FAILURE)
        if answer.number != number or not is_answer:
            raise WorkerDiedError("the worker sent a frame that answers no call")
        return answer.kind, answer.body

    def close(self) -> None:
        self.kill()
        self._channel.close()

    def _receive(self, cpu_s: float, max_bytes: int, wall_s: float = 0.0) -> Message:
        """Wait for a frame until the worker has used so much more CPU time."""
        wall_s = wall_s or max(LEAST_WALL_LIMIT_S, WALL_LIMIT_FACTOR * cpu_s)
        end_s = time.monotonic() + wall_s
        limit_s = self._read_clock() + cpu_s
        while (left_s := limit_s - self._read_clock()) > 0:
            wait_s = end_s - time.monotonic()
            if wait_s <= 0:
                raise WorkerLostError(
                    f"the worker used {cpu_s - left_s:.3g} s of CPU time in"
                    f" {wall_s:g} s: it waits, or the machine is too busy"
                )
            # A process of one thread needs at least this wall time for the rest.
            wait_s = min(wait_s, max(left_s, LEAST_WAIT_S))
            with contextlib.suppress(TimeoutError):
                return self._channel.receive(wait_s, max_bytes)
        raise DeadlineExceededError(f"not done after {cpu_s:g} s of CPU time")

    def _read_clock(self) -> float:
        # The clock of a process that has ended cannot be read; its report is coming.
        with contextlib.suppress(OSError):
            self._used_s = time.clock_gettime(self._clock_id)
        return self._used_s


# -- callers without an event loop -----------------------------------------------------


class _BlockingPool:
    """A pool with a blocking `run`, so a coroutine that awaits it is not suspended."""

    def __init__(self, pool: WorkerPool) -> None:
        self.preload = pool.preload
        self._call = pool.call

    async def run(self, *args: Any, **limits: Any) -> Any:
        return self._call(*args, **limits)


def run_blocking(
    job: Callable[[WorkerPool], Coroutine[Any, Any, T]], pool: WorkerPool
) -> T:
    """Return the result of the coroutine `job(pool)`, which awaits only `pool.run`.

    Callers without an event loop, and in threads with a running one, can use it.
    """
    coroutine = job(cast(WorkerPool, _BlockingPool(pool)))
    try:
        # It never suspends, so the first step is also the last one.
        coroutine.send(None)
    except StopIteration as end:
        return cast(T, end.value)
    raise RuntimeError(f"{coroutine} awaits something other than a worker")
