"""Beginning and ending: the host's `BaseEnv` with an end that is kept.

Mends B2, B15 and B18: the host handles no signal, never tells the API that it ends,
closes nothing and never calls `close()`.

The host is archived, so what is wrong in it is mended in our subclasses, a stage each:

    EndingEnv        signals, close, exit status
    ConnectedEnv     the API: patience, registration, sending
    ServingEnv       the main loop of `serve`
    ProcessingEnv    `process` and `evaluate`
    AccountingEnv    what became of every rollout

None of them knows of reasoning-gym.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import threading
from collections.abc import Coroutine, Iterable
from typing import Any

import wandb
from atroposlib.envs.base import BaseEnv

logger = logging.getLogger(__name__)

CLOSE_GRACE_S = 5.0
EXIT_FAILED = 1
EXIT_SIGNAL = 128


async def cancel_and_wait(tasks: Iterable[Any]) -> None:
    """Cancel tasks and wait until they have ended; None and ended ones may be among."""
    running = [t for t in tasks if isinstance(t, asyncio.Future) and not t.done()]
    for task in running:
        task.cancel()
    if running:
        await asyncio.wait(running, timeout=CLOSE_GRACE_S)


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

        A first SIGINT or SIGTERM ends it in order, a second one at once.

        Raises:
            SystemExit: With `exit_status`, if that is not 0.
        """
        loop = asyncio.get_running_loop()
        task = loop.create_task(work)

        def stop(number: signal.Signals) -> None:
            logger.warning("%s: ending; a second one ends at once", number.name)
            self.exit_status = EXIT_SIGNAL + number
            task.cancel()
            for other in signals:
                loop.remove_signal_handler(other)
                signal.signal(other, signal.SIG_DFL)

        is_main = threading.current_thread() is threading.main_thread()
        signals = (signal.SIGINT, signal.SIGTERM) if is_main else ()
        for number in signals:
            loop.add_signal_handler(number, stop, number)
        try:
            await task
        except asyncio.CancelledError:
            if not self.exit_status:
                raise
        finally:
            await cancel_and_wait([task])
            await self.close()
            for number in signals:
                loop.remove_signal_handler(number)
        if self.exit_status:
            raise SystemExit(self.exit_status)

    async def close(self) -> None:
        """End what was begun; may be called twice.

        Groups in flight are cancelled, the host's clients and files are closed and a
        W&B run is finished.
        """
        if self._is_closed:
            return
        self._is_closed = True
        await cancel_and_wait([*self.workers, self.eval_runner, *self.eval_workers])
        await self._close_connections()
        if self.jsonl_writer is not None:
            self.jsonl_writer.close()
        if wandb.run is not None:
            await asyncio.to_thread(wandb.finish)

    async def _close_connections(self) -> None:
        """Close the clients of the inference servers."""
        for server in self.server.servers:
            await cancel_and_wait([getattr(server, "check_task", None)])
            client = getattr(server, "openai", None)
            if client is not None:
                await client.close()
