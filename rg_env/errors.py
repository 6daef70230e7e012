"""Errors that a user can act on, and the sentence each one is.

    SettingError      a setting is wrong: the field, what was found, what is allowed
    LibraryError      reasoning-gym cannot be used: why, and how to repair it
    RunError          what ended a run and is no defect of ours; base of many

The command line meets them. The first two end the start with exit status 2, before any
work; the third ends a run with status 1.
"""

from __future__ import annotations

import contextlib
import difflib
import re
from collections.abc import Iterable, Iterator
from typing import ClassVar

# Statuses of a command: what was begun failed, or nothing was begun.
EXIT_FAILED, EXIT_REFUSED = 1, 2

# Characters of a value that a sentence repeats.
LONGEST_SHOWN = 200

_STEERING = re.compile(
    "["
    "\x00-\x1f\x7f-\x9f"  # controls
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # turn the direction of writing
    "\u2028\u2029"  # other line breaks
    "\ud800-\udfff"  # halves of a pair: no encoding takes them
    "]"
)


def printable(text: str, keep: str = "") -> str:
    r"""Return a text, what would steer a terminal escaped (`\x1b`), but for `keep`."""
    return _STEERING.sub(
        lambda m: m[0] if m[0] in keep else m[0].encode("unicode_escape").decode(), text
    )


def visible(text: str) -> str:
    """Return a text as a terminal may show it, with its line breaks and tabs."""
    return printable(text, keep="\n\t")


def on_one_line(text: str, width: int) -> str:
    r"""Return the text on one line of at most `width` columns, `\n` for a break."""
    line = printable(text)
    return line if len(line) <= width else line[: width - 3] + "..."


class SettingError(ValueError):
    """A setting that cannot be used; its text is one whole sentence on one line.

    The field, if there is one, begins the sentence, without its section.
    """

    def __init__(self, reason: str, field: str = "") -> None:
        super().__init__(printable(f"{field}: {reason}" if field else reason))
        self.reason, self.field = reason, field


@contextlib.contextmanager
def in_section(section: str) -> Iterator[None]:
    """Write a section (`env.`) before the field of a `SettingError` raised inside."""
    try:
        yield
    except SettingError as error:
        if not error.field:
            raise
        raise SettingError(error.reason, f"{section}{error.field}") from error


class LibraryError(RuntimeError):
    """reasoning-gym cannot be read; its text says how to repair the install."""


class RunError(RuntimeError):
    """What ended a run and is no defect of ours; its text is a sentence or its end.

    Attributes:
        about: What failed, where the text does not begin with it.
        detail: The traceback of another process, "" where nothing was raised in one.
        exit_status: That of the command.
    """

    about: ClassVar[str] = ""
    detail: str = ""
    exit_status: int = 1

    @property
    def sentence(self) -> str:
        """The whole sentence."""
        return f"{self.about}: {self}" if self.about else str(self)


class NoScoreError(RunError):
    """A completion has no score, which is not 0, so nothing may be learned from it."""


def shown(value: object) -> str:
    """Return a value as a sentence repeats it: in quotes, on one line, not too long."""
    text = repr(value)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}..."


def unexpected(value: object, expected: str) -> str:
    """Return the sentence for a value that something cannot have."""
    return f"{shown(value)} is not allowed; expected {expected}"


def not_allowed(field: str, value: object, expected: str) -> SettingError:
    """Build the error for a value that a setting cannot have."""
    return SettingError(unexpected(value, expected), field)


def nearest(name: str, allowed: Iterable[str]) -> str | None:
    """Return the allowed name that is spelled most like `name`, if any is close."""
    by_lower = {other.lower(): other for other in allowed}
    # Of a text that is no name, the beginning is enough, and quick.
    matches = difflib.get_close_matches(name[:LONGEST_SHOWN].lower(), by_lower, n=1)
    return by_lower[matches[0]] if matches else None


def unknown_name(
    field: str, name: str, allowed: Iterable[str], kind: str
) -> SettingError:
    """Build the error for a name that does not exist, with the nearest valid one.

    Where none is close, it lists at most twelve. `kind` is what the names are, in the
    singular ("task", "option").
    """
    names = sorted(allowed)
    first = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
    hint = f"expected one of {first}" if names else "there are none"
    if (close := nearest(name, names)) is not None:
        hint = f"did you mean {close!r}?"
    return SettingError(f"unknown {kind} {shown(name)}; {hint}", field)


def counted(number: int, noun: str) -> str:
    """Return a number of things in words: 1 task, 2 tasks."""
    return f"{number} {noun}{'s' * (number != 1)}"
