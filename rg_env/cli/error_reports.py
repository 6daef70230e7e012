"""The message and the exit status of an error that ends a command.

A user sees a traceback only for a defect, of this project or of a program that
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
    MAX_SHOWN_CHARS,
    LibraryError,
    RunError,
    SettingError,
    on_one_line,
    printable,
)

logger = logging.getLogger(__name__)

DEFECT = (
    "this is a defect ({error}); unless the last file above is your own, please report"
    " it with the command and the lines above, where you got"
    f" {installation.PROJECT}"
)

SERVICE_PACKAGES = ("aiohttp", "requests", "wandb")
"""Packages with exceptions about the network and services."""

_FRAME = re.compile(r'File "([^"]+)", line (\d+)')


def report_error(error: BaseException, extra: str = installation.ALL) -> int:
    """Print the error that ended a command, and return the exit status.

    `extra` has the packages of the command.

    Example:
        >>> report_error(SettingError("-1 is not allowed", "env.seed"))
        2
    """
    if isinstance(error, BrokenPipeError):  # the reader of the output has gone
        return 128 + signal.SIGPIPE
    status, sentence = _status_and_sentence(error, extra)
    remote_trace = getattr(error, "detail", "") if sentence is None else ""
    if sentence is None or _shows_tracebacks():
        sys.stderr.write(remote_trace or "".join(traceback.format_exception(error)))
    if sentence is None:
        text = str(error) if remote_trace else f"{type(error).__name__}: {error}"
        sentence = DEFECT.format(error=on_one_line(text, MAX_SHOWN_CHARS))
    print(f"error: {printable(sentence)}", file=sys.stderr, flush=True)
    return status


def install_exception_hooks() -> None:
    """Report exceptions that reach no command as those of a command are.

    They are raised before a command begins, in threads, in destructors, and in tasks
    that are not awaited. Only a process that runs a single command may call this.
    """
    sys.excepthook = _on_uncaught
    sys.unraisablehook = lambda hooked: logger.debug("ignored: %r", hooked.exc_value)
    threading.excepthook = _on_uncaught_in_thread
    logging.getLogger("asyncio").addFilter(_should_log)


def _on_uncaught(kind: Any, error: BaseException, trace: Any) -> NoReturn:
    if issubclass(kind, KeyboardInterrupt):
        raise SystemExit(128 + signal.SIGINT)
    raise SystemExit(report_error(error))


def _on_uncaught_in_thread(hooked: threading.ExceptHookArgs) -> None:
    # A thread may end itself with sys.exit().
    if hooked.exc_value and not isinstance(hooked.exc_value, SystemExit):
        report_error(hooked.exc_value)


def _should_log(record: logging.LogRecord) -> bool:
    """Drop a line about a task's error that its command reports, too."""
    error = record.exc_info[1] if record.exc_info else None
    if error is None or _shows_tracebacks():
        return True
    _, sentence = _status_and_sentence(error)
    return sentence is None


def _status_and_sentence(
    error: BaseException, extra: str = installation.ALL
) -> tuple[int, str | None]:
    """Return the exit status and the sentence of an error, None for a defect."""
    if isinstance(error, (SettingError, LibraryError)):
        return EXIT_REFUSED, str(error)
    is_import = isinstance(error, ImportError)
    if is_import and (sentence := installation.explain(error, extra)):
        return EXIT_REFUSED, sentence
    if isinstance(error, RunError):
        sentence = _worker_sentence(error) if error.detail else error.sentence
        return error.exit_status, sentence
    if isinstance(error, MemoryError):
        return EXIT_FAILED, "the machine's memory is full; end other programs"
    package = type(error).__module__.partition(".")[0]
    if package in SERVICE_PACKAGES:
        return EXIT_FAILED, f"{package} failed ({type(error).__name__}: {error})"
    return EXIT_FAILED, str(error) if isinstance(error, OSError) else None


def _worker_sentence(error: RunError) -> str | None:
    """Return the sentence of an error in a worker, None for a defect of ours."""
    kind, _, text = str(error).partition(": ")
    if kind == "MemoryError":
        return "a worker's memory is full; raise env.worker_memory_mb"
    if kind == "OwnTaskError":  # by name, because its module is slow to import
        return f"a task of your own failed ({text})"
    frames = _FRAME.findall(error.detail)
    file, line = frames[-1] if frames else ("", "")
    _, in_library, path = file.rpartition("/reasoning_gym/")
    if not in_library:
        return None
    return f"reasoning-gym failed ({error}, at reasoning_gym/{path}:{line})"


def _shows_tracebacks() -> bool:
    return logging.getLogger("rg_env").isEnabledFor(logging.DEBUG)
