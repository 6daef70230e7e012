"""One worker's lane through the pool: the thread that feeds it and replaces it."""

from __future__ import annotations

import pickle
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from rg_env.pool.fork_server import ForkServer, NotStarted, Worker
from rg_env.pool.pool_errors import (
    DeadlineExceeded,
    JobFailed,
    PoolClosed,
    PoolError,
    WorkerDied,
)
from rg_env.pool.wire import MAX_BODY_BYTES, PROTOCOL, Frame, unpack_result
from rg_env.pool.worker_program import MAX_DETAIL_CHARS, MAX_MESSAGE_CHARS

MAX_DEADLINE_S = 86_400.0
MAX_ATTEMPTS = 2
JOIN_LIMIT_S = 1.0


class Call:
    """A pickled job, its deadline and its future; knows the worker that runs it."""

    def __init__(
        self, job: Callable[..., Any], args: tuple[Any, ...], deadline_s: float
    ) -> None:
        """Check and pickle; raises as `WorkerPool.submit`."""
        self.job = job
        if not 0 < deadline_s <= MAX_DEADLINE_S:
            raise ValueError(f"deadline_s={deadline_s} is not in (0, {MAX_DEADLINE_S}]")
        if getattr(job, "__module__", None) == "__main__":
            raise ValueError(f"{job} is of __main__, which workers do not import")
        self.future: Future[Any] = Future()
        self.abandoned = False
        self._body = pickle.dumps((job, args), PROTOCOL)
        if len(self._body) > MAX_BODY_BYTES:
            raise ValueError(f"the call takes {len(self._body)} bytes")
        self._deadline_s = deadline_s
        self._lock = threading.Lock()
        self._worker: Worker | None = None

    def ask(self, worker: Worker) -> tuple[Frame, bytes]:
        """Run on this worker; raises as `Worker.ask`."""
        with self._lock:
            if self.abandoned:
                raise WorkerDied("the caller has left")
            self._worker = worker
        try:
            return worker.ask(self._body, self._deadline_s)
        finally:
            with self._lock:
                self._worker = None

    def abandon(self) -> None:
        """See that the call takes no one's time now that its caller has left."""
        if self.future.done() or self.future.cancel():
            return
        with self._lock:
            self.abandoned = True
            if self._worker is not None:
                self._worker.kill()


class WorkerThread:
    """Runs the calls it is given on one worker, forked at the first of them.

    Args:
        nursery: Where workers come from.
        next_call: Asked after each call; None sends the lane to wait.
        count: Told the name of each counter that goes up.
    """

    def __init__(
        self,
        nursery: ForkServer,
        next_call: Callable[[WorkerThread], Call | None],
        count: Callable[[str], None],
    ) -> None:
        self._nursery = nursery
        self._next_call = next_call
        self._count = count
        self.last_job: Callable[..., Any] | None = None
        self._worker: Worker | None = None
        self._has_forked = False
        self._inbox: queue.SimpleQueue[Call | None] = queue.SimpleQueue()
        self._thread = threading.Thread(
            target=self._live, name="isolation-lane", daemon=True
        )

    def take(self, call: Call) -> None:
        """Serve this call next; for a lane that waits, one caller at a time."""
        self.last_job = call.job
        self._inbox.put(call)
        if self._thread.ident is None:
            self._thread.start()

    def close(self) -> None:
        """End the thread, when the nursery is closed."""
        self._inbox.put(None)
        started = self._thread.ident is not None
        # A callback of the last future may be what closes the pool.
        if started and self._thread is not threading.current_thread():
            self._thread.join(JOIN_LIMIT_S)

    def _live(self) -> None:
        while self._serve(self._inbox.get()):
            pass
        self._drop_worker()

    def _serve(self, call: Call | None) -> bool:
        """Serve this call and those behind it; False if there was none."""
        if call is None:
            return False
        while call is not None:
            if call.future.set_running_or_notify_cancel():
                self._answer(call)
            call = self._next_call(self)
        return True

    def _answer(self, call: Call) -> None:
        try:
            result = self._ask(call)
        except PoolError as error:
            if isinstance(error, WorkerDied) and self._nursery.closed:
                error = PoolClosed("the pool was closed")
            self._count_error(call, error)
            # The frames of this thread would keep the call alive with its error.
            call.future.set_exception(error.with_traceback(None))
        else:
            call.future.set_result(result)
        if self._has_forked and self._worker is None:
            self._replace_worker()

    def _ask(self, call: Call) -> Any:
        """Ask the worker; if it turns out to have ended before, ask another."""
        for _ in range(MAX_ATTEMPTS):
            worker = self._ensure_worker()
            try:
                answer = call.ask(worker)
            except NotStarted:
                self._drop_worker()
            except PoolError:
                self._drop_worker()
                raise
            else:
                if call.abandoned:
                    self._drop_worker()
                return self._read(*answer)
        raise WorkerDied(f"{MAX_ATTEMPTS} workers ended before the job began")

    def _read(self, kind: Frame, body: bytes) -> Any:
        """Turn an answer into a value; the boundary to what a worker made up."""
        try:
            value = unpack_result(body)
            if kind is Frame.FAILURE:
                name, message, detail = map(str, value)
        except Exception as error:  # noqa: BLE001 - hostile bytes raise any kind
            self._drop_worker()
            reason = str(error)[:MAX_MESSAGE_CHARS]
            raise JobFailed("UnreadableResult", reason) from None
        if kind is not Frame.FAILURE:
            return value
        raise JobFailed(
            name[:MAX_MESSAGE_CHARS],
            message[:MAX_MESSAGE_CHARS],
            detail[-MAX_DETAIL_CHARS:],
        )

    def _count_error(self, call: Call, error: PoolError) -> None:
        if call.abandoned:
            self._count("cancelled")
        elif isinstance(error, JobFailed):
            self._count("failures")
        elif isinstance(error, DeadlineExceeded):
            self._count("timeouts")
        elif isinstance(error, WorkerDied):
            self._count("deaths")

    def _ensure_worker(self) -> Worker:
        if self._worker is None:
            self._worker = self._nursery.fork()
            if self._has_forked:
                self._count("restarts")
            self._has_forked = True
        return self._worker

    def _replace_worker(self) -> None:
        """Fork before the next call needs it; that call will say if it fails."""
        try:
            self._ensure_worker()
        except (WorkerDied, PoolClosed):
            return

    def _drop_worker(self) -> None:
        if self._worker is not None:
            self._worker.close()
            self._worker = None
