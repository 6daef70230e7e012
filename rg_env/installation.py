"""What has to be there before anything of this project can be imported.

Read by every Python from 3.8 on, so that an old one can say that it is too old.
"""

from __future__ import annotations

import importlib.util
import sys
import traceback
from importlib import metadata
from pathlib import Path

__all__ = ["NEEDED", "InstallationError", "check", "explain"]

OLDEST_PYTHON = (3, 10)
VERSION = "0.1.0"
"""Of this environment."""

FRAMEWORK = "0.4.0"
"""The version of atroposlib that this is written for."""

MIB = 2**20
LEAST_MEMORY_MIB = 512
"""Below, some import fails, and the package that it is of would be blamed."""

_PACKAGES = (
    "aiohttp atroposlib click fastapi huggingface_hub isal jinja2 msgspec numpy openai"
    " orjson pydantic rich sympy tenacity tokenizers transformers uvicorn wandb yaml"
)
NEEDED = tuple(_PACKAGES.split())
"""What requirements.txt brings, by the names that are imported; reasoning-gym, which
only workers import, has sentences of its own."""

OURS = ("rg_env", "reasoning_gym_environment")
SHOWN_PACKAGES = 4

_ROOT = Path(__file__).resolve().parents[1]


class InstallationError(ImportError):
    """This Python or machine cannot run the environment; its text is one sentence."""


def check() -> None:
    """Refuse a Python, machine or installation that cannot run this.

    Raises:
        InstallationError: What is wanting, and what to do.
    """
    if sys.version_info < OLDEST_PYTHON:
        raise InstallationError(
            f"Python 3.10 or newer is needed, and {sys.executable} is"
            f" {sys.version.split()[0]}; start this with another one"
            " (`make PYTHON=python3.12` chooses the one of .venv)"
        )
    if sys.platform != "linux":
        raise InstallationError(
            "this environment runs on Linux only, because every command makes its items"
            f" in workers that Linux shuts in, and this machine runs {sys.platform};"
            " use a Linux machine, a container or WSL"
        )
    _check_memory()
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise InstallationError(_missing(missing))


def _check_memory() -> None:
    import resource  # Linux has it

    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if 0 <= limit < LEAST_MEMORY_MIB * MIB:
        raise InstallationError(
            f"this process may use {limit // MIB} MiB of memory (`ulimit -v`), and"
            f" needs {LEAST_MEMORY_MIB} MiB at least; raise the limit"
        )


def explain(error: BaseException) -> str | None:
    """Return the sentence for an import that failed; None if that is our own fault."""
    if isinstance(error, InstallationError):
        return str(error)
    version = _version("atroposlib")
    if version not in ("", FRAMEWORK):
        return (
            f"this environment is written for atroposlib {FRAMEWORK} and does not work"
            f" with {version}, which is installed; {_install()}"
        )
    name = error.name or "" if isinstance(error, ImportError) else ""
    package = name.partition(".")[0] or _raised_in(error)
    said = f"{type(error).__name__}: {error}".strip(": ").splitlines()[0]
    if package in OURS and isinstance(error, ImportError):
        return f"{_ROOT} is not complete ({said}); `git restore .` puts files back"
    if package in (*OURS, "__main__", ""):
        return None
    if isinstance(error, ModuleNotFoundError) and name == package:
        return _missing([package])
    which = f"the installed {package} {_version(package)}".rstrip()
    return f"{which} cannot be used here ({said}); {_install()}"


def _raised_in(error: BaseException) -> str:
    """Return the package whose code raised an exception, "" if it has no traceback."""
    package = ""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        name = str(frame.f_globals.get("__name__", ""))
        if not name.startswith("importlib"):
            package = name.partition(".")[0]
    return package


def _missing(names: list[str]) -> str:
    shown = ", ".join(names[:SHOWN_PACKAGES])
    if len(names) > SHOWN_PACKAGES:
        shown += f" and {len(names) - SHOWN_PACKAGES} more"
    which = f"the package {shown} is" if len(names) == 1 else f"{shown} are"
    return f"{which} not installed for {sys.executable}; {_install()}"


def _install() -> str:
    """Return what to do about a package, which depends on whose Python this is."""
    own = _ROOT / ".venv"
    if (own / "bin" / "python").exists() and Path(
        sys.prefix
    ).resolve() != own.resolve():
        return f"use the Python of .venv: `source {own}/bin/activate`"
    return (
        "`pip install -r requirements.txt` installs what is needed, and `make demo`"
        " does it in an environment of its own, .venv"
    )


def _version(package: str) -> str:
    try:
        return metadata.version(package) if package else ""
    except metadata.PackageNotFoundError:
        return ""
