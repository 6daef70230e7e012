"""Errors that a user can act on, and helpers for their sentences.

    SettingError      a setting is wrong: its field, the value, the allowed values
    LibraryError      reasoning-gym cannot be used: the reason, and the repair
    RunError          a run failed, but not by a bug of ours; base of many errors

The command line catches them. The first two end a command with exit status 2, before
any work, and the third with status 1.
"""

from __future__ import annotations

import contextlib
import difflib
import re
from collections.abc import Iterable, Iterator
from typing import ClassVar

# Exit statuses of a command that failed, or did not begin its work.
EXIT_FAILED = 1
EXIT_REFUSED = 2

# The most characters of a value in a sentence.
MAX_SHOWN_CHARS = 200

_TERMINAL_CODES = re.compile(
    "["
    "\x00-\x1f\x7f-\x9f"  # controls
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # change the direction of text
    "\u2028\u2029"  # other line breaks
    "\ud800-\udfff"  # lone surrogates, which no encoding accepts
    "]"
)


def printable(text: str, keep: str = "") -> str:
    r"""Escape characters that would steer a terminal (`\x1b`), except those in `keep`.

    Example:
        >>> printable("a\tb")
        'a\\tb'
    """
    return _TERMINAL_CODES.sub(
        lambda m: m[0] if m[0] in keep else m[0].encode("unicode_escape").decode(), text
    )


def visible(text: str) -> str:
    """Return a text that a terminal can show, with its line breaks and tabs."""
    return printable(text, keep="\n\t")


def on_one_line(text: str, width: int) -> str:
    r"""Return the text on one line of at most `width` columns, `\n` for a break."""
    line = printable(text)
    return line if len(line) <= width else line[: width - 3] + "..."


class SettingError(ValueError):
    """A setting cannot be used; the text is one sentence on one line.

    It begins with the name of the field, if there is one.
    """

    def __init__(self, reason: str, field: str = "") -> None:
        super().__init__(printable(f"{field}: {reason}" if field else reason))
        self.reason = reason
        self.field = field


@contextlib.contextmanager
def in_section(section: str) -> Iterator[None]:
    """Add a section (`env.`) to the field of a `SettingError` that is raised inside."""
    try:
        yield
    except SettingError as error:
        if not error.field:
            raise
        raise SettingError(error.reason, f"{section}{error.field}") from error


class LibraryError(RuntimeError):
    """reasoning-gym cannot be used; the text says how to repair the installation."""


class RunError(RuntimeError):
    """A run failed, but not by a bug of ours.

    Attributes:
        about: The beginning of the sentence, if the text of the error is only its end.
        detail: The traceback of another process, "" if there is none.
        exit_status: The exit status of the command.
    """

    about: ClassVar[str] = ""
    detail: str = ""
    exit_status: int = 1

    @property
    def sentence(self) -> str:
        """The error as a whole sentence."""
        return f"{self.about}: {self}" if self.about else str(self)


class NoScoreError(RunError):
    """A completion has no score (which is not 0), so it must not be trained on."""


def shown(value: object) -> str:
    """Return a value for a sentence: as Python writes it, and not too long."""
    text = repr(value)
    return text if len(text) <= MAX_SHOWN_CHARS else f"{text[:MAX_SHOWN_CHARS]}..."


def unexpected(value: object, expected: str) -> str:
    """Return the sentence for an invalid value.

    Example:
        >>> unexpected(-1, "a number above 0")
        '-1 is not allowed; expected a number above 0'
    """
    return f"{shown(value)} is not allowed; expected {expected}"


def not_allowed(field: str, value: object, expected: str) -> SettingError:
    """Return the error for an invalid value of a setting."""
    return SettingError(unexpected(value, expected), field)


def nearest(name: str, allowed: Iterable[str]) -> str | None:
    """Return the allowed name with the most similar spelling, None if none is similar.

    Example:
        >>> nearest("word_sorted", ["gcd", "word_sorting"])
        'word_sorting'
    """
    by_lower = {other.lower(): other for other in allowed}
    # The beginning is enough, because difflib is slow for a long text.
    matches = difflib.get_close_matches(name[:MAX_SHOWN_CHARS].lower(), by_lower, n=1)
    return by_lower[matches[0]] if matches else None


def unknown_name(
    field: str, name: str, allowed: Iterable[str], kind: str
) -> SettingError:
    """Return the error for an unknown name, with the nearest valid one or the first 12.

    `kind` is the kind of the names in the singular ("task", "option").
    """
    names = sorted(allowed)
    first = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
    hint = f"expected one of {first}" if names else "there are none"
    if (close := nearest(name, names)) is not None:
        hint = f"did you mean {close!r}?"
    return SettingError(f"unknown {kind} {shown(name)}; {hint}", field)


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: "1 task", "2 tasks"."""
    return f"{number} {noun}{'s' * (number != 1)}"
