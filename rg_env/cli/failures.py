"""The message and the exit status when an exception ends a command.

A user sees a traceback only for a defect, which is ours or that of a program that
subclasses the environment. With -v (`--env.debug_logging true`), all errors show their
tracebacks.
"""

from __future__ import annotations

import logging
import re
import signal
import sys
import threading
import traceback
from typing import Any, NoReturn

from rg_env import installation
from rg_env.errors import (
    EXIT_FAILED,
    EXIT_REFUSED,
    LibraryError,
    RunError,
    SettingError,
    printable,
)

logger = logging.getLogger(__name__)

EXIT_UNREAD = 128 + signal.SIGPIPE
"""Whoever read what was printed has gone."""

DEFECT = (
    "this is a defect ({kind}); unless a file of your own is the last one in the lines"
    " above, please report it where you have {folder} from, with the command and them"
)

FOREIGN = {
    "aiohttp": "a connection failed",
    "requests": "a connection failed",
    "wandb": "W&B failed",
}
"""Packages whose own exceptions speak of the world outside, and what they mean."""

OWN_TASK = "OwnTaskError: "
"""What begins an error of a user's own task; its module takes long to import."""

_PLACE = re.compile(r'File "([^"]+)", line (\d+)')


def end(error: BaseException) -> int:
    """Say on standard error what ended a command; return the exit status."""
    if isinstance(error, BrokenPipeError):
        return EXIT_UNREAD
    refusal = _refusal(error)
    sentence = refusal or _failure(error)
    if sentence is not None:
        if _shows_all():
            sys.stderr.write("".join(traceback.format_exception(error)))
        failed = getattr(error, "exit_status", EXIT_FAILED)
        return refuse(sentence, EXIT_REFUSED if refusal else failed)
    detail = getattr(error, "detail", "")
    sys.stderr.write(detail or "".join(traceback.format_exception(error)))
    kind = str(error) if detail else traceback.format_exception_only(error)[-1]
    kind = kind.strip().splitlines()[-1]
    return refuse(DEFECT.format(kind=kind, folder=installation.PROJECT), EXIT_FAILED)


def refuse(sentence: str, status: int = EXIT_REFUSED) -> int:
    """Print the sentence that ends a command; return its exit status."""
    print(f"error: {printable(sentence)}", file=sys.stderr, flush=True)
    return status


def catch_the_rest() -> None:
    """Do the same for what is raised where no command is there to meet it.

    That is before a command begins, in threads, in destructors, and in tasks whose end
    nobody awaits. For a process that is a command and nothing else.
    """
    sys.excepthook = _end_at_import
    sys.unraisablehook = lambda found: logger.debug("ignored: %r", found.exc_value)
    threading.excepthook = lambda found: found.exc_value and end(found.exc_value)
    logging.getLogger("asyncio").addFilter(_is_news)


def _is_news(record: logging.LogRecord) -> bool:
    """Say whether a task's end is worth a traceback: only as a defect.

    The command whose task failed has its own sentence for what is none.
    """
    error = record.exc_info[1] if record.exc_info else None
    return error is None or _shows_all() or _failure(error) is None


def _end_at_import(kind: Any, error: BaseException, trace: Any) -> NoReturn:
    """End a process in which no command has begun."""
    if issubclass(kind, KeyboardInterrupt):
        raise SystemExit(128 + signal.SIGINT)
    said = installation.explain(error)
    raise SystemExit(refuse(said) if said else end(error))


def _refusal(error: BaseException) -> str | None:
    """Return the sentence of what stopped the start, None for anything else."""
    if isinstance(error, (SettingError, LibraryError)):
        return str(error)
    return installation.explain(error) if isinstance(error, ImportError) else None


def _failure(error: BaseException) -> str | None:
    """Return the sentence of a failure that is no defect, None for one that is."""
    if isinstance(error, RunError):
        return error.sentence if not error.detail else _failure_elsewhere(error)
    if isinstance(error, MemoryError):
        return (
            "the machine's memory is full; end other programs, or take a smaller"
            " env.num_workers, env.group_size or env.max_token_length"
        )
    if isinstance(error, OSError):
        said = error.strerror or str(error) or type(error).__name__
        place = f"{error.filename}: " if error.filename else ""
        return f"{place}{said[:1].lower()}{said[1:]}"
    about = FOREIGN.get(type(error).__module__.partition(".")[0])
    return about and f"{about} ({type(error).__name__}: {' '.join(str(error).split())})"


def _failure_elsewhere(error: RunError) -> str | None:
    """Return the sentence of what reasoning-gym raised in a worker, None if we did."""
    if str(error).startswith("MemoryError"):
        return "a worker's memory is full; raise env.worker_memory_mb"
    if str(error).startswith(OWN_TASK):
        return f"a task of your own failed ({str(error).removeprefix(OWN_TASK)})"
    file, line = (_PLACE.findall(error.detail) or [("", "")])[-1]
    _, in_library, place = file.rpartition("/reasoning_gym/")
    if not in_library:
        return None
    return f"reasoning-gym failed ({error}, at reasoning_gym/{place}:{line})"


def _shows_all() -> bool:
    return logging.getLogger("rg_env").isEnabledFor(logging.DEBUG)
