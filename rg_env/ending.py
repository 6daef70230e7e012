"""How signals end a command: the first one cleanly, the second one at once.

Ctrl-C, SIGTERM and a closed terminal (SIGHUP) are handled where something must be
undone: in the event loop of a command, whose work they cancel, and in `undoing`.
Everywhere else, for example during imports, they keep their default action and end the
process immediately; its child processes notice that and end too.

A forked child does not use these handlers.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextvars import ContextVar
from typing import Any, NoReturn, TypeVar

from rg_env import patience

logger = logging.getLogger(__name__)

T = TypeVar("T")

EXIT_SIGNAL = 128
"""Added to a signal's number it is the exit status."""

INTERRUPTED = EXIT_SIGNAL + signal.SIGINT
"""Exit status of a command that Ctrl-C ended."""

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
SHOW_CURSOR = b"\x1b[?25h"
STDOUT, STDERR = 1, 2

_is_heard: ContextVar[bool] = ContextVar("is_heard", default=False)


class StoppedError(BaseException):
    """A signal came while something was done that has to be undone.

    Attributes:
        status: The exit status.
    """

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


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
    """Show the cursor; redirect the output to /dev/null if the terminal is closed."""
    for fd in (STDOUT, STDERR):
        try:
            os.write(fd, SHOW_CURSOR if os.isatty(fd) else b"")
        except OSError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, fd)
            os.close(nowhere)


_heard: list[dict[signal.Signals, Any]] = []
"""What is heard in the event loop, and the handlers from before."""


def _hear_nothing_in_child() -> None:
    """Before Python 3.12, the parent's loop would get the signals of its child."""
    for before in _heard:
        signal.set_wakeup_fd(-1)
        for number, handler in before.items():
            signal.signal(number, handler or signal.SIG_DFL)


os.register_at_fork(after_in_child=_hear_nothing_in_child)


@contextlib.contextmanager
def signals_cancel(
    task: asyncio.Task[Any],
    note: Callable[[signal.Signals], None],
    end_within_s: float | None = patience.END_WITHIN_S,
) -> Iterator[None]:
    """Have the first signal cancel a task, and the second one end the process.

    Inside another one, and in another thread than the main one, it does nothing: the
    outer task is the one that is cancelled.

    Args:
        task: What is cancelled.
        note: Told of the signal before.
        end_within_s: What the task has to end in; None for as long as it takes.
    """
    loop = asyncio.get_running_loop()
    signals = [] if _is_heard.get() else _heard_here()
    before = {number: signal.getsignal(number) for number in signals}

    def stop(number: signal.Signals) -> None:
        _let_go_of_terminal()
        for other in signals:
            loop.remove_signal_handler(other)
            # Not a handler of the event loop, which may be what hangs.
            signal.signal(other, _end_at_once)
            before[other] = signal.SIG_DFL  # also where what is cancelled has left
        if end_within_s is not None:
            _end_in_time(EXIT_SIGNAL + number, end_within_s)
        note(number)
        task.cancel()

    for number in signals:
        loop.add_signal_handler(number, stop, number)
    outer = _is_heard.set(True)
    _heard.append(before)
    try:
        yield
    finally:
        _heard.remove(before)
        _is_heard.reset(outer)
        for number in signals:
            loop.remove_signal_handler(number)
            signal.signal(number, before[number] or signal.SIG_DFL)


_last_acts: list[Callable[[], object]] = []


@contextlib.contextmanager
def at_once(act: Callable[[], object]) -> Iterator[None]:
    """Have something done even if a second signal ends this process.

    Args:
        act: It has to be quick, and to expect any state of things.
    """
    _last_acts.append(act)
    try:
        yield
    finally:
        _last_acts.remove(act)


def _end_at_once(number: int, frame: object) -> None:
    for each in SIGNALS:
        signal.signal(each, signal.SIG_DFL)
    for act in _last_acts:
        with contextlib.suppress(Exception):  # the end is what was asked for
            act()
    os.kill(os.getpid(), number)


_guards: list[threading.Timer] = []


def _end_in_time(status: int, within_s: float) -> None:
    """End this process when its end takes too long.

    What hangs then (a disk, a network of W&B) may hold the event loop or a thread
    that Python would wait for. Nothing that is on disk is lost by it.
    """

    def give_up() -> NoReturn:
        logger.error("the end takes over %g s: ending at once", within_s)
        os._exit(status)

    timer = threading.Timer(within_s, give_up)
    timer.daemon = True
    timer.start()
    _guards.append(timer)
    atexit.register(_leave, status)


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
    end_within_s: float | None = patience.END_WITHIN_S,
) -> T:
    """Run a coroutine as `asyncio.run` does; a signal cancels it.

    Args:
        work: What is run.
        note: Told of the signal.
        end_within_s: What it has to end in; None for as long as it takes.

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
            with signals_cancel(task, note_first, end_within_s):
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

    The work takes its time, also after a signal that has ended something before it.

    Raises:
        StoppedError: A signal came.
    """
    signals = _heard_here()
    atexit.unregister(_leave)
    while _guards:
        _guards.pop().cancel()

    def stop(number: int, frame: object) -> NoReturn:
        for other in signals:
            signal.signal(other, signal.SIG_DFL)
        _let_go_of_terminal()
        raise StoppedError(EXIT_SIGNAL + number)

    before = {number: signal.signal(number, stop) for number in signals}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler or signal.SIG_DFL)
