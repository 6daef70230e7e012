"""An argument parser whose complaint is one sentence."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import NoReturn

from rg_env.errors import SettingError, unknown_name


class SentenceParser(argparse.ArgumentParser):
    """Raises where argparse would print its usage and end the process."""

    def error(self, message: str) -> NoReturn:
        """Refuse the command line.

        Raises:
            SettingError: What is wrong with it.
        """
        raise SettingError(f"command line: {message}")

    def parse(self, argv: Sequence[str]) -> argparse.Namespace:
        """Parse a whole command line; names may stand before and behind options.

        Raises:
            SettingError: What is wrong with it, with the nearest option.
        """
        options, unknown = self.parse_known_intermixed_args(argv)
        self.refuse_unknown(unknown)
        return options

    def refuse_unknown(self, unknown: Sequence[str]) -> None:
        """Refuse what is left of a command line, if anything is.

        Raises:
            SettingError: The first of it, with the nearest option.
        """
        for argument in unknown:
            if argument.startswith("-"):
                known = [o for a in self._actions for o in a.option_strings]
                name = argument.split("=", 1)[0]
                raise unknown_name("command line", name, known, "option")
        if unknown:
            raise SettingError(f"command line: unexpected {unknown[0]!r}")
