"""How a command shuts down: by a signal, by an error, or because its work is done.

Ctrl-C, SIGTERM and a closed terminal (SIGHUP) are handled where something must be
undone: in `run` and `Lifetime.run`, whose work they cancel, and in `handling_signals`.
The first signal ends the process in order, within a time limit, and the second one
immediately. Everywhere else, for example during imports, signals keep their default
action and end the process; its child processes notice that and end too.

Mends B2, B15 and B18 of docs/host_defects.md: the framework handles no signal, closes
nothing and never calls `close()`.
"""

from __future__ import annotations

import _thread
import asyncio
import atexit
import contextlib
import dataclasses
import gc
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator
from contextvars import ContextVar
from typing import Any, NoReturn, TypeVar

from rg_env.errors import EXIT_FAILED

logger = logging.getLogger(__name__)

# From a signal to the end of the process, whatever hangs; `docker stop` waits 10 s.
END_WITHIN_S = 9.0

# How long groups in flight may still take to be answered, scored and sent.
IN_FLIGHT_GRACE_S = 2.0

# How long a cancelled task may take to end.
CLOSE_GRACE_S = 2.0

T = TypeVar("T")
ClosingStep = Callable[[], Awaitable[object]]

# The exit status is this plus the number of the signal.
EXIT_SIGNAL = 128

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
SHOW_CURSOR = b"\x1b[?25h"

# Thresholds of Python's garbage collector: new containers, then collections of the
# younger generation. The defaults are (700, 10, 10). In a run without failures, some
# hundred containers become garbage in a minute.
COLLECT_AFTER = (100_000, 50, 10)

_is_inside_lifetime: ContextVar[bool] = ContextVar("is_inside_lifetime", default=False)
_signal_s: float | None = None  # when the first signal came, on the monotonic clock


# -- signals ---------------------------------------------------------------------------


