"""An argument parser whose complaint is one sentence."""

from __future__ import annotations

import argparse
from typing import NoReturn

from rg_env.errors import SettingError


class SentenceParser(argparse.ArgumentParser):
    """Raises where argparse would print its usage and end the process."""

    def error(self, message: str) -> NoReturn:
        """Refuse the command line.

        Raises:
            SettingError: What is wrong with it.
        """
        raise SettingError(f"command line: {message}")
