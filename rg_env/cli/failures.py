"""What is said, and which exit status it is, when an exception ends a command.

No traceback reaches a user but for a defect of ours, and of that one it is said where
to report it. With `--env.debug_logging true` the others show theirs as well.
"""

from __future__ import annotations

import logging
import re
import signal
import sys
import threading
import traceback
from types import TracebackType
from typing import NoReturn

from rg_env import installation
from rg_env.cli import standard_streams
from rg_env.errors import LibraryError, RunFailed, SettingError

logger = logging.getLogger(__name__)

EXIT_FAILED = 1
EXIT_REFUSED = 2
EXIT_UNREAD = 128 + signal.SIGPIPE
"""Whoever read what was printed has gone."""

DEFECT = (
    "this is a defect of this environment ({kind}); please report it to its"
    " maintainers, with the command and the lines above"
)

FOREIGN = {
    "aiohttp": "a connection failed",
    "requests": "a connection failed",
    "wandb": "W&B failed",
}
"""Packages whose own exceptions speak of the world outside, and what they mean."""

_OF_THE_LIBRARY = re.compile(r'File "[^"]*/reasoning_gym/([^"]+)", line (\d+)')


def end(error: BaseException) -> int:
    """Say what ended a command, on standard error.

    Args:
        error: Anything but SystemExit and KeyboardInterrupt.

    Returns:
        The exit status.
    """
    if isinstance(error, BrokenPipeError):
        return EXIT_UNREAD
    if isinstance(error, (SettingError, LibraryError)):
        return _say(error, str(error), EXIT_REFUSED)
    if isinstance(error, ImportError):
        not_there = installation.explain(error)
        if not_there is not None:
            return _say(error, not_there, EXIT_REFUSED)
    sentence = _failure(error)
    if sentence is not None:
        return _say(error, sentence, getattr(error, "exit_status", EXIT_FAILED))
    detail = getattr(error, "detail", "")
    sys.stderr.write(detail or "".join(_traceback(error)))
    kind = str(error) if detail else traceback.format_exception_only(type(error), error)
    return _print(DEFECT.format(kind="".join(kind).strip().splitlines()[-1]))


def catch_the_rest() -> None:
    """Do the same for what is raised where no command is there to meet it.

    That is before a command begins, in threads, and in tasks whose end nobody awaits.
    For a process that is a command and nothing else.
    """
    standard_streams.prepare()
    sys.excepthook = _end_at_import
    sys.unraisablehook = _note_unraisable
    threading.excepthook = _say_of_thread
    logging.getLogger("asyncio").addFilter(_is_news)


def _note_unraisable(found: sys.UnraisableHookArgs) -> None:
    """Note what a destructor raised, of which nobody can make anything."""
    logger.debug("ignored in %r: %r", found.object, found.exc_value)


def _say_of_thread(found: threading.ExceptHookArgs) -> None:
    if found.exc_value is not None:
        end(found.exc_value)


def _is_news(record: logging.LogRecord) -> bool:
    """Say whether a task's end is worth a traceback: only as a defect.

    The command whose task failed has its own sentence for what is none.
    """
    error = record.exc_info[1] if record.exc_info else None
    return error is None or _shows_all() or _failure(error) is None


def _end_at_import(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> NoReturn:
    """End a process in which no command has begun.

    Raises:
        SystemExit: With the exit status.
    """
    if issubclass(kind, KeyboardInterrupt):
        raise SystemExit(128 + signal.SIGINT)
    if not isinstance(error, installation.InstallationError):
        other = installation.other_framework() or installation.explain(error)
        if other is not None:
            raise SystemExit(_say(error, other, EXIT_REFUSED))
    raise SystemExit(end(error.with_traceback(trace)))


def _failure(error: BaseException) -> str | None:
    """Return the sentence of a failure that is no defect, None for one that is."""
    if isinstance(error, RunFailed):
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
    if about is None:
        return None
    return f"{about} ({type(error).__name__}: {' '.join(str(error).split())})"


def _failure_elsewhere(error: RunFailed) -> str | None:
    """Return the sentence of what reasoning-gym raised in a worker, None if we did."""
    if str(error).startswith("MemoryError"):
        return "a worker's memory is full; raise env.worker_memory_mb"
    files = re.findall(r'File "[^"]+", line \d+', error.detail)
    in_library = _OF_THE_LIBRARY.match(files[-1]) if files else None
    if in_library is None:
        return None
    file, line = in_library.groups()
    return f"reasoning-gym failed ({error}, at reasoning_gym/{file}:{line})"


def _say(error: BaseException, sentence: str, status: int) -> int:
    if _shows_all():
        sys.stderr.write("".join(_traceback(error)))
    _print(sentence)
    return status


def _shows_all() -> bool:
    return logging.getLogger("rg_env").isEnabledFor(logging.DEBUG)


def _print(sentence: str) -> int:
    print(f"error: {sentence}", file=sys.stderr, flush=True)
    return EXIT_FAILED


def _traceback(error: BaseException) -> list[str]:
    return traceback.format_exception(type(error), error, error.__traceback__)
