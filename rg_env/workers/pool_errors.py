"""What can go wrong with a call that runs in a worker process.

    PoolError
    ├── DeadlineExceededError  the job used up its CPU time; its worker was killed
    ├── WorkerDiedError        the job ended its worker, or had it answer what it cannot
    │                          return, and did so to a second one as well
    ├── JobError               the job raised; the worker lives on
    ├── WorkerLostError        workers were killed, stood still or could not be started
    │   └── PreloadError       what workers are forked with could not be imported
    └── PoolClosedError        the pool was closed before the call was done

The first three speak of the job, the others of the machine: a caller that scores model
text may count the first two against the text, never the others.
"""

from __future__ import annotations

from rg_env.errors import RunError


class PoolError(RunError):
    """Base of every error of a pool."""

    about = "work in a worker process failed"


class DeadlineExceededError(PoolError):
    """The job used more CPU time than its deadline."""


class WorkerDiedError(PoolError):
    """The job ended two workers, one after the other."""


class WorkerLostError(PoolError):
    """No worker has answered, for a reason that is not the job's as far as is known."""


class RaisedElsewhereError(PoolError):
    """An exception of another process, SystemExit and MemoryError included.

    Holds text only, of bounded length: class name, message and traceback. Nothing of a
    job's making is rebuilt in the caller's process.
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
    """What workers are forked with could not be imported, so there is no worker.

    Its `kind` is "" where nothing was raised and the process ended, or did not get
    done; `message` says which.
    """

    def __str__(self) -> str:
        """Return a sentence with a subject."""
        if self.kind:
            return super().__str__()
        return f"the process that starts workers {self.message}"


class PoolClosedError(PoolError):
    """The pool is closed, or was closed before the call was done."""
