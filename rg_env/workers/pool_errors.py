"""The errors of a call that runs in a worker process.

    PoolError
    ├── DeadlineExceededError  the job used up its CPU time; its worker was killed
    ├── WorkerDiedError        the job ended two workers, or made them send an invalid
    │                          answer
    ├── JobError               the job raised; the worker lives on
    ├── WorkerLostError        workers were killed, hung or could not be started
    │   └── PreloadError       preloading failed
    └── PoolClosedError        the pool was closed before the call was done

The first three are caused by the job, the others by the machine. A caller that scores
model text may count the first two against the text, never the others.
"""

from __future__ import annotations

from rg_env.errors import RunError


class PoolError(RunError):
    """Base class of all errors of a pool."""

    about = "work in a worker process failed"


class DeadlineExceededError(PoolError):
    """The job used more CPU time than its deadline."""


class WorkerDiedError(PoolError):
    """The job ended two workers, one after the other."""


class WorkerLostError(PoolError):
    """No worker answered, and the job is not known to be the cause."""


class RaisedElsewhereError(PoolError):
    """An exception of another process, including SystemExit and MemoryError.

    It has only text of bounded length: class name, message and traceback. No object of
    a job is rebuilt in the caller's process.
    """

    def __init__(self, kind: str, message: str, detail: str = "") -> None:
        super().__init__(kind, message, detail)
        self.kind = kind
        self.message = message
        self.detail = detail

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}" if self.message else self.kind

    def is_a(self, *kinds: type[BaseException]) -> bool:
        """Return whether it was an exception of exactly one of these classes."""
        return self.kind in [kind.__name__ for kind in kinds]


class JobError(RaisedElsewhereError):
    """The job raised; its worker lives on."""


class PreloadError(RaisedElsewhereError, WorkerLostError):
    """Preloading failed, so there is no worker.

    If nothing was raised, `kind` is "", and `message` says that the process ended or
    took too long.
    """

    def __str__(self) -> str:
        """Return the message as a sentence."""
        if self.kind:
            return super().__str__()
        return f"the process that starts workers {self.message}"


class PoolClosedError(PoolError):
    """The pool is closed, or was closed before the call was done."""
