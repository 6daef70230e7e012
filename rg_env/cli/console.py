"""The console command, and the message and the exit status of an error that ends it.

A user sees a traceback only for a defect, of ours or of a program that subclasses the
environment. With -v (`--env.debug_logging true`), all errors show their tracebacks.
"""

from __future__ import annotations

import logging
import re
import signal
import sys
import threading
import traceback
from importlib import import_module
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
    "this is a defect ({kind}); unless a file of your own is the last one in the lines"
    f" above, please report it where you have {installation.PROJECT} from, with the"
    " command and them"
)

FOREIGN = ("aiohttp", "requests", "wandb")
"""Packages with exceptions about the network and services."""

_PLACE = re.compile(r'File "([^"]+)", line (\d+)')


def main() -> NoReturn:
    """Run the command line, and end the process with its status.

    The class of environments takes seconds to import and needs the framework, so only
    the commands that use it do. Until a command runs, Ctrl-C ends the process: raised
    in an import, it would leave libraries half done.
    """
    catch_the_rest()
    installation.check(installation.CORE)
    from rg_env import shutdown

    shutdown.stop_at_interrupt()
    from rg_env.cli.main import run_and_exit

    run_and_exit(env_class, sys.argv[1:])


def env_class() -> Any:
    """Return the class of environments by its name, not that of `__main__`."""
    return import_module("reasoning_gym_environment").ReasoningGymEnv


# -- errors ----------------------------------------------------------------------------


def end(error: BaseException, extra: str = installation.ALL) -> int:
    """Print the error that ended a command, and return the exit status.

    `extra` has the packages of the command.

    Example:
        >>> end(SettingError("-1 is not allowed", "env.seed"))
        2
    """
    if isinstance(error, BrokenPipeError):  # the reader of the output has gone
        return 128 + signal.SIGPIPE
    status, sentence = _outcome(error, extra)
    trace = getattr(error, "detail", "") if sentence is None else ""
    if sentence is None or _shows_all():
        sys.stderr.write(trace or "".join(traceback.format_exception(error)))
    if sentence is None:
        kind = str(error) if trace else f"{type(error).__name__}: {error}"
        sentence = DEFECT.format(kind=on_one_line(kind, MAX_SHOWN_CHARS))
    print(f"error: {printable(sentence)}", file=sys.stderr, flush=True)
    return status


def catch_the_rest() -> None:
    """Handle exceptions that reach no command in the same way.

    They are raised before a command begins, in threads, in destructors, and in tasks
    that are not awaited. Only a process that runs a single command may call this.
    """
    sys.excepthook = _end_at_import
    sys.unraisablehook = lambda hooked: logger.debug("ignored: %r", hooked.exc_value)
    threading.excepthook = lambda hooked: hooked.exc_value and end(hooked.exc_value)
    logging.getLogger("asyncio").addFilter(_is_defect)


def _is_defect(record: logging.LogRecord) -> bool:
    """Return whether a task ended with a defect; its command reports other errors."""
    error = record.exc_info[1] if record.exc_info else None
    return error is None or _shows_all() or _outcome(error)[1] is None


def _end_at_import(kind: Any, error: BaseException, trace: Any) -> NoReturn:
    if issubclass(kind, KeyboardInterrupt):
        raise SystemExit(128 + signal.SIGINT)
    raise SystemExit(end(error))


def _outcome(
    error: BaseException, extra: str = installation.ALL
) -> tuple[int, str | None]:
    """Return the exit status and the sentence of an error, None for a defect."""
    if isinstance(error, (SettingError, LibraryError)):
        return EXIT_REFUSED, str(error)
    is_import = isinstance(error, ImportError)
    if is_import and (sentence := installation.explain(error, extra)):
        return EXIT_REFUSED, sentence
    if isinstance(error, RunError):
        return error.exit_status, _of_worker(error) if error.detail else error.sentence
    if isinstance(error, MemoryError):
        return EXIT_FAILED, "the machine's memory is full; end other programs"
    package = type(error).__module__.partition(".")[0]
    if package in FOREIGN:
        return EXIT_FAILED, f"{package} failed ({type(error).__name__}: {error})"
    return EXIT_FAILED, str(error) if isinstance(error, OSError) else None


def _of_worker(error: RunError) -> str | None:
    """Return the sentence of an error in a worker, None for a defect of ours."""
    kind, _, text = str(error).partition(": ")
    if kind == "MemoryError":
        return "a worker's memory is full; raise env.worker_memory_mb"
    if kind == "OwnTaskError":  # by name, because its module is slow to import
        return f"a task of your own failed ({text})"
    file, line = (_PLACE.findall(error.detail) or [("", "")])[-1]
    _, in_library, place = file.rpartition("/reasoning_gym/")
    if not in_library:
        return None
    return f"reasoning-gym failed ({error}, at reasoning_gym/{place}:{line})"


def _shows_all() -> bool:
    return logging.getLogger("rg_env").isEnabledFor(logging.DEBUG)


if __name__ == "__main__":
    main()
