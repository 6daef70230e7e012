"""The types of the options of the small commands, and what each complains of.

A type takes the text of an option and returns its value. What it refuses, argparse puts
behind the option's name: `--steps: found 'x'; allowed is a whole number from 1 to 9`.
"""

from __future__ import annotations

import argparse
import errno
import math
import socket
import typing
from collections.abc import Callable
from pathlib import Path

from rg_env import yaml_text
from rg_env.atropos import output_paths
from rg_env.errors import SettingError, not_allowed, shown, span
from rg_env.tasks.level_settings import LevelSetting, check_setting, parse_setting
from rg_env.yaml_text import YamlFault

MAX_PORT = 65_535
MAX_SEED = 2**63 - 1
"""As of `env.seed`."""

MOST_ITEMS = 10_000
"""Of a task, all made at the start."""

LONGEST_LATENCY_MS = 600_000.0
"""Ten minutes, half of what a client waits for an answer."""

OWN_HOST = "a name or address of this machine, as 127.0.0.1"

MOST_DIGITS = 30
"""Of a number; more are a mistake, and Python refuses to read thousands."""


def _complaint(found: str, allowed: str) -> argparse.ArgumentTypeError:
    return argparse.ArgumentTypeError(f"found {shown(found)}; allowed is {allowed}")


def whole_number(low: int, high: int, reason: str = "") -> Callable[[str], int]:
    """Return the type of whole numbers in a range, ends included.

    Args:
        low: The least.
        high: The greatest.
        reason: Why it begins there.
    """

    def read(text: str) -> int:
        try:
            number = int(text) if len(text) <= MOST_DIGITS else None
        except ValueError:
            number = None
        if number is None or not low <= number <= high:
            raise _complaint(text, span("a whole number", low, high) + reason)
        return number

    return read


def number(
    low: float, high: float, *, open_ends: bool = False
) -> Callable[[str], float]:
    """Return the type of finite numbers in a range.

    Args:
        low: The least.
        high: The greatest.
        open_ends: Whether these two are no values themselves.
    """

    def read(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        # NaN is in no range.
        if not low <= value <= high or (open_ends and value in (low, high)):
            between = f"a number between {low:g} and {high:g}"
            raise _complaint(
                text, between if open_ends else span("a number", low, high)
            )
        return value

    return read


port = whole_number(0, MAX_PORT)
seed = whole_number(0, MAX_SEED)


def names(text: str) -> list[str]:
    """Read names or patterns that are separated by commas."""
    found = [part.strip() for part in text.split(",")]
    if not all(found) or not text.isprintable():
        raise _complaint(text, "names separated by commas")
    return found


def not_blank(text: str) -> str:
    """Read text that says something."""
    if not text.strip() or not text.isprintable():
        raise _complaint(text, "text in one line that is not blank")
    return text


def level_setting(text: str) -> LevelSetting:
    """Read a setting of difficulty, as `env.complexity_mode` has it."""
    setting: object = None
    if text not in ("None", "none", "null"):
        setting = parse_setting(text)
    if text.lstrip().startswith("["):
        try:
            setting = yaml_text.load(text)
        except YamlFault as fault:
            raise argparse.ArgumentTypeError(
                f"{shown(text)} is no range [low, high]: {fault}"
            ) from fault
    try:
        check_setting(setting)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return typing.cast(LevelSetting, setting)


def writable_file(text: str) -> Path:
    """Read the name of a file that can be written; it is tried at once."""
    return _tried(output_paths.check_file, text)


def writable_folder(text: str) -> Path:
    """Read the name of a folder that can be written; it is tried at once."""
    return _tried(output_paths.check_folder, text)


def _tried(check: Callable[[str, str], None], text: str) -> Path:
    not_blank(text)
    try:
        check("", text)
    except SettingError as error:
        raise argparse.ArgumentTypeError(str(error).removeprefix(": ")) from error
    return Path(text)


def check_can_listen(host: str, at_port: int) -> None:
    """Refuse an address that no server can listen on.

    Raises:
        SettingError: The option and the reason.
    """
    try:
        found = socket.getaddrinfo(host, at_port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise not_allowed("--host", host, OWN_HOST) from error
    family, kind, protocol, _, address = found[0]
    with socket.socket(family, kind, protocol) as trial:
        # As the server itself does; or the port of one that has just ended is refused.
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind(address)
        except PermissionError as error:
            raise SettingError(
                f"--port: {at_port} is not for this user; take one from 1024"
            ) from error
        except OSError as error:
            if error.errno == errno.EADDRNOTAVAIL:
                raise not_allowed("--host", host, OWN_HOST) from error
            reason = error.strerror or str(error)
            raise SettingError(
                f"--port: nothing can listen on {at_port} of {host} ({reason}); take"
                " another, or 0 for a free one"
            ) from error
