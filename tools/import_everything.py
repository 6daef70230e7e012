"""Import every module and run the README's example, with the Python that runs this.

    make oldest

It holds the promise of pyproject.toml about the oldest Python. An adapter whose trainer
is not installed is compiled, and executed down to the import of that package.
"""

import importlib
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# The first that each adapter imports of its trainer.
TRAINERS = {"accelerate", "chz", "httpx", "inspect_ai", "openenv", "ray", "verifiers"}
EXPECTED = "[1.0]\n"


def absent_package(module: str) -> str | None:
    """Import a module; return the trainer's package that it lacks, if it lacks one."""
    try:
        importlib.import_module(module)
    except ModuleNotFoundError as error:
        package = str(error.name).partition(".")[0]
        if package in TRAINERS:
            return package
        raise
    return None


def example_output() -> str:
    """Return the output of the README's example of the library."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(from rg_env import.*?)```", readme, re.S)
    argv = [sys.executable, "-c", example]
    return subprocess.run(
        argv, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True
    ).stdout


def main() -> None:
    """Fail with a traceback where something cannot be imported."""
    paths = [*ROOT.glob("reasoning_gym_*.py"), *ROOT.glob("rg_env/**/*.py")]
    files = sorted(path.relative_to(ROOT).with_suffix("") for path in paths)
    names = [".".join(file.parts) for file in files if file.name != "__init__"]
    for name in names:
        if package := absent_package(name):
            print(f"{name} is executed down to the import of {package}")
    said = example_output()
    assert said == EXPECTED, f"the README's example printed {said!r}"
    version = ".".join(map(str, sys.version_info[:3]))
    print(f"Python {version}: {len(names)} modules and the README's example")


if __name__ == "__main__":
    main()
