"""Errors that a user can act on, and the sentence each one is.

    SettingError      a setting is wrong: the field, what was found, what is allowed
    LibraryError      reasoning-gym cannot be used: why, and how to repair it
    RunError          what ended a run and is no defect of ours; base of many

All are met once, at the edge (the command line). The first two end the start with exit
status 2; nothing is lost by them, because they come before any work. The third ends a
run with status 1.
"""

from __future__ import annotations

import contextlib
import difflib
import re
from collections.abc import Iterable, Iterator
from typing import ClassVar

__all__ = [
    "EXIT_FAILED",
    "EXIT_REFUSED",
    "LibraryError",
    "RunError",
    "SettingError",
    "in_section",
    "nearest",
    "not_allowed",
    "on_one_line",
    "printable",
    "shown",
    "unexpected",
    "unknown_name",
    "visible",
]

EXIT_FAILED, EXIT_REFUSED = 1, 2
"""Statuses of a command: what was begun failed, or nothing was begun."""

LONGEST_SHOWN = 200
"""Characters of a value that a sentence repeats."""


def printable(text: str, keep: str = "") -> str:
    r"""Return a text, what would steer a terminal escaped (`\x1b`), but for `keep`."""
    return "".join(
        sign
        if sign.isprintable() or sign in keep
        else sign.encode("unicode_escape").decode()
        for sign in text
    )


_STEERING = re.compile(
    "["
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # controls but for the tab and the line break
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # turn the direction of writing
    "\u2028\u2029"  # other line breaks
    "\ud800-\udfff"  # halves of a pair: no encoding takes them
    "]"
)


def visible(text: str) -> str:
    r"""Return a text as a terminal may show it, what would steer it escaped (`\x1b`).

    Line breaks and tabs stay, and nothing is wrapped, so that a grid keeps its columns.
    """
    return _STEERING.sub(lambda m: m.group().encode("unicode_escape").decode(), text)


def on_one_line(text: str, width: int) -> str:
    r"""Return the text on one line of at most `width` columns, `\n` for a break."""
    line = visible(text).replace("\n", "\\n").replace("\t", "\\t")
    return line if len(line) <= width else line[: width - 3] + "..."


class SettingError(ValueError):
    """A setting that cannot be used; its text is one whole sentence on one line.

    Attributes:
        reason: What is wrong, or the whole sentence where no field is given.
        field: The setting that the sentence begins with, without its section.
    """

    def __init__(self, reason: str, field: str = "") -> None:
        super().__init__(printable(f"{field}: {reason}" if field else reason))
        self.reason, self.field = reason, field


@contextlib.contextmanager
def in_section(section: str) -> Iterator[None]:
    """Write a section before the field of every `SettingError` raised inside.

    What is known of a setting where it is checked is its field. Whether a user has
    written it as `env.tasks`, as `--tasks` or as an argument is known at the edge.
    """
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


def shown(value: object) -> str:
    """Return a value as a sentence repeats it: in quotes, on one line, not too long."""
    try:
        text = repr(value)
    except ValueError:  # Python writes no integer of more than 4,300 digits
        return "a number of thousands of digits"
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}..."


def unexpected(found: object, expected: str) -> str:
    """Return the sentence for a value that something cannot have.

    Args:
        found: The value.
        expected: The values that are possible, in words.
    """
    return f"{shown(found)} is not allowed; expected {expected}"


def not_allowed(field: str, found: object, expected: str) -> SettingError:
    """Build the error for a value that a setting, as the user writes it, cannot have.

    The other arguments are those of `unexpected`.
    """
    return SettingError(unexpected(found, expected), field)


def nearest(name: str, allowed: Iterable[str]) -> str | None:
    """Return the allowed name that is spelled most like `name`, if any is close."""
    # Of a text that is no name, the beginning is enough, and quick.
    short = name[:LONGEST_SHOWN].lower()
    by_lower = {other.lower(): other for other in allowed}
    matches = difflib.get_close_matches(short, by_lower, n=1, cutoff=0.6)
    return by_lower[matches[0]] if matches else None


def unknown_name(
    field: str, found: str, allowed: Iterable[str], kind: str
) -> SettingError:
    """Build the error for a name that does not exist.

    Args:
        field: The setting it was found in, as the user writes it.
        found: The name that was found.
        allowed: Every name that would be valid.
        kind: What the names are, in the singular ("task", "option").

    Returns:
        The error to raise: field, what was found, the nearest valid name or, where
        none is close, the valid names (at most twelve of them).
    """
    names = sorted(allowed)
    close = nearest(found, names)
    first = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
    hint = f"expected one of {first}" if names else "there are none"
    if close is not None:
        hint = f"did you mean {close!r}?"
    return SettingError(f"unknown {kind} {shown(found)}; {hint}", field)


def counted(number: int, noun: str) -> str:
    """Return a number of things in words: 1 task, 2 tasks."""
    return f"{number} {noun}{'s' * (number != 1)}"
