"""Any reward function as it is, called in worker processes that can be killed.

Its module is imported once, in the process that workers are forked from, and never in
the caller's. A result is None where there is no score, which must never count as 0:

    timeout     the call used up its CPU time
    died        it ended two workers, as os._exit or a crash does
    raised      it raised, or returned no plain data: a fault of the scorer
    no_number   it returned a NaN, a text or the like: the same
    lost        it waits too long, or its workers were killed or could not be started

Not covered: what a scorer without the sandbox does outside its process.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import logging
import operator
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from rg_env.errors import SettingError, counted, printable, shown
from rg_env.library.own_tasks import imported
from rg_env.library.registry import cause_of
from rg_env.logs import is_worth_a_line
from rg_env.workers.pool_errors import PoolError, PreloadError
from rg_env.workers.worker_pool import Trust, WorkerPool, default_pool_size

logger = logging.getLogger(__name__)

MAX_REPLY_BYTES = 2**20
CAUSES = {"DeadlineExceededError": "timeout", "WorkerDiedError": "died"}
CAUSES["JobError"] = "raised"
NO_VALUES = {"trainer_state", "log_extra", "log_metric", "environments"}  # of TRL
_scorer: Any = None  # in a fork server and its workers


def load(name: str) -> None:
    """Import the scorer that workers call; SettingError if there is none."""
    global _scorer
    module, _, function = name.rpartition(":")
    try:
        _scorer = operator.attrgetter(function)(imported(module))
        if not callable(_scorer) or inspect.iscoroutinefunction(_scorer):
            raise TypeError("not a function, or an `async` one")
    except BaseException as error:  # a module may also exit
        cause = printable(cause_of(error))
        raise SettingError(f"{shown(name)} is no scorer, {cause}", "guard") from error


def call(args: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """Call the scorer, in a worker."""
    return _scorer(*args, **named)


@functools.cache  # without a lock, which a fork could leave taken in the child
def _pool_of(name: str, sandbox: bool, memory_gib: float) -> WorkerPool:
    first = [] if sandbox else ["rg_env.workers.sandbox.hardening:keep_only_limits"]
    preload, limit = [*first, f"{__name__}:load:{name}"], int(memory_gib * 2**30)
    return WorkerPool(default_pool_size(), memory_limit_bytes=limit, preload=preload)


def _tries(args: Any, named: dict[str, Any], split: bool) -> list[list[Any]]:
    """Return the whole call and, of a batch, a call for each completion."""
    sent = {name: value for name, value in named.items() if name not in NO_VALUES}
    batch = named.get("completions")
    size = len(batch) if isinstance(batch, list) and split else 0
    columns = {n for n, v in sent.items() if isinstance(v, list) and len(v) == size}
    parts = [
        (args, {n: v[i : i + 1] if n in columns else v for n, v in sent.items()})
        for i in range(size)
    ]
    return [[(args, sent)], *([parts] if size > 1 else [])]


class guard:  # noqa: N801 - it is used as a function
    """A reward function that may be called from threads, event loops and forks.

    Of a batch in `completions=`, as TRL passes it, what fails is called again with each
    completion. It pickles, and each process has workers of its own.

    Args:
        scorer: `module:function`, or `path/to/file.py:function`.
        cpu_seconds: CPU time of a call; above 0.
        wall_seconds: Its wall time; None for 20 times as much, and at least 60.
        sandbox: Whether Landlock and seccomp deny it files, network and processes.
        memory_gib: Address space of a worker.
        split: False for a scorer that compares the completions of a batch.

    Attributes:
        counts: Results by cause; what the scorer returned, None too, as `returned`.

    Raises:
        SettingError: There is no such function.
        PoolError: No worker could be started.
    """

    def __init__(
        self,
        scorer: str,
        *,
        cpu_seconds: float = 5.0,
        wall_seconds: float | None = None,
        sandbox: bool = True,
        memory_gib: float = 2.0,
        split: bool = True,
    ) -> None:
        wall_s = 1.0 if wall_seconds is None else wall_seconds
        if min(cpu_seconds, wall_s, memory_gib) <= 0:
            raise SettingError("seconds and memory must be above 0", "guard")
        module, _, self.__name__ = scorer.rpartition(":")
        if module.endswith(".py"):
            module = str(Path(module).resolve())
        self.counts: Counter[str] = Counter()
        self._split = split
        self._workers = f"{module}:{self.__name__}", sandbox, memory_gib
        trust = Trust(MAX_REPLY_BYTES, brief=True, wall_limit_s=wall_seconds)
        self._how: Any = {"deadline_s": cpu_seconds, "trust": trust}
        try:
            _pool_of(*self._workers).call(abs, 0, **self._how)
        except PreloadError as error:
            why = error.message if error.kind else f"guard: {error}"
            raise SettingError(why) from None

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Return what the scorer returns for these plain values, or None."""
        submit = functools.partial(_pool_of(*self._workers).submit, call, **self._how)
        for calls in _tries(args, named, self._split):
            try:
                futures = [submit(*one) for one in calls]
            except PoolError as error:  # the interpreter ends
                answers: list[Any] = [error]
                break
            answers = [future.exception() or future.result() for future in futures]
            if not isinstance(answers[0], PoolError):
                break
        return self._result(answers, named.get("completions"))

    async def acall(self, *args: Any, **named: Any) -> Any:
        """Do the same in an event loop, which is never blocked."""
        run = functools.partial(_pool_of(*self._workers).run, call, **self._how)
        for calls in _tries(args, named, self._split):
            runs = [run(*one) for one in calls]
            answers = await asyncio.gather(*runs, return_exceptions=True)
            if not isinstance(answers[0], PoolError):
                break
        return self._result(answers, named.get("completions"))

    def _result(self, answers: list[Any], batch: Any) -> Any:
        (first, *others), is_batch = answers, isinstance(batch, list)
        if others:
            first = [a[0] if isinstance(a, list) and a else a for a in answers]
        elif is_batch and isinstance(first, PoolError):
            first = [first] * len(batch)
        if isinstance(first, (list, tuple)):
            return [self._kept(answer) for answer in first]
        return self._kept(first)

    def _kept(self, answer: Any) -> Any:
        """Count an answer; return it, or log it and return None."""
        value = answer.get("score") if isinstance(answer, dict) else answer  # verl's
        is_number = isinstance(value, (int, float)) and abs(value) <= sys.float_info.max
        cause, why = "no_number", f"it returned {shown(answer)}"
        if isinstance(answer, PoolError):
            cause, why = CAUSES.get(type(answer).__name__, "lost"), str(answer)
        elif isinstance(answer, BaseException):  # arguments that do not pickle
            raise answer
        elif is_number or answer is None:
            cause = "returned"
        self.counts.update([cause])  # at once, for threads
        none = sum(self.counts.values()) - self.counts["returned"]
        if cause != "returned" and is_worth_a_line(none):
            text = "%s: %s without a score so far, the last one %s: %s"
            logger.warning(text, self.__name__, counted(none, "result"), cause, why)
        return answer if cause == "returned" else None
