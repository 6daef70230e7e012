"""Checks the requirements of this project, and describes the installation.

Python from 3.8 on must be able to import this module, so that an old one can say that
it is too old.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

OLDEST_PYTHON = (3, 10)
VERSION = "0.1.0"
"""The version of this environment."""

FRAMEWORK = "0.4.0"
"""The required version of atroposlib."""

_PACKAGES = (
    "aiohttp atroposlib click fastapi isal jinja2 msgspec numpy openai orjson"
    " polars pydantic rich starlette sympy uvicorn wandb yaml"
)
NEEDED = tuple(_PACKAGES.split())
"""The import names of the packages in requirements.txt, without reasoning-gym, which
only workers import."""

CORE = ("click", "msgspec", "rich", "yaml")
"""The packages without which no command runs."""

ALL = "atropos"
"""The extra of this package that installs all of them."""

OURS = ("rg_env", "reasoning_gym_environment", "__main__", "")
"""Packages of this project; an import that fails in one of them is a bug of ours."""

PROJECT = Path(__file__).resolve().parents[1]
"""The folder of the entry file, in a clone or in an installation."""

IS_CLONED = (PROJECT / "requirements.txt").is_file()
"""Whether this is a clone, and not an installed package."""

RUNS_WRITE_IN = PROJECT if IS_CLONED else Path()
"""The default folder of files that runs write."""

TOKENIZER_FOLDER = PROJECT / "rg_env" / "demo" / "tokenizer"
"""A small tokenizer, trained on questions of every task."""

PROGRAM = "reasoning_gym_environment.py" if IS_CLONED else "rg-env"
COMMAND = f"python {PROGRAM}" if IS_CLONED else PROGRAM


class InstallationError(ImportError):
    """This Python or machine cannot run the environment; the text is one sentence."""


def _advice(extra: str) -> str:
    """Return how to install the packages of an extra."""
    command = f"`pip install 'rg-env[{extra}]'`"
    if IS_CLONED and extra != ALL:
        command = f"`pip install '{PROJECT}[{extra}]'`"
    elif IS_CLONED:
        command = f"`pip install -r {PROJECT}/requirements.txt`, or `make demo`,"
    return f"{command} installs it"


def check(packages: Sequence[str] = NEEDED) -> None:
    """Raise `InstallationError` for a wrong Python, system or package."""
    if sys.version_info < OLDEST_PYTHON:
        raise InstallationError(
            f"Python 3.10 or newer is needed, and {sys.executable} is"
            f" {sys.version.split()[0]}"
        )
    if sys.platform != "linux":
        raise InstallationError(
            "this environment runs on Linux only, because its workers are sandboxed"
            f" with Landlock and seccomp, and this machine runs {sys.platform}"
        )
    # They are not imported, which would take seconds.
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    if missing:
        raise InstallationError(
            f"not installed for {sys.executable}: {', '.join(missing)}; {_advice(ALL)}"
        )


def explain(error: BaseException, extra: str = ALL) -> str | None:
    """Return the sentence for a failed import, None for a bug of ours.

    `extra` is the one that installs the packages of the command.
    """
    if isinstance(error, InstallationError):
        return str(error)
    reason = f"{type(error).__name__}: {error}".strip(": ").splitlines()[0]
    try:
        version = metadata.version("atroposlib")
    except metadata.PackageNotFoundError:
        version = FRAMEWORK
    if version != FRAMEWORK and extra == ALL:
        return (
            f"atroposlib {FRAMEWORK} is needed, found {version} ({reason});"
            f" {_advice(extra)}"
        )
    package = (getattr(error, "name", None) or "").partition(".")[0]
    if not isinstance(error, ImportError) or package in OURS:
        return None
    return f"the package {package} cannot be used here ({reason}); {_advice(extra)}"
