"""One worker process as the pool sees it: calls go in, answers or its end come out."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Mapping

from rg_env.workers.pool_errors import DeadlineExceeded, WorkerDied, printable
from rg_env.workers.wire import MAX_REPLY_BYTES, Channel, Frame, Message

START_LIMIT_S = 60.0
WARM_LIMIT_S = 10.0
"""A worker that has answered before has nothing to do but to begin."""
MAX_REPORT_CHARS = 8_000


class NotStarted(Exception):
    """The worker ended before the job began, so the call may go to another one."""


class WorkerProcess:
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
        self._has_answered = False

    def wait_until_ready(self) -> None:
        """Wait for the end of preloading and forking.

        Raises:
            TimeoutError, EOFError: The fork server is stuck or gone.
            WorkerDied: The fork server lives and the worker does not.
        """
        kind, _, body = self._channel.receive(START_LIMIT_S, MAX_REPLY_BYTES)
        if kind is Frame.DEATH:
            raise WorkerDied(f"the new worker {_read_end(body)}")
        # It has run no job yet, so it can be believed.
        self.missing_layers = json.loads(body)

    def run(
        self, call: bytes, deadline_s: float, max_reply_bytes: int = MAX_REPLY_BYTES
    ) -> tuple[Frame, bytes]:
        """Run one call and return its RESULT or FAILURE.

        Args:
            call: Pickle of (job, args).
            deadline_s: Counted from the moment the job begins in the worker.
            max_reply_bytes: Of the answer; one that is longer is the worker's end.

        Raises:
            DeadlineExceeded: The job was not done in time; the worker is of no use.
            WorkerDied: It ended under the job, or sent something else than its answer.
            NotStarted: It ended before the job began, or had something else to say.
        """
        number = secrets.randbits(64)
        patience_s = WARM_LIMIT_S if self._has_answered else START_LIMIT_S
        try:
            if self._channel.has_unread():
                raise NotStarted
            self._channel.send(Frame.CALL, call, START_LIMIT_S, number)
            first = self._channel.receive(patience_s, max_reply_bytes)
        except (OSError, EOFError) as error:
            raise NotStarted from error
        if first.number != number or first.kind not in (Frame.STARTED, Frame.FAILURE):
            raise NotStarted
        if first.kind is Frame.FAILURE:  # it cannot read the call
            return first.kind, first.body
        answer = self._await_answer(deadline_s, max_reply_bytes)
        is_answer = answer.kind in (Frame.RESULT, Frame.FAILURE)
        if answer.number != number or not is_answer:
            raise WorkerDied("the worker sent what answers no call")
        self._has_answered = True
        return answer.kind, answer.body

    def close(self) -> None:
        """Kill it and let go of its socket."""
        self.kill()
        self._channel.close()

    def _await_answer(self, deadline_s: float, max_reply_bytes: int) -> Message:
        try:
            message = self._channel.receive(deadline_s, max_reply_bytes)
        except TimeoutError:
            raise DeadlineExceeded(f"not done after {deadline_s:g} s") from None
        except EOFError:
            raise WorkerDied("the worker ended without an answer") from None
        if message.kind is Frame.DEATH:
            raise WorkerDied(f"the worker {_read_end(message.body)}")
        return message


def _read_end(body: bytes) -> str:
    return printable(body[:MAX_REPORT_CHARS].decode(errors="replace"))
