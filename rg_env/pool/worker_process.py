"""One worker process as the pool sees it: calls go in, answers or its end come out."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from rg_env.pool.pool_errors import DeadlineExceeded, WorkerDied
from rg_env.pool.wire import Channel, Frame

START_LIMIT_S = 60.0
MAX_REPORT_CHARS = 8_000


class NotStarted(Exception):
    """The worker ended before the job began, so the call may go to another one."""


class WorkerProcess:
    """A worker process and the channel to it. Only `kill` is thread-safe.

    Args:
        channel: To the worker.
        kill: Ends the worker and its process group, whatever it is doing.

    Attributes:
        missing_layers: Layers of the sandbox that it lacks, to the reasons; known
            when it is ready.
    """

    def __init__(self, channel: Channel, kill: Callable[[], None]) -> None:
        self._channel = channel
        self.kill = kill
        self.missing_layers: Mapping[str, str] = {}

    def wait_until_ready(self) -> None:
        """Wait for the end of preloading and forking.

        Raises:
            TimeoutError, EOFError: The fork server is stuck or gone.
            WorkerDied: The fork server lives and the worker does not.
        """
        kind, body = self._channel.receive(START_LIMIT_S)
        if kind is Frame.DEATH:
            raise WorkerDied(f"the new worker {_read_end(body)}")
        # It has run no job yet, so it can be believed.
        self.missing_layers = json.loads(body)

    def ask(self, call: bytes, deadline_s: float) -> tuple[Frame, bytes]:
        """Run one call and return its RESULT or FAILURE.

        Args:
            call: Pickle of (job, args).
            deadline_s: Counted from the moment the job begins in the worker.

        Raises:
            DeadlineExceeded: The job was not done in time; the worker is of no use.
            WorkerDied: The worker ended under the job.
            NotStarted: The worker ended before the job began.
        """
        try:
            self._channel.send(Frame.CALL, call, START_LIMIT_S)
            kind, body = self._channel.receive(START_LIMIT_S)
        except (OSError, EOFError) as error:
            raise NotStarted from error
        if kind is Frame.DEATH:
            raise NotStarted
        return self._await_answer(deadline_s) if kind is Frame.STARTED else (kind, body)

    def close(self) -> None:
        """Kill it and let go of its socket."""
        self.kill()
        self._channel.close()

    def _await_answer(self, deadline_s: float) -> tuple[Frame, bytes]:
        try:
            kind, body = self._channel.receive(deadline_s)
        except TimeoutError:
            raise DeadlineExceeded(f"not done after {deadline_s:g} s") from None
        except EOFError:
            raise WorkerDied("the worker ended without an answer") from None
        if kind is Frame.DEATH:
            raise WorkerDied(f"the worker {_read_end(body)}")
        return kind, body


def _read_end(body: bytes) -> str:
    return body[:MAX_REPORT_CHARS].decode(errors="replace")
