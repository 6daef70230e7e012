"""Beginning and ending: the host's `BaseEnv` with an end that is kept.

Mends B2, B15 and B18: the host handles no signal, never tells the API that it ends,
closes nothing and never calls `close()`.

The host is archived, so what is wrong in it is mended in our subclasses, a stage each:

    EndingEnv        signals, close, exit status
    ConnectedEnv     the API: patience, registration
    SendingEnv       groups on their way to the API
    ServingEnv       the main loop of `serve`
    ProcessingEnv    `process` and `evaluate`
    AccountingEnv    what became of every rollout

None of them knows of reasoning-gym.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import signal
import threading
from collections.abc import Coroutine, Iterable
from typing import Any

import wandb
from atroposlib.envs.base import BaseEnv

from rg_env.off_loop import off_loop

logger = logging.getLogger(__name__)

IN_FLIGHT_GRACE_S = 2.0
"""What groups in flight get at the end to be answered, scored and sent."""

CLOSE_GRACE_S = 2.0
END_WITHIN_S = 9.0
"""From a signal to the end of the process, whatever hangs."""
COLLECT_AFTER = (100_000, 50, 10)
"""Python's own are (700, 10, 10): new containers, and younger generations' turns. In a
run that goes well some hundred a minute are garbage; retrying.py sees to the others."""

EXIT_FAILED = 1
EXIT_SIGNAL = 128


def _running(tasks: Iterable[Any]) -> list[asyncio.Future[Any]]:
    return [t for t in tasks if isinstance(t, asyncio.Future) and not t.done()]


async def cancel_and_wait(tasks: Iterable[Any]) -> None:
    """Cancel tasks and wait until they have ended; None and ended ones may be among."""
    running = _running(tasks)
    for task in running:
        task.cancel()
    if running:
        await asyncio.wait(running, timeout=CLOSE_GRACE_S)


async def finish_or_cancel(tasks: Iterable[Any]) -> None:
    """Wait a short grace for tasks to end by themselves, then cancel them."""
    running = _running(tasks)
    if running:
        await asyncio.wait(running, timeout=IN_FLIGHT_GRACE_S)
    await cancel_and_wait(running)


def _spare_the_collector() -> None:
    """Keep the search for garbage from stopping everything for long.

    Among all that was imported it takes a fifth of a second. Among groups in flight,
    whose lists hold millions of numbers, 20 to 200 ms, and it finds nothing: a group
    that is done is taken away without it.
    """
    gc.freeze()
    gc.set_threshold(*COLLECT_AFTER)


class EndingEnv(BaseEnv):
    """A `BaseEnv` that ends what it began, whatever makes it end.

    Attributes:
        exit_status: 0, 1 after a failure, 128 + n after signal n.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Build the host's environment."""
        super().__init__(*args, **kwargs)
        self.exit_status = 0
        self._is_closed = False

    async def _run_to_its_end(self, work: Coroutine[Any, Any, None]) -> None:
        """Run until the work ends, fails or a signal comes; then close.

        A first SIGINT or SIGTERM ends it in order and within `END_WITHIN_S`, a second
        one at once.

        Raises:
            SystemExit: With `exit_status`, if that is not 0.
        """
        loop = asyncio.get_running_loop()
        task = loop.create_task(work)

        def stop(number: signal.Signals) -> None:
            logger.warning("%s: ending; a second one ends at once", number.name)
            self.exit_status = EXIT_SIGNAL + number
            self._end_in_time()
            task.cancel()
            for other in signals:
                loop.remove_signal_handler(other)
                signal.signal(other, signal.SIG_DFL)

        is_main = threading.current_thread() is threading.main_thread()
        signals = (signal.SIGINT, signal.SIGTERM) if is_main else ()
        for number in signals:
            loop.add_signal_handler(number, stop, number)
        thresholds = gc.get_threshold()
        _spare_the_collector()
        try:
            await task
        except asyncio.CancelledError:
            if not self.exit_status:
                raise
        finally:
            try:
                await cancel_and_wait([task])
                await self.close()
            finally:
                gc.set_threshold(*thresholds)
                gc.unfreeze()
                for number in signals:
                    loop.remove_signal_handler(number)
        if self.exit_status:
            raise SystemExit(self.exit_status)

    def _end_in_time(self) -> None:
        """End this process when its end takes too long.

        What hangs then (a disk, a network of W&B) may hold the event loop or a thread
        that Python would wait for. Nothing that is on disk is lost by it.
        """

        def give_up() -> None:
            logger.error("the end takes over %g s: ending at once", END_WITHIN_S)
            os._exit(self.exit_status)

        timer = threading.Timer(END_WITHIN_S, give_up)
        timer.daemon = True
        timer.start()

    async def close(self) -> None:
        """End what was begun; may be called twice.

        Groups in flight get a short grace and are cancelled then, files are completed,
        the host's clients are closed and a W&B run is finished. What fails of this does
        not keep the rest from being done.
        """
        if self._is_closed:
            return
        self._is_closed = True
        async with contextlib.AsyncExitStack() as last_to_first:
            last_to_first.push_async_callback(self._finish_wandb)
            last_to_first.push_async_callback(self._close_connections)
            last_to_first.push_async_callback(self._close_files)
            last_to_first.push_async_callback(self._end_groups)

    async def _end_groups(self) -> None:
        """End the groups and the evaluation that are in flight."""
        evaluating = cancel_and_wait([self.eval_runner, *self.eval_workers])
        await asyncio.gather(evaluating, finish_or_cancel(self.workers))

    async def _close_files(self) -> None:
        """Complete the files, once no group is in flight."""
        if self.jsonl_writer is not None:
            # After the row that is perhaps being written there.
            await off_loop(self.jsonl_writer.close)

    async def _finish_wandb(self) -> None:
        if wandb.run is not None:
            await asyncio.to_thread(wandb.finish)

    async def _close_connections(self) -> None:
        """Close the clients of the inference servers."""
        checks = [getattr(server, "check_task", None) for server in self.server.servers]
        await cancel_and_wait(checks)
        for server in self.server.servers:
            client = getattr(server, "openai", None)
            if client is not None:
                await client.close()
