"""How a command ends: by a signal, by an error, or because its work is done.

Ctrl-C, SIGTERM and a closed terminal (SIGHUP) are handled where something must be
undone: in the event loop of a command, whose work they cancel, and in `undoing`. The
first one ends it in order, a second one at once. Everywhere else, for example during
imports, they keep their default action and end the process immediately; its child
processes notice that and end too.

Mends B2, B15 and B18 of docs/host_defects.md: the framework handles no signal, closes
nothing and never calls `close()`.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import gc
import logging
import os
import signal
import sys
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator
from contextvars import ContextVar
from typing import Any, NoReturn, TypeVar

from rg_env.errors import EXIT_FAILED

logger = logging.getLogger(__name__)

# From a signal to the end of the process, whatever hangs; `docker stop` waits 10 s.
END_WITHIN_S = 9.0

# What groups in flight get at the end to be answered, scored and sent.
IN_FLIGHT_GRACE_S = 2.0

# What a cancelled task gets to end.
CLOSE_GRACE_S = 2.0

T = TypeVar("T")
EndingStep = Callable[[], Awaitable[object]]

# Added to a signal's number it is the exit status.
EXIT_SIGNAL = 128

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
SHOW_CURSOR = b"\x1b[?25h"

# Python's own are (700, 10, 10): new containers, and younger generations' turns. In a
# run that goes well some hundred a minute are garbage.
COLLECT_AFTER = (100_000, 50, 10)

_is_heard: ContextVar[bool] = ContextVar("is_heard", default=False)


# -- signals ---------------------------------------------------------------------------


def stop_at_interrupt() -> None:
    """Have SIGINT end this process at once, outside of what hears it.

    Python would raise KeyboardInterrupt in whatever line it comes, which some libraries
    swallow, and others are left half done by.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def _heard_here() -> list[signal.Signals]:
    """Return the signals to hear; `nohup` has SIGHUP ignored, and so it stays."""
    if threading.current_thread() is not threading.main_thread():
        return []
    is_nohup = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return [s for s in SIGNALS if not (s == signal.SIGHUP and is_nohup)]


def _let_go_of_terminal() -> None:
    """Show the cursor; go on without a terminal that is closed."""
    for fd in (1, 2):
        try:
            os.write(fd, SHOW_CURSOR if os.isatty(fd) else b"")
        except OSError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, fd)
            os.close(nowhere)


@contextlib.contextmanager
def signals_cancel(
    task: asyncio.Task[Any],
    note: Callable[[signal.Signals], None],
    end_within_s: float | None = END_WITHIN_S,
    at_once: Callable[[], object] = lambda: None,
) -> Iterator[None]:
    """Have the first signal cancel a task, and the second one end the process.

    Inside another one, and in another thread than the main one, it does nothing: the
    outer task is the one that is cancelled. The task gets `end_within_s` to end in,
    None for as long as it takes. A second signal has `at_once` done, in any state.
    """
    loop = asyncio.get_running_loop()
    signals = [] if _is_heard.get() else _heard_here()
    before = {number: signal.getsignal(number) for number in signals}

    def end_at_once(number: int, frame: object) -> None:
        for each in SIGNALS:
            signal.signal(each, signal.SIG_DFL)
        with contextlib.suppress(Exception):  # the end is what was asked for
            at_once()
        os.kill(os.getpid(), number)

    def stop(number: signal.Signals) -> None:
        _let_go_of_terminal()
        for other in signals:
            loop.remove_signal_handler(other)
            # Not a handler of the event loop, which may be what hangs.
            signal.signal(other, end_at_once)
            before[other] = signal.SIG_DFL  # also where what is cancelled has left
        if end_within_s is not None:
            _end_in_time(EXIT_SIGNAL + number, end_within_s)
        note(number)
        task.cancel()

    for number in signals:
        loop.add_signal_handler(number, stop, number)
    outer = _is_heard.set(True)
    try:
        yield
    finally:
        _is_heard.reset(outer)
        for number in signals:
            loop.remove_signal_handler(number)
            signal.signal(number, before[number] or signal.SIG_DFL)


_guards: list[threading.Timer] = []


