"""An argument parser whose complaint is one sentence."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from typing import Any, NoReturn

from rg_env.errors import SettingError, nearest, shown

OF_AN_OPTION = re.compile(r"argument (?P<name>\S+): (?P<what>.*)", re.DOTALL)
NEEDS = "the following arguments are required: "

PLAINLY = (
    (re.compile(r"expected one argument"), "a value is needed"),
    (re.compile(r"expected at least one argument"), "a value is needed"),
    (
        re.compile(r"ignored explicit argument (?P<value>.*)", re.DOTALL),
        "it takes no value, found {value}",
    ),
)
"""What argparse says, and how it is said here."""


def _joined(words: Sequence[str]) -> list[str]:
    """Join options with numbers like -1e5 and -inf, which look like options."""
    joined: list[str] = []
    for word in words:
        takes = joined and joined[-1].startswith("--") and "=" not in joined[-1]
        if takes and joined[-1] != "--" and _is_below_zero(word):
            joined[-1] = f"{joined[-1]}={word}"
        else:
            joined.append(word)
    return joined


def _is_below_zero(word: str) -> bool:
    try:
        return word.startswith("-") and float(word) is not None
    except ValueError:
        return False


class SentenceParser(argparse.ArgumentParser):
    """Raises where argparse would print its usage and end the process.

    An option that is given twice is refused, too: the second one would win, silently.
    """

    def error(self, message: str) -> NoReturn:
        """Refuse the command line.

        Raises:
            SettingError: What is wrong with it.
        """
        of_option = OF_AN_OPTION.fullmatch(message)
        if of_option is None:
            if message.startswith(NEEDS):
                message = f"{message.removeprefix(NEEDS)} is needed"
            raise SettingError(f"command line: {message}")
        what = of_option["what"]
        for pattern, plain in PLAINLY:
            if (said := pattern.match(what)) is not None:
                what = plain.format(**said.groupdict())
        raise SettingError(f"{of_option['name']}: {what}")

    def _get_values(self, action: argparse.Action, arg_strings: list[str]) -> Any:
        """Return the value of an option, which argparse loses if it is `--`."""
        if action.option_strings and arg_strings == ["--"]:
            value = self._get_value(action, "--")
            self._check_value(action, value)
            return value
        return super()._get_values(action, arg_strings)

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Parse a command line.

        Raises:
            SettingError: What is wrong with it.
        """
        words = _joined(args or [])
        self._refuse_repeated(words)
        return super().parse_known_args(words, namespace)

    def parse(self, argv: Sequence[str]) -> argparse.Namespace:
        """Parse a whole command line; names may stand before and behind options.

        Raises:
            SettingError: What is wrong with it, with the nearest option.
        """
        options, unknown = self.parse_known_intermixed_args(argv)
        self.refuse_unknown(unknown)
        return options

    def _refuse_repeated(self, words: Sequence[str]) -> None:
        may_repeat = {
            name
            for action in self._actions
            if isinstance(action, argparse._AppendAction)
            for name in action.option_strings
        }
        seen = set()
        for word in words:
            if word == "--":
                break
            name = word.partition("=")[0]
            if name not in self._option_string_actions or name in may_repeat:
                continue
            if name in seen:
                raise SettingError(f"{name}: it is given twice; give it once")
            seen.add(name)

    def refuse_unknown(self, unknown: Sequence[str]) -> None:
        """Refuse what is left of a command line, if anything is.

        Raises:
            SettingError: The first of it, with the nearest option.
        """
        known = [name for a in self._actions for name in a.option_strings]
        for argument in unknown:
            if argument == "--":
                continue
            if argument.startswith("-"):
                name = argument.split("=", 1)[0]
                meant = _meant(name, known)
                hint = f"did you mean {meant!r}?" if meant else "--help lists them all"
                raise SettingError(
                    f"command line: unknown option {shown(name)}; {hint}"
                )
            meant = f"--{argument.partition('=')[0]}"
            hint = f"; did you mean {meant!r}?" if meant in known else ""
            raise SettingError(f"command line: unexpected {shown(argument)}{hint}")


def _meant(name: str, known: Sequence[str]) -> str | None:
    """Return the option that somebody meant, if one is close.

    What options have in common, dashes and a section, makes none of them alike.
    """
    begun = [option for option in known if option.startswith(name)]
    if len(begun) == 1:
        return begun[0]
    section, dot, field = name.lstrip("-").lower().rpartition(".")
    start = f"--{section}{dot}"
    in_section = [o for o in known if o.startswith(start) and ("." in o) == bool(dot)]
    for options in (in_section, [o for o in known if "." in o]):
        by_field = {o.rpartition(".")[2].lstrip("-").lower(): o for o in options}
        found = nearest(field, by_field)
        if found is not None and (dot or options is in_section or found == field):
            return by_field[found]
    return nearest(name, known) if dot and not in_section else None
