"""One worker process as the pool sees it: calls go in, answers or its end come out.

A deadline is CPU time that the worker has used, read from the kernel's clock of its
process: on a busy machine a job has as much of it as on an idle one, and no worker can
say otherwise. One that sleeps uses none and is ended by a limit of wall time.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import time
from collections.abc import Callable, Mapping

from rg_env.errors import printable
from rg_env.workers.pool_errors import (
    DeadlineExceededError,
    WorkerDiedError,
    WorkerLostError,
)
from rg_env.workers.wire import MAX_REPLY_BYTES, Channel, Frame, Message, NoFrameError

START_LIMIT_S = 60.0
PREPARING_LIMIT_S = 30.0
"""CPU time from a call's arrival to the beginning of its job."""

LEAST_WALL_LIMIT_S = 60.0
WALL_LIMIT_FACTOR = 20.0
"""Wall time for each second of a deadline. A worker that sleeps is ended by this; one
that gets a twentieth of a core, after all other processes of the machine, is not."""

LEAST_WAIT_S = 0.01
"""Between two readings of the clock."""

MAX_REPORT_CHARS = 8_000


class NotStartedError(Exception):
    """The worker ended before the job began, so the call may go to another one."""


class KilledError(Exception):
    """The worker was ended by others, so the call may go to another one."""


class WorkerHandle:
    """A worker process and the channel to it. Only `kill` is thread-safe.

    Args:
        channel: To the worker.
        kill: Ends the worker and its process group, whatever it is doing.

    Attributes:
        missing_layers: See `harden`; known when it is ready.
    """

    def __init__(self, channel: Channel, kill: Callable[[], None]) -> None:
        self._channel = channel
        self.kill = kill
        self.missing_layers: Mapping[str, str] = {}
        self._clock_id = 0
        self._used_s = 0.0

    def wait_until_ready(self) -> None:
        """Wait for the end of preloading and forking.

        Raises:
            TimeoutError, EOFError: The fork server is stuck or gone.
            NotStartedError: The fork server lives and the worker does not.
        """
        kind, _, body = self._channel.receive(START_LIMIT_S, MAX_REPLY_BYTES)
        if kind in (Frame.KILLED, Frame.ENDED):
            raise NotStartedError(f"the new worker {_read_end(body)}")
        # It has run no job yet, so it can be believed.
        pid, self.missing_layers = json.loads(body)
        self._clock_id = ((~pid) << 3) | 2  # as Linux' clock_getcpuclockid() has it

    def run(
        self, call: bytes, deadline_s: float, max_reply_bytes: int = MAX_REPLY_BYTES
    ) -> tuple[Frame, bytes]:
        """Run one call and return its RESULT or FAILURE.

        Args:
            call: Pickle of (prepare, job, args).
            deadline_s: CPU time from the moment the job begins in the worker.
            max_reply_bytes: Of the answer; one that is longer is the worker's end.

        Raises:
            DeadlineExceededError: The job used its time up; the worker is of no use.
            WorkerDiedError: The job ended it, or it sent something else than an answer.
            WorkerLostError: It stands still, or the job could not be prepared in time.
            KilledError: Others ended it under the job, or while that was prepared.
            NotStartedError: It ended before the job began, or said something else.
        """
        number = secrets.randbits(64)
        try:
            if self._channel.has_unread():
                raise NotStartedError("the worker ended after its last call")
            self._channel.send(Frame.CALL, call, START_LIMIT_S, number)
            first = self._receive(PREPARING_LIMIT_S, max_reply_bytes)
        except DeadlineExceededError as error:
            # The job has not begun, so this says nothing of it.
            raise WorkerLostError(f"preparing the job: {error}") from None
        except (OSError, EOFError) as error:
            raise NotStartedError("the worker ended before the job began") from error
        if first.kind is Frame.KILLED:
            raise KilledError(_read_end(first.body))
        if first.number != number or first.kind not in (Frame.STARTED, Frame.FAILURE):
            raise NotStartedError("the worker ended, or spoke, before the job began")
        if first.kind is Frame.FAILURE:  # it cannot read the call, or prepare it
            return first.kind, first.body
        answer = self._await_answer(deadline_s, max_reply_bytes)
        is_answer = answer.kind in (Frame.RESULT, Frame.FAILURE)
        if answer.number != number or not is_answer:
            raise WorkerDiedError("the worker sent what answers no call")
        return answer.kind, answer.body

    def close(self) -> None:
        """Kill it and let go of its socket."""
        self.kill()
        self._channel.close()

    def _await_answer(self, deadline_s: float, max_reply_bytes: int) -> Message:
        try:
            message = self._receive(deadline_s, max_reply_bytes)
        except NoFrameError:
            raise WorkerDiedError("the worker sent what is no answer") from None
        except EOFError:
            # The fork server holds that end too, and reports before it closes it.
            raise KilledError("ended with its fork server") from None
        if message.kind is Frame.ENDED:
            raise WorkerDiedError(f"the worker {_read_end(message.body)}")
        if message.kind is Frame.KILLED:
            raise KilledError(_read_end(message.body))
        return message

    def _receive(self, cpu_limit_s: float, max_body_bytes: int) -> Message:
        """Wait for a frame until the worker has used so much CPU time from now on.

        Raises:
            DeadlineExceededError: It has.
            WorkerLostError: It has not, and stands still.
            EOFError, OSError: As `Channel.receive`.
        """
        wall_limit_s = max(LEAST_WALL_LIMIT_S, WALL_LIMIT_FACTOR * cpu_limit_s)
        end_s = time.monotonic() + wall_limit_s
        limit_s = self._read_clock() + cpu_limit_s
        while (left_s := limit_s - self._read_clock()) > 0:
            wait_s = end_s - time.monotonic()
            if wait_s <= 0:
                raise WorkerLostError(
                    f"the worker used {cpu_limit_s - left_s:.3g} s of CPU time in"
                    f" {wall_limit_s:g} s: it waits, or the machine is too busy"
                )
            # A process of one thread needs at least as much wall time as is left.
            wait_s = min(wait_s, max(left_s, LEAST_WAIT_S))
            with contextlib.suppress(TimeoutError):
                return self._channel.receive(wait_s, max_body_bytes)
        raise DeadlineExceededError(f"not done after {cpu_limit_s:g} s of CPU time")

    def _read_clock(self) -> float:
        """Return the CPU time that the worker has used since it was forked.

        Of one that has ended it is what was read last: the word of its end is on its
        way.
        """
        with contextlib.suppress(OSError):
            self._used_s = time.clock_gettime(self._clock_id)
        return self._used_s


def _read_end(body: bytes) -> str:
    return printable(body[:MAX_REPORT_CHARS].decode(errors="replace"), keep="\n")
