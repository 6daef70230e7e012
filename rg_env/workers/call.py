"""One call of a job in a worker process: its limits, its result and its errors.

    PoolError
    ├── DeadlineExceededError  the job used up its CPU time; its worker was killed
    ├── WorkerDiedError        the job ended two workers, or made them send an invalid
    │                          reply
    ├── RemoteError            an exception in another process, as text
    │   ├── JobError           the job raised it
    │   └── PreloadError       preloading failed; this is a WorkerLostError, too
    ├── WorkerLostError        workers were killed, hung or could not be started
    └── PoolClosedError        the pool was closed before the call was done

DeadlineExceededError, WorkerDiedError and JobError are caused by the job, the others by
the machine. A caller that scores model text may count the first two against the text,
never the others. KilledError and NotStartedError are not PoolErrors: the pool catches
them and tries the call again.

A deadline is CPU time, read from the kernel's clock of the worker process. So a job has
the same time on a busy machine as on an idle one, and a worker cannot forge it. A
worker that sleeps uses no CPU time; a limit of wall time ends it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import pickle
import secrets
import threading
import time
import typing
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import msgspec

from rg_env.errors import RunError, visible
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

# A new worker costs 20 ms of CPU time, for the fork and for repeated imports. Spread
# over this number of groups, that is 5 % of the time of a group.
MAX_UNTRUSTED_CALLS = 24
# CPU time between the arrival of a call and the beginning of its job.
PREPARING_LIMIT_S = 30.0
# A worker that has not read its call after this time hangs.
SEND_LIMIT_S = 60.0
MIN_WALL_LIMIT_S = 60.0
# Wall time for each second of a deadline. It ends a worker that sleeps, but not one
# that gets a twentieth of a core on a busy machine.
WALL_LIMIT_FACTOR = 20.0
# The shortest time between two reads of a worker's CPU time.
MIN_WAIT_S = 0.01


class PoolError(RunError):
    """Base class of all errors of a pool."""

    about = "work in a worker process failed"


class DeadlineExceededError(PoolError):
    """The job used more CPU time than its deadline."""


class WorkerDiedError(PoolError):
    """The job ended its worker, or made it send an invalid reply.

    The pool then runs the call on a second worker, and raises this error if that fails
    in the same way.
    """


class WorkerLostError(PoolError):
    """No worker returned a result, and the job is not known to be the cause."""


class RemoteError(PoolError):
    """An exception in another process, perhaps a SystemExit or a MemoryError.

    It has only text of bounded length: class name, message and traceback (`detail`). No
    object of a job is rebuilt in the caller's process.
    """

    def __init__(self, class_name: str, message: str, detail: str = "") -> None:
        super().__init__(class_name, message, detail)
        self.class_name = class_name
        self.message = message
        self.detail = detail

    def __str__(self) -> str:
        return ": ".join(filter(None, (self.class_name, self.message)))

    def is_a(self, cls: type[BaseException]) -> bool:
        """Return whether it was of this class, and not of a subclass."""
        return self.class_name == cls.__name__


class JobError(RemoteError):
    """The job, or the preparation of its call, raised an exception."""


class PreloadError(RemoteError, WorkerLostError):
    """Preloading failed, so there is no worker.

    If nothing was raised, `class_name` is "", and `message` says that the process that
    starts workers ended or took too long.
    """


class PoolClosedError(PoolError):
    """The pool is closed, or was closed before the call was done."""


class KilledError(Exception):
    """Something other than the job ended the worker; another may run the call."""


class NotStartedError(Exception):
    """The worker ended before the job began; another may run the call."""


@dataclasses.dataclass(frozen=True)
class CallOptions:
    """The limits of a call, and how its worker is used.

    Attributes:
        max_reply_bytes: The greatest length of the reply.
        read: Converts the value in the reply, which has the job's annotated return
            type, to the result; raises ValueError if the job cannot return this value.
        untrusted: Whether the job might take over its worker. That worker then runs
            only untrusted calls, and is replaced after `max_untrusted_calls`.
        max_untrusted_calls: The number of untrusted calls that one worker runs.
        prepare: A function that the worker calls before the job and its deadline begin,
            to load and keep its data; pickled. It must not depend on untrusted values.
        wall_limit_s: Wall time of the job; 0 for a multiple of its deadline.
    """

    max_reply_bytes: int = MAX_REPLY_BYTES
    read: Callable[[Any], Any] | None = None
    untrusted: bool = False
    max_untrusted_calls: int = MAX_UNTRUSTED_CALLS
    prepare: Callable[[], object] | None = None
    wall_limit_s: float = 0.0


DEFAULT_OPTIONS = CallOptions()


@functools.cache
def _return_type(job: Callable[..., Any]) -> Any:
    """Return the annotated return type of a job."""
    return typing.get_type_hints(job).get("return", Any)


class Call:
    """A pickled job, its deadline, its future and the worker that runs it.

    Attributes:
        affinity: Calls with the same affinity need the same data in their worker.
        abandoned: Whether the caller no longer waits for the result.
    """

    def __init__(
        self,
        job: Callable[..., Any],
        args: tuple[Any, ...],
        deadline_s: float,
        options: CallOptions,
    ) -> None:
        self.options = options
        self.deadline_s = deadline_s
        self.affinity = (job, options.untrusted)
        self.future: Future[Any] = Future()
        self.abandoned = False
        # In the caller's thread, so that the caller gets errors of pickling.
        payload = (options.prepare, job, args, options.max_reply_bytes)
        self.body = pickle.dumps(payload, pickle.HIGHEST_PROTOCOL)
        if len(self.body) > MAX_BODY_BYTES:
            raise ValueError(f"the call takes {len(self.body)} bytes")
        self._job = job
        self._lock = threading.Lock()
        self._worker: Worker | None = None

    def run_on(self, worker: Worker) -> Any:
        """Run the job and return its result."""
        # `abandon` is either seen here, or it finds the worker to kill.
        with self._lock:
            if self.abandoned:
                raise WorkerLostError("the caller has left")
            self._worker = worker
        try:
            reply = worker.run(self)
        finally:
            with self._lock:
                self._worker = None
        return self._read(reply)

    def abandon(self) -> None:
        """Stop the call, because its caller no longer waits for it."""
        if self.future.done() or self.future.cancel():
            return
        with self._lock:
            self.abandoned = True
            if self._worker is not None:
                self._worker.kill()

    def _read(self, reply: Message) -> Any:
        """Return the result in an untrusted reply, or raise its error."""
        try:
            value = unpack(reply.body)
            if reply.kind is Frame.FAILURE:
                name, message, detail = msgspec.convert(value, tuple[str, str, str])
            else:
                result = msgspec.convert(value, _return_type(self._job))
                return self.options.read(result) if self.options.read else result
        except (TypeError, ValueError) as error:
            reason = visible(str(error)[:MAX_MESSAGE_CHARS])
            raise WorkerDiedError(
                f"the worker sent an invalid reply: {reason}"
            ) from None
        raise JobError(
            visible(name[:MAX_MESSAGE_CHARS]),
            visible(message[:MAX_MESSAGE_CHARS]),
            visible(detail[-MAX_DETAIL_CHARS:]),
        )


class Worker:
    """A worker process and the channel to it. Only `kill` is thread-safe."""

    def __init__(self, channel: Channel, kill: Callable[[], None], pid: int) -> None:
        self._channel = channel
        self.kill = kill
        self.calls = 0
        self._clock_id = ((~pid) << 3) | 2  # as in Linux' clock_getcpuclockid()
        self._used_s = 0.0

    def run(self, call: Call) -> Message:
        """Run one call and return its reply, a RESULT or a FAILURE."""
        self.calls += 1
        call_id = secrets.randbits(64)
        first = self._start(call, call_id)
        if first.kind is Frame.FAILURE:
            return first
        options = call.options
        try:
            reply = self._receive(
                call.deadline_s, options.max_reply_bytes, options.wall_limit_s
            )
        except NoFrameError:
            raise WorkerDiedError("the worker sent no valid frame") from None
        except EOFError:
            # The fork server has this socket, too, and sends a report before it closes.
            raise KilledError("ended with its fork server") from None
        if reply.kind is Frame.ENDED:
            raise WorkerDiedError(f"the worker {reply.text}")
        if reply.call_id != call_id or reply.kind not in (Frame.RESULT, Frame.FAILURE):
            raise WorkerDiedError("the worker sent a frame that is not a reply")
        return reply

    def _start(self, call: Call, call_id: int) -> Message:
        """Send a call, and return STARTED when its job begins.

        A FAILURE is returned if the call cannot be unpickled or prepared.
        """
        try:
            self._channel.send(Frame.CALL, call.body, SEND_LIMIT_S, call_id)
            first = self._receive(PREPARING_LIMIT_S, call.options.max_reply_bytes)
        except DeadlineExceededError as error:
            # The job has not begun, so it is not the cause.
            raise WorkerLostError(f"preparing the job: {error}") from None
        except (OSError, EOFError) as error:
            raise NotStartedError("the worker ended before the job began") from error
        if first.call_id != call_id or first.kind not in (Frame.STARTED, Frame.FAILURE):
            raise NotStartedError("the worker ended or wrote before the job began")
        return first

    def close(self) -> None:
        """Kill the process and close the channel."""
        self.kill()
        self._channel.close()

    def _receive(self, cpu_s: float, max_bytes: int, wall_s: float = 0.0) -> Message:
        """Wait for a frame until the worker has used `cpu_s` more CPU time.

        Raises:
            DeadlineExceededError: The worker has used up this time.
            WorkerLostError: `wall_s` have passed; 0 stands for a multiple of `cpu_s`.
            KilledError: Something other than the job ended the worker.
        """
        wall_s = wall_s or max(MIN_WALL_LIMIT_S, WALL_LIMIT_FACTOR * cpu_s)
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
            wait_s = min(wait_s, max(left_s, MIN_WAIT_S))
            with contextlib.suppress(TimeoutError):
                message = self._channel.receive(wait_s, max_bytes)
                if message.kind is Frame.KILLED:
                    raise KilledError(message.text)
                return message
        raise DeadlineExceededError(f"not done after {cpu_s:g} s of CPU time")

    def _read_clock(self) -> float:
        # The clock of a process that has ended cannot be read; its report is coming.
        with contextlib.suppress(OSError):
            self._used_s = time.clock_gettime(self._clock_id)
        return self._used_s
