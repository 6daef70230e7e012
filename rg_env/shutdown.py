"""How a command shuts down: by a signal, by an error, or because its work is done.

Ctrl-C, SIGTERM and a closed terminal (SIGHUP) are handled where something must be
undone: in `run` and `Lifetime.run`, whose work they cancel, and in `handling_signals`.
The first one ends the process in order within a time limit, a second one at once.
Everywhere else, for example during imports, they keep their default action and end the
process immediately; its child processes notice that and end too.

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

# Groups in flight get it at the end to be answered, scored and sent.
IN_FLIGHT_GRACE_S = 2.0

# A cancelled task gets it to end.
CLOSE_GRACE_S = 2.0

T = TypeVar("T")
ClosingStep = Callable[[], Awaitable[object]]

# Added to a signal's number it is the exit status.
EXIT_SIGNAL = 128

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
SHOW_CURSOR = b"\x1b[?25h"

# Python's own are (700, 10, 10): new containers, and younger generations' turns. In a
# run that goes well some hundred a minute are garbage.
COLLECT_AFTER = (100_000, 50, 10)

_is_heard: ContextVar[bool] = ContextVar("is_heard", default=False)
_signal_s: float | None = None  # when the first signal came, on the monotonic clock


# -- signals ---------------------------------------------------------------------------


def stop_at_interrupt() -> None:
    """Have SIGINT end this process at once, wherever no signal is handled.

    Python would raise KeyboardInterrupt in whatever line it comes, which some libraries
    swallow, and others are left half done by.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def _let_go_of_terminal() -> None:
    """Show the cursor; go on without a terminal that is closed."""
    for fd in (1, 2):
        try:
            os.write(fd, SHOW_CURSOR if os.isatty(fd) else b"")
        except OSError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, fd)
            os.close(nowhere)


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
    the end, whatever hangs. In another thread than the main one, no signal is handled.

    For example, a folder that is gone after a signal:

        with handling_signals(), tempfile.TemporaryDirectory() as folder:
            fill(folder)
    """
    has_come = False

    def hear(number: int, frame: object) -> None:
        nonlocal has_come
        if has_come:
            signal.signal(number, signal.SIG_DFL)
            with contextlib.suppress(Exception):  # the user asked for the end
                on_second_signal()
            os.kill(os.getpid(), number)
        else:
            has_come = True
            _let_go_of_terminal()
            stop(signal.Signals(number))

    is_main = threading.current_thread() is threading.main_thread()
    before = {number: signal.getsignal(number) for number in SIGNALS if is_main}
    if before.get(signal.SIGHUP) is signal.SIG_IGN:
        del before[signal.SIGHUP]  # `nohup` has it ignored, and so it stays
    for number in before:
        signal.signal(number, hear)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler or signal.SIG_DFL)


def _begin(status: int) -> None:
    """Begin the time after which this process ends, with a status, whatever hangs."""
    global _signal_s
    _signal_s = time.monotonic()
    # A `threading.Thread` takes a lock, which the interrupted line may hold.
    _thread.start_new_thread(_give_up, (status,))
    atexit.register(_leave, status)


def _give_up(status: int) -> NoReturn:
    # Other threads may hang: the event loop's, or one that Python would wait for.
    time.sleep(END_WITHIN_S)
    logger.error("the end takes over %g s: ending at once", END_WITHIN_S)
    os._exit(status)


def _leave(status: int) -> NoReturn:
    """End this process after its other `atexit` functions.

    Python would take all objects apart, for 10 s on a busy machine, without a thread
    that could end it.
    """
    atexit.unregister(_leave)
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
    """Cancel tasks after a grace, and wait for their end; some may be None or over.

    After a signal, the grace counts from it.
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
def _collector_spared() -> Iterator[None]:
    """Avoid long pauses caused by Python's garbage collector.

    Collecting among groups in flight, whose lists contain millions of numbers, takes 20
    to 200 ms and finds nothing, because finished groups are freed without it.
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
    """From the beginning to the end of one command, with its exit status.

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
        """Run until the work ends, fails or a signal cancels it; then close.

        Inside the work of another one no signal is heard: the outer work is cancelled.

        Raises:
            SystemExit: With `exit_status`, if that is not 0.
        """
        loop = asyncio.get_running_loop()
        is_inner = _is_heard.get()
        _is_heard.set(True)  # the work keeps this value
        task = loop.create_task(work)
        _is_heard.set(is_inner)

        def cancel(number: signal.Signals) -> None:
            text = "%s: shutting down; a second signal ends everything at once"
            logger.info(text, number.name)
            task.cancel()

        def stop(number: signal.Signals) -> None:
            self.exit_status = EXIT_SIGNAL + number
            if self.is_limited:
                _begin(self.exit_status)
            loop.call_soon_threadsafe(cancel, number)

        handling = handling_signals(stop, self.on_second_signal)
        with _collector_spared(), contextlib.nullcontext() if is_inner else handling:
            try:
                await task
            except asyncio.CancelledError:
                # A signal has set the status; any other cancellation is of our caller.
                if not self.exit_status:
                    raise
            finally:
                closing = asyncio.ensure_future(close())
                try:
                    await asyncio.shield(closing)
                finally:  # a second cancellation ends nothing half
                    await asyncio.wait([closing])
        if self.exit_status:
            raise SystemExit(self.exit_status)
        return task.result()

    async def close(self, *steps: ClosingStep) -> None:
        """Run the closing steps in order, also if one fails; at a second call, nothing.

        It raises the error of the last step that failed.
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