def _end_in_time(status: int, within_s: float) -> None:
    """End this process when its end takes too long.

    What hangs then may hold the event loop or a thread that Python would wait for.
    """

    def give_up() -> NoReturn:
        logger.error("the end takes over %g s: ending at once", within_s)
        os._exit(status)

    timer = threading.Timer(within_s, give_up)
    timer.daemon = True
    timer.start()
    _guards.append(timer)
    atexit.register(_leave, status)


def is_ending() -> bool:
    """Return whether a signal ends this process, so that nothing new may begin."""
    return bool(_guards)


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


def run(
    work: Coroutine[Any, Any, T],
    note: Callable[[signal.Signals], None] = lambda number: None,
    end_within_s: float | None = END_WITHIN_S,
    at_once: Callable[[], object] = lambda: None,
) -> T:
    """Run a coroutine as `asyncio.run` does; a signal cancels it, see `signals_cancel`.

    Raises:
        SystemExit: A signal came; the status is 128 plus its number.
    """
    came: list[signal.Signals] = []

    def note_first(number: signal.Signals) -> None:
        came.append(number)
        note(number)

    async def heard() -> T:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - this is one
        try:
            with signals_cancel(task, note_first, end_within_s, at_once):
                return await work
        finally:
            # If nothing has awaited it, Python would warn.
            work.close()

    try:
        result = asyncio.run(heard())
    except asyncio.CancelledError:
        if not came:
            raise
    if came:
        raise SystemExit(EXIT_SIGNAL + came[0])
    return result


@contextlib.contextmanager
def undoing() -> Iterator[None]:
    """Have a signal raise where work without an event loop stands, to be undone.

    Raises:
        SystemExit: A signal came; the status is 128 plus its number.
    """
    signals = _heard_here()

    def stop(number: int, frame: object) -> NoReturn:
        for other in signals:
            signal.signal(other, signal.SIG_DFL)
        _let_go_of_terminal()
        raise SystemExit(EXIT_SIGNAL + number)

    before = {number: signal.signal(number, stop) for number in signals}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler or signal.SIG_DFL)


# -- tasks -----------------------------------------------------------------------------


async def cancel_and_wait(tasks: Iterable[Any], grace_s: float = 0.0) -> None:
    """Cancel tasks after a grace, and wait for their end; some may be None or over."""
    running = [t for t in tasks if isinstance(t, asyncio.Future) and not t.done()]
    if running and grace_s:
        await asyncio.wait(running, timeout=grace_s)
    for task in running:
        task.cancel()
    if running:
        await asyncio.wait(running, timeout=CLOSE_GRACE_S)


# -- an environment --------------------------------------------------------------------


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


class Lifetime:
    """From the beginning to the end of one environment, with its exit status."""

    def __init__(self) -> None:
        self.exit_status = 0
        self._is_closed = False

    def fail(self) -> None:
        """Have the process end with status 1, unless a signal ends it."""
        self.exit_status = self.exit_status or EXIT_FAILED

    def _note(self, number: signal.Signals) -> None:
        logger.warning(
            "%s: shutting down; a second signal ends the process at once", number.name
        )
        self.exit_status = EXIT_SIGNAL + number

    async def run(self, work: Coroutine[Any, Any, None], close: EndingStep) -> None:
        """Run until the work ends, fails or a signal comes; then close.

        Raises:
            SystemExit: With `exit_status`, if that is not 0.
        """
        task = asyncio.get_running_loop().create_task(work)

        async def end() -> None:
            await cancel_and_wait([task])
            await close()

        hearing = signals_cancel(task, self._note, END_WITHIN_S)
        with _collector_spared(), hearing:
            try:
                await task
            except asyncio.CancelledError:
                # A signal has set the status; any other cancellation is of our caller.
                if not self.exit_status:
                    raise
            finally:
                closing = asyncio.ensure_future(end())
                try:
                    await asyncio.shield(closing)
                except asyncio.CancelledError:  # a second one ends nothing half
                    await asyncio.wait([closing])
                    raise
        if self.exit_status:
            raise SystemExit(self.exit_status)

    async def close(self, *steps: EndingStep) -> None:
        """Run the closing steps in order, also if one fails; at a second call, nothing.

        It raises what the last step that failed raised.
        """
        if self._is_closed:
            return
        self._is_closed = True
        async with contextlib.AsyncExitStack() as last_to_first:
            for step in reversed(steps):
                last_to_first.push_async_callback(step)
