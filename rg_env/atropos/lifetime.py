"""From the beginning of a command to its end: signals, closing, exit status.

Mends B2, B15 and B18 of docs/host_defects.md: the framework handles no signal, closes
nothing and never calls `close()`.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import signal
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator
from typing import Any

from rg_env import patience

logger = logging.getLogger(__name__)

COLLECT_AFTER = (100_000, 50, 10)
"""Python's own are (700, 10, 10): new containers, and younger generations' turns. In a
run that goes well some hundred a minute are garbage; retrying.py sees to the others."""

EXIT_FAILED = 1
EXIT_SIGNAL = 128

Step = Callable[[], Awaitable[object]]


def _running(tasks: Iterable[Any]) -> list[asyncio.Future[Any]]:
    return [t for t in tasks if isinstance(t, asyncio.Future) and not t.done()]


async def cancel_and_wait(tasks: Iterable[Any]) -> None:
    """Cancel tasks and wait until they have ended; None and ended ones may be among."""
    running = _running(tasks)
    for task in running:
        task.cancel()
    if running:
        await asyncio.wait(running, timeout=patience.CLOSE_GRACE_S)


async def finish_or_cancel(tasks: Iterable[Any]) -> None:
    """Wait a short grace for tasks to end by themselves, then cancel them."""
    running = _running(tasks)
    if running:
        await asyncio.wait(running, timeout=patience.IN_FLIGHT_GRACE_S)
    await cancel_and_wait(running)


@contextlib.contextmanager
def _collector_spared() -> Iterator[None]:
    """Keep the search for garbage from stopping everything for long.

    Among all that was imported it takes a fifth of a second. Among groups in flight,
    whose lists hold millions of numbers, 20 to 200 ms, and it finds nothing: a group
    that is done is taken away without it.
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
    """The life of one environment.

    Attributes:
        exit_status: 0, 1 after a failure, 128 + n after signal n.
        is_closed: Whether `close` was called.
    """

    def __init__(self) -> None:
        self.exit_status = 0
        self.is_closed = False

    def fail(self) -> None:
        """Have the process end with status 1, unless a signal ends it."""
        self.exit_status = self.exit_status or EXIT_FAILED

    async def run(self, work: Coroutine[Any, Any, None], close: Step) -> None:
        """Run until the work ends, fails or a signal comes; then close.

        A first SIGINT or SIGTERM ends it in order and within `END_WITHIN_S`, a second
        one at once.

        Args:
            work: What the command does.
            close: Ends what was begun.

        Raises:
            SystemExit: With `exit_status`, if that is not 0.
        """
        task = asyncio.get_running_loop().create_task(work)
        with _collector_spared(), self._signals_end(task):
            try:
                await task
            except asyncio.CancelledError:
                if not self.exit_status:
                    raise
            finally:
                await cancel_and_wait([task])
                await close()
        if self.exit_status:
            raise SystemExit(self.exit_status)

    @contextlib.contextmanager
    def _signals_end(self, task: asyncio.Task[None]) -> Iterator[None]:
        """Have the first signal cancel a task, and the second one end the process."""
        loop = asyncio.get_running_loop()
        is_main = threading.current_thread() is threading.main_thread()
        signals = (signal.SIGINT, signal.SIGTERM) if is_main else ()

        def stop(number: signal.Signals) -> None:
            logger.warning("%s: ending; a second one ends at once", number.name)
            self.exit_status = EXIT_SIGNAL + number
            self._end_in_time()
            task.cancel()
            for other in signals:
                loop.remove_signal_handler(other)
                signal.signal(other, signal.SIG_DFL)

        for number in signals:
            loop.add_signal_handler(number, stop, number)
        try:
            yield
        finally:
            for number in signals:
                loop.remove_signal_handler(number)

    def _end_in_time(self) -> None:
        """End this process when its end takes too long.

        What hangs then (a disk, a network of W&B) may hold the event loop or a thread
        that Python would wait for. Nothing that is on disk is lost by it.
        """

        def give_up() -> None:
            within_s = patience.END_WITHIN_S
            logger.error("the end takes over %g s: ending at once", within_s)
            os._exit(self.exit_status)

        timer = threading.Timer(patience.END_WITHIN_S, give_up)
        timer.daemon = True
        timer.start()

    async def close(self, *steps: Step) -> None:
        """Take the steps of the end, in their order; the second time there are none.

        A step that fails does not keep the next ones from being taken.

        Raises:
            Exception: What the last step that failed raised.
        """
        if self.is_closed:
            return
        self.is_closed = True
        async with contextlib.AsyncExitStack() as last_to_first:
            for step in reversed(steps):
                last_to_first.push_async_callback(step)
