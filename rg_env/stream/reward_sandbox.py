"""Any unchanged reward function, called in worker processes that can be killed.

Its module is imported once, in the process that workers are forked from. Each call has
a worker of its own, so nothing of a call is left for the next one. A missing score is
None, never 0, and counted by its cause:

    timeout      the call used up its CPU time
    died         it ended its worker, and then another one
    raised       it raised an error, or returned no plain data
    no_number    it returned no finite number, or not one for each completion
    lost         it waited too long, or no worker could be started

Not covered: what the function does without the sandbox.
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
# Arguments of TRL that cannot be sent to a worker.
DROPPED_ARGUMENTS = {"trainer_state", "log_extra", "log_metric", "environments"}
MAX_REPLY_BYTES = 2**18  # takes at most 60 ms to read
_scorer: Any = None  # in a fork server and its workers


def load_scorer(spec: str) -> None:
    """Import the scorer in the process that workers are forked from.

    `spec` is `module:function:sandbox`, as in `guard._spec`.
    """
    global _scorer
    module, function, sandbox = spec.rsplit(":", 2)
    hardening.has_layers = sandbox != "False"
    hardening.has_scratch = False
    _scorer = operator.attrgetter(function)(import_module_or_file(module))
    if not callable(_scorer) or inspect.iscoroutinefunction(_scorer):
        raise TypeError("it is not a function, or an `async` one")


def call_scorer(args: tuple[Any, ...], kwargs: dict[str, Any], split: bool) -> Any:
    """Call the scorer, in a worker."""
    if args and split:
        with contextlib.suppress(ValueError):  # a function in C without a signature
            positional = inspect.signature(_scorer).bind_partial(*args).arguments
            if "completions" in positional:
                raise TypeError("a batch must be given as `completions=`")
    return _scorer(*args, **kwargs)


def _is_batch(value: Any) -> bool:
    return hasattr(value, "__len__") and not isinstance(value, (str, bytes, dict))


@functools.cache  # has no lock, which a fork could leave taken in the child
def _pool_of(spec: str, memory_gib: float) -> WorkerPool:
    return WorkerPool(
        memory_limit_bytes=int(memory_gib * 2**30),
        preload=[f"{__name__}:load_scorer:{spec}"],
    )


def _name_of(scorer: Any) -> str:
    """Return a function as `module:function`."""
    module = getattr(scorer, "__module__", "")
    name = getattr(scorer, "__qualname__", "")
    try:
        found = operator.attrgetter(name)(sys.modules[module])
    except (AttributeError, KeyError):
        found = None
    if found is not scorer or module == "__main__":
        raise SettingError(
            f"{shown(scorer)} is not a function at the top of a module that workers can"
            " import; move it into a .py file",
            "guard",
        )
    return f"{module}:{name}"


def _values(reply: Any, size: int) -> Sequence[Any]:
    """Return the value or the fault of each completion from the reply to a call."""
    if isinstance(reply, (list, tuple)) and len(reply) == size:
        return reply
    if isinstance(reply, PoolError):
        return [reply] * size
    return [f"{shown(reply)} for {size} completions"] * size


class guard:  # noqa: N801 - it is used as a function
    """A reward function that may be called from threads, event loops and forks.

    It can be pickled. The completions of a batch, in `completions=` as in TRL, are
    scored one by one, so that no completion can decide the reward of another.

    Args:
        scorer: A function of a module, or its name: `module:function`, or
            `path/to/file.py:function`.
        cpu_seconds: CPU time of a call, above 0.
        wall_seconds: Wall time of a call, above 0.
        sandbox: Whether Landlock and seccomp deny it files, network and processes.
        memory_gib: Address space of a worker, including the modules it imports.
        split: False for a scorer that compares the completions of a batch, and so gets
            all of them in one call.

    Attributes:
        counts: Number of missing scores by cause, and of values of the scorer, None
            included, as `returned`.

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
        name = scorer if isinstance(scorer, str) else _name_of(scorer)
        module, _, self.__name__ = name.rpartition(":")
        if module.endswith(".py"):
            module = str(Path(module).resolve())
        self._spec = f"{module}:{self.__name__}:{sandbox}"
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
            reason = f"{shown(name)} is not a scorer, {error}"
            raise SettingError(reason, "guard") from RuntimeError(error.detail)

    def __repr__(self) -> str:
        return f"<guard {self._spec}>"

    @property
    def _pool(self) -> WorkerPool:
        return _pool_of(self._spec, self._memory_gib)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return the result of the scorer for these plain values, or None."""
        with event_loop_thread() as wait_for:
            return wait_for(self.acall(*args, **kwargs))

    async def acall(self, *args: Any, **kwargs: Any) -> Any:
        """Do the same without blocking the event loop."""

        async def call(call_kwargs: dict[str, Any]) -> Any:
            try:
                return await self._pool.run(
                    call_scorer,
                    args,
                    call_kwargs,
                    self._split,
                    deadline_s=self._deadline_s,
                    options=self._options,
                )
            except PoolError as error:
                return error

        replies = await asyncio.gather(*map(call, self._calls(kwargs)))
        batch = kwargs.get("completions", "")
        if _is_batch(batch):
            size = 1 if self._split else len(batch)
            return [self._counted(v) for reply in replies for v in _values(reply, size)]
        (reply,) = replies
        if isinstance(reply, (list, tuple)):
            return [self._counted(value) for value in reply]
        return self._counted(reply)

    def _calls(self, kwargs: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the arguments of each call: of a batch, one for each completion."""
        kwargs = {n: v for n, v in kwargs.items() if n not in DROPPED_ARGUMENTS}
        batch = kwargs.get("completions", "")
        if not self._split or not _is_batch(batch):
            return [kwargs]
        size = len(batch)
        columns = {n: v for n, v in kwargs.items() if _is_batch(v) and len(v) == size}
        return [kwargs | {n: [v[i]] for n, v in columns.items()} for i in range(size)]

    def _counted(self, result: Any) -> Any:
        """Count a value or a fault; return a value, and log a fault and return None."""
        value = result.get("score") if isinstance(result, dict) else result  # verl's
        is_number = isinstance(value, (int, float)) and abs(value) <= sys.float_info.max
        cause = "returned" if is_number or result is None else "no_number"
        if isinstance(result, PoolError):
            cause = CAUSES.get(type(result).__name__, "lost")
        self.counts.update([cause])  # one call, which no thread can interrupt
        if cause == "returned":
            return result
        count = self.counts[cause]
        if should_log(count):
            reason = on_one_line(str(result), 200)
            logger.warning(
                "%s: no score (%s, %d so far): %s", self.__name__, cause, count, reason
            )
        return None
