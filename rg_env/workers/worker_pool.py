"""Run calls in worker processes that can be killed.

`WorkerPool` hands each call to one of a fixed number of worker processes. A call
that uses up the CPU time of its deadline fails alone; its worker is replaced within
milliseconds by a fork of a process that has everything imported (see
fork_server_program.py). A call whose worker ends is run again on another one: it fails
as `WorkerDiedError` only where it ends that one too, and as `WorkerLostError` where
others, such as a kernel without memory, end one after the other.

A deadline is CPU time that the worker has used, read from the kernel's clock of its
process: on a busy machine a job has as much of it as on an idle one, and no worker can
say otherwise. One that sleeps uses none and is ended by a limit of wall time.

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
# Where nobody says how many; one is kept free for scoring.
FEWEST_WORKERS, MOST_WORKERS = 2, 8
# Workers that a call gets where others end them.
MAX_ATTEMPTS = 5
# Workers that it gets where its job ends them: the first may have been spoilt.
MAX_OWN_ENDS = 2
# A fork and what is loaded again after it take 20 ms of CPU time: by so many groups a
# twentieth of what a group takes in all.
BRIEF_CALLS = 24
# CPU time from a call's arrival to the beginning of its job.
PREPARING_LIMIT_S = 30.0
LEAST_WALL_LIMIT_S = 60.0
# Wall time for each second of a deadline. A worker that sleeps is ended by this; one
# that gets a twentieth of a core, after all other processes of the machine, is not.
WALL_LIMIT_FACTOR = 20.0
# Between two readings of the clock.
LEAST_WAIT_S = 0.01
JOIN_LIMIT_S = 1.0

_open_pools: set[WorkerPool] = set()


os.register_at_fork(after_in_child=lambda: [*map(WorkerPool._begin, _open_pools)])


def default_pool_size() -> int:
    """Return half the number of cores, within the bounds."""
    return max(FEWEST_WORKERS, min(MOST_WORKERS, (os.cpu_count() or 1) // 2))


@dataclasses.dataclass(frozen=True)
class Trust:
    """How far the answer of a worker is trusted.

    Attributes:
        read: Makes the result of what was answered, which has the type that the job
            is annotated with; raises ValueError if the call cannot return that.
        brief: Whether the call may take over its worker, which then does no other
            calls and is replaced after `max_calls` of them.
        prepare: Called in the worker before the job begins and its deadline runs, to
            load and keep what the job needs; pickled. It must not depend on what is
            not to be believed.
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
    """A fixed number of worker processes; calls beyond it wait, first come first.

    Nothing is started before the first call, which therefore waits for the preloading.
    So it is in a forked child too, whose calls get workers of the child's own. Calls
    from before the fork are answered in the parent alone.

    Args:
        num_workers: How many calls run at once; positive, or None for half the cores.
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
        """Begin without workers and calls; a forked child has none of its parent's."""
        self._fork_server = ForkServer(self.preload, self._memory_limit_bytes)
        self._close_lock = threading.RLock()  # a refused call's callback may close too
        self._lock = threading.Lock()  # guards all below, and _closed
        self._waiting: OrderedDict[Future[Any], _Call] = OrderedDict()
        self._threads = [
            _Thread(self._fork_server, self._next_call, self._note_death)
            for _ in range(self._num_workers)
        ]
        # Last in, first out: the worker that ran last has the warmest caches.
        self._idle = list(self._threads)

    @property
    def sandbox_layers(self) -> tuple[str, ...]:
        """The layers (hardening.py) that protect from workers; () before the first."""
        missing = self._fork_server.missing_layers
        if missing is None:
            return ()
        of_the_kernel = [x for x in hardening.UNPROTECTED if x not in missing]
        return ("limits", *of_the_kernel, *(["audit"] if missing else []))

    def submit(
        self,
        job: Callable[..., T],
        /,
        *args: Any,
        deadline_s: float,
        trust: Trust = BELIEVED,
    ) -> Future[T]:
        """As `run`, without waiting for the result; thread-safe."""
        return self._enqueue(_Call(job, args, deadline_s, trust)).future

    async def run(
        self,
        job: Callable[..., T],
        /,
        *args: Any,
        deadline_s: float,
        trust: Trust = BELIEVED,
    ) -> T:
        """Return the result of a job; to cancel it kills the call.

        wire.py says what a result may hold.

        Args:
            job: A function that workers can import, so not one of `__main__`.
            *args: Its arguments; pickled.
            deadline_s: CPU time that the worker may use from the job's beginning on.
            trust: How far what the worker answers is believed.

        Raises:
            PoolError: See pool_errors.py.
            ValueError: The call is too long.
            pickle.PicklingError, TypeError, AttributeError: It does not pickle.
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
        """As `run`, for callers without an event loop; thread-safe."""
        call = self._enqueue(_Call(job, args, deadline_s, trust))
        try:
            return cast(T, call.future.result())
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
            for thread in self._threads:
                thread.close()
            _open_pools.discard(self)

    def _enqueue(self, call: _Call) -> _Call:
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

    def _idle_for(self, call: _Call) -> _Thread:
        """Take the idle worker that ran the same kind last, or else the newest."""
        # One that does all jobs would build what each needs: time and memory.
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
        """Count a worker that ended under a call, and say it ever more seldom."""
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


# -- one call, the thread that feeds it to workers, and a worker -----------------------


@functools.cache
def _returns(job: Callable[..., Any]) -> Any:
    """Return the type that a job is annotated with."""
    return typing.get_type_hints(job).get("return", Any)


class _Call:
    """A pickled job, its deadline and its future; knows the worker that runs it."""

    def __init__(
        self,
        job: Callable[..., Any],
        args: tuple[Any, ...],
        deadline_s: float,
        trust: Trust,
    ) -> None:
        self.trust, self.deadline_s = trust, deadline_s
        self.kind = (job, trust.brief)
        self.future: Future[Any] = Future()
        self.abandoned = False
        # In the thread of the caller, who gets the error of what does not pickle.
        order = (trust.prepare, job, args, trust.max_reply_bytes)
        self.body = pickle.dumps(order, pickle.HIGHEST_PROTOCOL)
        if len(self.body) > MAX_BODY_BYTES:
            raise ValueError(f"the call takes {len(self.body)} bytes")
        self._lock = threading.Lock()
        self._worker: _Worker | None = None

    def run_on(self, worker: _Worker) -> Any:
        # So that `abandon` is either seen here or finds the worker to kill.
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
        """Turn an answer into a value; the boundary to what a worker made up."""
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
                f"the worker answered what cannot be: {reason}"
            ) from None
        raise JobError(
            _printable(name[:MAX_MESSAGE_CHARS]),
            _printable(message[:MAX_MESSAGE_CHARS]),
            _printable(detail[-MAX_DETAIL_CHARS:]),
        )


class _Thread:
    """Runs the calls it is given, one at a time, on worker processes of its own.

    One worker process serves the brief calls and another one all other calls. Each is
    forked for its first call. `next_call` is asked after each call; None sends the
    thread to wait.
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
        # A daemon: Python joins all other threads before atexit closes the pool.
        self._thread = threading.Thread(
            target=self._live, name="worker-thread", daemon=True
        )

    def take(self, call: _Call) -> None:
        """Serve this call next; for a thread that waits, one caller at a time."""
        self.last_kind = call.kind
        self._inbox.put(call)
        if self._thread.ident is None:
            self._thread.start()

    def close(self) -> None:
        """End the thread, when the fork server is closed."""
        self._inbox.put(None)
        # A callback of the last future may be what closes the pool.
        if self._thread.ident not in (None, threading.get_ident()):
            self._thread.join(JOIN_LIMIT_S)

    def _live(self) -> None:
        while (call := self._inbox.get()) is not None:
            while call is not None:
                if call.future.set_running_or_notify_cancel():
                    self._answer(call)
                # Not kept while the thread waits: it holds the arguments of the job.
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
            # What was raised in a worker leaves it as it was.
            if not isinstance(error, JobError):
                self._clear(brief)
            # The end of the fork server looks like a loss to the calls under way.
            if isinstance(error, WorkerLostError) and self._fork_server.closed:
                error = PoolClosedError("the pool was closed")
            # The frames of this thread would keep the call alive with its error.
            call.future.set_exception(error.with_traceback(None))
        else:
            call.future.set_result(result)
        worker = self._workers.get(brief)
        if brief and worker is not None and worker.calls >= call.trust.max_calls:
            self._clear(brief)
        if brief in self._workers and self._workers[brief] is None:
            # Before the next call needs it; that call will say if it fails.
            with contextlib.suppress(NotStartedError, WorkerLostError, PoolClosedError):
                self._worker(brief)

    def _run(self, call: _Call) -> Any:
        """Run it on the worker; where that ends under it, on another."""
        brief, own_ends = call.trust.brief, 0
        for _ in range(MAX_ATTEMPTS):
            try:
                result = call.run_on(self._worker(brief))
            except (NotStartedError, _KilledError, WorkerDiedError) as error:
                ended = error
            else:
                # It may have been killed just after its answer.
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
        raise WorkerLostError(f"{MAX_ATTEMPTS} workers ended, the last one so: {ended}")


