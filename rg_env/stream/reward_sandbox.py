"""Any reward function as it is, called in worker processes that can be killed.

Its module is imported once, where workers are forked from, and each call has a worker
of its own, so that nothing of a call is left for the next one. No score is None, never
0, and counted by cause: it used up its CPU time (`timeout`), ended two workers
(`died`), raised or returned no plain data (`raised`), returned no finite number or not
one for each completion (`no_number`), waits too long or has no worker (`lost`). Not
covered: harm done without the sandbox.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
import logging
import operator
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rg_env.errors import SettingError, on_one_line, shown
from rg_env.executor import event_loop_thread
from rg_env.library.own_tasks import import_module_or_file
from rg_env.logs import should_log
from rg_env.workers.call import CallOptions, PoolError, PreloadError
from rg_env.workers.sandbox import hardening
from rg_env.workers.worker_pool import WorkerPool

logger = logging.getLogger(__name__)

CAUSES = {
    "DeadlineExceededError": "timeout",
    "WorkerDiedError": "died",
    "JobError": "raised",
}
NO_VALUES = {"trainer_state", "log_extra", "log_metric", "environments"}  # of TRL
MAX_REPLY_BYTES = 2**18  # takes at most 60 ms to read
_scorer: Any = None  # in a fork server and its workers


def load(order: str) -> None:
    """Import the scorer in the process that workers are forked from."""
    global _scorer
    module, function, sandbox = order.rsplit(":", 2)
    hardening.has_layers = sandbox != "False"
    hardening.has_scratch = False
    _scorer = operator.attrgetter(function)(import_module_or_file(module))
    if not callable(_scorer) or inspect.iscoroutinefunction(_scorer):
        raise TypeError("it is not a function, or an `async` one")


def call(args: tuple[Any, ...], named: dict[str, Any], split: bool) -> Any:
    """Call the scorer, in a worker."""
    if args and split:
        with contextlib.suppress(ValueError):  # of a function in C
            by_place = inspect.signature(_scorer).bind_partial(*args).arguments
            if "completions" in by_place:
                raise TypeError("a batch must be given as `completions=`")
    return _scorer(*args, **named)


def _is_batch(value: Any) -> bool:
    return hasattr(value, "__len__") and not isinstance(value, (str, bytes, dict))


@functools.cache  # without a lock, which a fork could leave taken in the child
def _pool_of(order: str, memory_gib: float) -> WorkerPool:
    return WorkerPool(
        memory_limit_bytes=int(memory_gib * 2**30),
        preload=[f"{__name__}:load:{order}"],
    )


def _place_of(scorer: Any) -> str:
    """Return the module and the name of a function."""
    module = getattr(scorer, "__module__", "")
    name = getattr(scorer, "__qualname__", "")
    try:
        found = operator.attrgetter(name)(sys.modules[module])
    except (AttributeError, KeyError):
        found = None
    if found is not scorer or module == "__main__":
        reason = "is no function at the top of a module that workers can import; move"
        raise SettingError(f"{shown(scorer)} {reason} it into a .py file", "guard")
    return f"{module}:{name}"


def _each(answer: Any, size: int) -> Sequence[Any]:
    """Return the value of each completion in the answer of a call."""
    if isinstance(answer, (list, tuple)) and len(answer) == size:
        return answer
    is_error = isinstance(answer, PoolError)
    return [answer if is_error else f"{shown(answer)} for {size} completions"] * size


class guard:  # noqa: N801 - it is used as a function
    """A reward function that may be called from threads, event loops and forks.

    It pickles. The completions of a batch in `completions=`, as TRL's, are scored one
    by one, so that no completion can decide the reward of another.

    Args:
        scorer: A function of a module, or its name: `module:function`, or
            `path/to/file.py:function`.
        cpu_seconds, wall_seconds: Time of a call; above 0.
        sandbox: Whether Landlock and seccomp deny it files, network and processes.
        memory_gib: Address space of a worker, including the modules it imports.
        split: False for a scorer that compares the completions of a batch, and so gets
            all of them in one call.

    Attributes:
        counts: Results by cause; values of the scorer, None too, as `returned`.

    Raises:
        SettingError: There is no such function; PoolError if no worker starts.

    Example:
        >>> reward = guard("statistics:correlation", cpu_seconds=5)
        >>> reward([1, 2, 3], [2, 4, 6]), reward([1], [2]), reward.counts["raised"]
        (1.0, None, 1)
    """

    def __init__(
        self,
        scorer: str | Callable[..., Any],
        *,
        cpu_seconds: float = 5.0,
        wall_seconds: float = 60.0,
        sandbox: bool = True,
        memory_gib: float = 2.0,
        split: bool = True,
    ) -> None:
        if not all(limit > 0 for limit in (cpu_seconds, wall_seconds, memory_gib)):
            raise SettingError("seconds and memory must be above 0", "guard")
        place = scorer if isinstance(scorer, str) else _place_of(scorer)
        module, _, self.__name__ = place.rpartition(":")
        module = str(Path(module).resolve()) if module.endswith(".py") else module
        self._order = f"{module}:{self.__name__}:{sandbox}"
        self._memory_gib = memory_gib
        self._split = split
        self.counts: Counter[str] = Counter()
        self._deadline_s = cpu_seconds
        self._options = CallOptions(
            MAX_REPLY_BYTES,
            untrusted=True,
            max_untrusted_calls=1,
            wall_limit_s=wall_seconds,
        )
        try:
            self._pool.call(abs, 0, deadline_s=cpu_seconds, options=self._options)
        except PreloadError as error:
            reason = f"{shown(place)} is no scorer, {error}"
            raise SettingError(reason, "guard") from RuntimeError(error.detail)

    def __repr__(self) -> str:
        return f"<guard {self._order}>"

    @property
    def _pool(self) -> WorkerPool:
        return _pool_of(self._order, self._memory_gib)

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Return the result of the scorer for these plain values, or None."""
        with event_loop_thread() as wait_for:
            return wait_for(self.acall(*args, **named))

    async def acall(self, *args: Any, **named: Any) -> Any:
        """Do the same in an event loop, which is never blocked."""

        async def answer(part: dict[str, Any]) -> Any:
            try:
                return await self._pool.run(
                    call,
                    args,
                    part,
                    self._split,
                    deadline_s=self._deadline_s,
                    options=self._options,
                )
            except PoolError as error:
                return error

        answers = await asyncio.gather(*map(answer, self._calls(named)))
        return self._rewards(named, answers)

    def _calls(self, named: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the arguments of each call."""
        named = {name: v for name, v in named.items() if name not in NO_VALUES}
        batch = named.get("completions", "")
        if not self._split or not _is_batch(batch):
            return [named]
        size = len(batch)
        columns = {n: v for n, v in named.items() if _is_batch(v) and len(v) == size}
        return [named | {n: [v[i]] for n, v in columns.items()} for i in range(size)]

    def _rewards(self, named: dict[str, Any], answers: Sequence[Any]) -> Any:
        """Return the rewards, or the single one, that the answers of all calls are."""
        batch = named.get("completions", "")
        if _is_batch(batch):
            size = 1 if self._split else len(batch)
            return [self._kept(v) for answer in answers for v in _each(answer, size)]
        (answer,) = answers
        if isinstance(answer, (list, tuple)):
            return [self._kept(value) for value in answer]
        return self._kept(answer)

    def _kept(self, answer: Any) -> Any:
        """Count an answer; return it, or log it and return None."""
        value = answer.get("score") if isinstance(answer, dict) else answer  # verl's
        is_number = isinstance(value, (int, float)) and abs(value) <= sys.float_info.max
        cause = "returned" if is_number or answer is None else "no_number"
        if isinstance(answer, PoolError):
            cause = CAUSES.get(type(answer).__name__, "lost")
        self.counts.update([cause])  # at once, for threads
        if cause != "returned" and should_log(self.counts[cause]):
            text = "%s: no score (%s, %d so far): %s"
            why = on_one_line(str(answer), 200)
            logger.warning(text, self.__name__, cause, self.counts[cause], why)
        return answer if cause == "returned" else None