def stop_at_interrupt() -> None:
    """Have SIGINT end this process immediately, wherever no signal is handled.

    Python would raise KeyboardInterrupt in any line. Some libraries swallow it, and
    others do not clean up.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def _release_terminal() -> None:
    """Show the cursor, and replace a closed terminal by /dev/null."""
    for fd in (1, 2):
        try:
            os.write(fd, SHOW_CURSOR if os.isatty(fd) else b"")
        except OSError:
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, fd)
            os.close(null)


def _exit(number: signal.Signals) -> NoReturn:
    raise SystemExit(EXIT_SIGNAL + number)


@contextlib.contextmanager
def handling_signals(
    stop: Callable[[signal.Signals], object] = _exit,
    on_second_signal: Callable[[], object] = lambda: None,
) -> Iterator[None]:
    """Have the first signal call `stop`, and the second one end the process.

    By default, the first one raises `SystemExit` with 128 plus its number, so that
    work without an event loop is undone. The second one calls `on_second_signal` before
    the end, whatever hangs. Signals are only handled in the main thread.

    Example:
        A folder that is removed after a signal:

            with handling_signals(), tempfile.TemporaryDirectory() as folder:
                fill(folder)
    """
    is_stopping = False

    def handle(number: int, frame: object) -> None:
        nonlocal is_stopping
        if is_stopping:
            signal.signal(number, signal.SIG_DFL)
            with contextlib.suppress(Exception):  # the user asked for the end
                on_second_signal()
            os.kill(os.getpid(), number)
        else:
            is_stopping = True
            _release_terminal()
            stop(signal.Signals(number))

    is_main = threading.current_thread() is threading.main_thread()
    before = {number: signal.getsignal(number) for number in SIGNALS if is_main}
    if before.get(signal.SIGHUP) is signal.SIG_IGN:
        del before[signal.SIGHUP]  # `nohup` ignores it, and it must stay ignored
    for number in before:
        signal.signal(number, handle)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler or signal.SIG_DFL)


def _start_deadline(status: int) -> None:
    """End this process with a status after a time limit, whatever hangs."""
    global _signal_s
    _signal_s = time.monotonic()
    # A `threading.Thread` takes a lock, which the interrupted line may hold.
    _thread.start_new_thread(_exit_at_deadline, (status,))
    atexit.register(_exit_without_teardown, status)


def _exit_at_deadline(status: int) -> NoReturn:
    # Other threads may hang: the event loop's, or one that Python would wait for.
    time.sleep(END_WITHIN_S)
    logger.error("the end takes over %g s: ending at once", END_WITHIN_S)
    os._exit(status)


def _exit_without_teardown(status: int) -> NoReturn:
    """End this process after its other `atexit` functions.

    Otherwise Python would destroy all objects, which takes 10 s on a busy machine and
    leaves no thread that could end the process.
    """
    atexit.unregister(_exit_without_teardown)
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # a pipe without a reader
            stream.flush()
    os._exit(status)


def has_begun() -> bool:
    """Return whether a signal ends this process, so that nothing new may begin."""
    return _signal_s is not None


# -- tasks -----------------------------------------------------------------------------


async def cancel_and_wait(tasks: Iterable[Any], grace_s: float = 0.0) -> None:
    """Cancel tasks after a grace period, and wait for their end.

    The period begins with the signal, if one came. Tasks may be None or done.
    """
    running = [t for t in tasks if isinstance(t, asyncio.Future) and not t.done()]
    if not running:
        return
    now_s = time.monotonic()
    left_s = (_signal_s or now_s) + grace_s - now_s
    await asyncio.wait(running, timeout=left_s)
    for task in running:
        task.cancel()
    await asyncio.wait(running, timeout=CLOSE_GRACE_S)


@contextlib.contextmanager
def _rare_garbage_collection() -> Iterator[None]:
    """Avoid long pauses caused by Python's garbage collector.

    With groups in flight, whose lists contain millions of numbers, a collection takes
    20 to 200 ms and finds nothing, because finished groups are freed without it.
    """
    thresholds = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(*COLLECT_AFTER)
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        gc.unfreeze()


@dataclasses.dataclass
class Lifetime:
    """The lifetime of one command, with its exit status.

    Attributes:
        on_second_signal: Called at the second signal, in any state of the process.
        is_limited: Whether the process ends `END_WITHIN_S` after the first signal.
    """

    on_second_signal: Callable[[], object] = lambda: None
    is_limited: bool = True
    exit_status: int = 0
    _is_closed: bool = False

    def fail(self) -> None:
        """Have the process end with status 1, unless a signal ends it."""
        self.exit_status = self.exit_status or EXIT_FAILED

    async def run(
        self,
        work: Coroutine[Any, Any, T],
        close: ClosingStep = lambda: asyncio.sleep(0),
    ) -> T:
        """Run until the work ends, fails or is cancelled by a signal; then close.

        Inside the work of another lifetime, no signal is handled: the outer work is
        cancelled.

        Raises:
            SystemExit: With `exit_status`, if that is not 0.
        """
        loop = asyncio.get_running_loop()
        is_inner = _is_inside_lifetime.get()
        _is_inside_lifetime.set(True)  # the task has a copy of this context
        task = loop.create_task(work)
        _is_inside_lifetime.set(is_inner)

        def cancel(number: signal.Signals) -> None:
            logger.info(
                "%s: shutting down; a second signal ends everything at once",
                number.name,
            )
            task.cancel()

        def stop(number: signal.Signals) -> None:
            self.exit_status = EXIT_SIGNAL + number
            if self.is_limited:
                _start_deadline(self.exit_status)
            loop.call_soon_threadsafe(cancel, number)

        handling = (
            contextlib.nullcontext()
            if is_inner
            else handling_signals(stop, self.on_second_signal)
        )
        with _rare_garbage_collection(), handling:
            try:
                await task
            except asyncio.CancelledError:
                # Without a status, the caller has cancelled it, and not a signal.
                if not self.exit_status:
                    raise
            finally:
                closing = asyncio.ensure_future(close())
                try:
                    await asyncio.shield(closing)
                finally:  # closing goes on after a second cancellation
                    await asyncio.wait([closing])
        if self.exit_status:
            raise SystemExit(self.exit_status)
        return task.result()

    async def close(self, *steps: ClosingStep) -> None:
        """Run all closing steps in order, even if one fails; may be called twice.

        The error of the last step that failed is raised.
        """
        if self._is_closed:
            return
        self._is_closed = True
        async with contextlib.AsyncExitStack() as last_to_first:
            for step in reversed(steps):
                last_to_first.push_async_callback(step)


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine as `asyncio.run` does; a signal cancels it, see `Lifetime.run`.

    Raises:
        SystemExit: A signal came; the status is 128 plus its number.
    """
    return asyncio.run(Lifetime().run(work))