class _KilledError(Exception):
    """The worker was ended by others, so the call may go to another one."""


class _Worker:
    """A worker process and the channel to it. Only `kill` is thread-safe."""

    def __init__(self, channel: Channel, kill: Callable[[], None], pid: int) -> None:
        self._channel = channel
        self.kill = kill
        self.calls = 0
        self._clock_id = ((~pid) << 3) | 2  # as Linux' clock_getcpuclockid() has it
        self._used_s = 0.0

    def run(self, call: _Call) -> tuple[Frame, bytes]:
        """Run one call and return its RESULT or FAILURE."""
        self.calls += 1
        number, max_bytes = secrets.randbits(64), call.trust.max_reply_bytes
        try:
            self._channel.send(Frame.CALL, call.body, START_LIMIT_S, number)
            first = self._receive(PREPARING_LIMIT_S, max_bytes)
        except DeadlineExceededError as error:
            # The job has not begun, so this says nothing of it.
            raise WorkerLostError(f"preparing the job: {error}") from None
        except (OSError, EOFError) as error:
            raise NotStartedError("the worker ended before the job began") from error
        if first.kind is Frame.KILLED:
            raise _KilledError(first.text)
        if first.number != number or first.kind not in (Frame.STARTED, Frame.FAILURE):
            raise NotStartedError("the worker ended, or spoke, before the job began")
        if first.kind is Frame.FAILURE:  # it cannot read the call, or prepare it
            return first.kind, first.body
        try:
            answer = self._receive(call.deadline_s, max_bytes, call.trust.wall_limit_s)
        except NoFrameError:
            raise WorkerDiedError("the worker sent what is no answer") from None
        except EOFError:
            # The fork server holds that end too, and reports before it closes it.
            raise _KilledError("ended with its fork server") from None
        if answer.kind is Frame.ENDED:
            raise WorkerDiedError(f"the worker {answer.text}")
        if answer.kind is Frame.KILLED:
            raise _KilledError(answer.text)
        is_answer = answer.kind in (Frame.RESULT, Frame.FAILURE)
        if answer.number != number or not is_answer:
            raise WorkerDiedError("the worker sent what answers no call")
        return answer.kind, answer.body

    def close(self) -> None:
        self.kill()
        self._channel.close()

    def _receive(self, cpu_s: float, max_bytes: int, wall_s: float = 0.0) -> Message:
        """Wait for a frame until the worker has used so much CPU time from now on."""
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
            # A process of one thread needs at least as much wall time as is left.
            wait_s = min(wait_s, max(left_s, LEAST_WAIT_S))
            with contextlib.suppress(TimeoutError):
                return self._channel.receive(wait_s, max_bytes)
        raise DeadlineExceededError(f"not done after {cpu_s:g} s of CPU time")

    def _read_clock(self) -> float:
        # Of one that has ended it is what was read last: the word of its end is coming.
        with contextlib.suppress(OSError):
            self._used_s = time.clock_gettime(self._clock_id)
        return self._used_s


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

    `job` makes the coroutine of the pool that it is given.
    """
    # So code for an event loop is of use to callers without one, and in threads that
    # already run one.
    coroutine = job(cast(WorkerPool, _BlockingPool(pool)))
    try:
        # It never suspends, so the first step is also its last.
        coroutine.send(None)
    except StopIteration as end:
        return cast(T, end.value)
    raise RuntimeError(f"{coroutine} waits for something else than a worker")
