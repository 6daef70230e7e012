"""From the beginning of a command to its end: signals, closing, exit status.

Mends B2, B15 and B18 of docs/host_defects.md: the framework handles no signal, closes
nothing and never calls `close()`.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import signal
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator
from typing import Any

from rg_env import ending, patience
from rg_env.errors import EXIT_FAILED

logger = logging.getLogger(__name__)

COLLECT_AFTER = (100_000, 50, 10)
"""Python's own are (700, 10, 10): new containers, and younger generations' turns. In a
run that goes well some hundred a minute are garbage."""

EndingStep = Callable[[], Awaitable[object]]


def _running(tasks: Iterable[Any]) -> list[asyncio.Future[Any]]:
    return [t for t in tasks if isinstance(t, asyncio.Future) and not t.done()]


async def cancel_and_wait(tasks: Iterable[Any]) -> None:
    """Cancel tasks and wait until they have ended; some may be None or have ended."""
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


async def _whole(work: Coroutine[Any, Any, None]) -> None:
    """Wait until some work is done, also where this is cancelled meanwhile."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise


@contextlib.contextmanager
def _collector_spared() -> Iterator[None]:
    """Avoid long pauses caused by Python's garbage collector.

    Collecting among all imported objects takes a fifth of a second. Collecting among
    groups in flight, whose lists contain millions of numbers, takes 20 to 200 ms and
    finds nothing, because finished groups are freed without it.
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
    """From the beginning to the end of one environment.

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

    async def run(
        self,
        work: Coroutine[Any, Any, None],
        close: EndingStep,
        close_at_once: Callable[[], object] = lambda: None,
    ) -> None:
        """Run until the work ends, fails or a signal comes; then close.

        A first SIGINT, SIGTERM or SIGHUP ends it in order and within `END_WITHIN_S`, a
        second one at once. Where somebody else hears them, as the demo does, they reach
        this as a cancellation.

        Args:
            work: What the command does.
            close: Ends what was begun.
            close_at_once: Does before a second signal what can be done in a second.

        Raises:
            SystemExit: With `exit_status`, if that is not 0.
        """
        task = asyncio.get_running_loop().create_task(work)
        with (
            _collector_spared(),
            ending.at_once(close_at_once),
            ending.signals_cancel(task, self._note),
        ):
            try:
                await task
            except asyncio.CancelledError:
                # A signal has set the status; any other cancellation is of our caller.
                if not self.exit_status:
                    raise
            finally:
                await _whole(self._end(task, close))
        if self.exit_status:
            raise SystemExit(self.exit_status)

    async def _end(self, task: asyncio.Task[None], close: EndingStep) -> None:
        await cancel_and_wait([task])
        await close()

    def _note(self, number: signal.Signals) -> None:
        logger.warning(
            "%s: shutting down; a second signal ends the process at once", number.name
        )
        self.exit_status = ending.EXIT_SIGNAL + number

    async def close(self, *steps: EndingStep) -> None:
        """Run the closing steps in order; the second call does nothing.

        If a step fails, the next ones still run.

        Raises:
            Exception: What the last step that failed raised.
        """
        if self.is_closed:
            return
        self.is_closed = True
        async with contextlib.AsyncExitStack() as last_to_first:
            for step in reversed(steps):
                last_to_first.push_async_callback(step)
