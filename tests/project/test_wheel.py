"""The wheel: what it holds, where it works, and what can be installed beside it."""

import re
import subprocess
import sys
import zipfile

import pytest

from tests.support.commands import run_command

pytestmark = [pytest.mark.commands, pytest.mark.processes]

LIMIT_S = 200.0
SCRIPT = """\
import sys
from rg_env import Item, Tasks, score
item = Item.from_json(next(Tasks("gcd", levels="random")).to_json())
print([result.value for result in score(item, [f"<answer>{item.gold}</answer>", "no"])])
foreign = {"aiohttp", "atroposlib", "openai", "pydantic", "torch", "transformers"}
print(foreign & {name.partition(".")[0] for name in sys.modules})
"""


LIGHT = ("--version", "tasks gcd", "show gcd", "doctor gcd")
"""Commands that need no extra."""


def run(*argv, folder):
    return run_command(folder, *argv, limit_s=LIMIT_S)


@pytest.fixture(scope="module")
def uv(tmp_path_factory):
    folder = tmp_path_factory.mktemp("uv")
    pip = (sys.executable, "-m", "pip", "install", "--quiet")
    run(*pip, "--target", folder, "uv", folder=folder)
    return folder / "bin" / "uv"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory, repo_root, uv):
    folder = tmp_path_factory.mktemp("wheel")
    # By the sdist.
    run(uv, "build", "--quiet", "--out-dir", folder, repo_root, folder=folder)
    (found,) = folder.glob("*.whl")
    return found


def test_it_holds_every_file_of_the_program_and_nothing_else(wheel, repo_root):
    listing = run("git", "ls-files", "rg_env", "*.py", folder=repo_root).split()
    program = [p for p in listing if p.startswith(("rg_env/", "reasoning_gym_"))]
    names = zipfile.ZipFile(wheel).namelist()
    assert sorted(n for n in names if ".dist-info/" not in n) == sorted(program)


def test_the_index_page_is_valid_and_has_absolute_links(wheel, uv):
    twine = (uv, "tool", "run", "twine", "check", "--strict")
    run(*twine, *wheel.parent.glob("rg_env-*"), folder=wheel.parent)
    archive = zipfile.ZipFile(wheel)
    (page,) = (n for n in archive.namelist() if n.endswith("/METADATA"))
    links = re.findall(r"\]\(([^)]+)\)", archive.read(page).decode())
    assert links and [link for link in links if not link.startswith("https://")] == []


def test_it_scores_in_an_environment_that_holds_nothing_else(wheel, tmp_path):
    venv, pip = (sys.executable, "-m", "venv"), (sys.executable, "-m", "pip")
    run(*venv, "--without-pip", tmp_path / "venv", folder=tmp_path)
    python = tmp_path / "venv/bin/python"
    install = ("install", "--quiet", "--no-compile", wheel)
    run(*pip, "--python", python, *install, folder=tmp_path)
    (tmp_path / "script.py").write_text(SCRIPT)
    assert run(python, "script.py", folder=tmp_path) == "[1.0, 0.0]\nset()\n"
    command = python.with_name("rg-env")
    for words in LIGHT:
        run(command, *words.split(), folder=tmp_path)
    for name, extra in {"score-server": "server", "serve": "atropos"}.items():
        refused = subprocess.run([command, name], stderr=subprocess.PIPE, text=True)
        assert refused.returncode == 2
        assert f"pip install 'rg-env[{extra}]'" in refused.stderr


@pytest.mark.parametrize(
    ("trainer", "python"),
    [("trl", "3.11"), ("verifiers", "3.11"), ("verl", "3.12"), ("nemo-gym", "3.13")],
)
def test_the_newest_release_of_a_trainer_can_be_installed_beside_it(
    wheel, uv, tmp_path, trainer, python
):
    def versions(wanted, *options):
        (tmp_path / "wanted.txt").write_text(wanted)
        how = ("--quiet", "--no-header", "--no-annotate", "--python-version", python)
        argv = (uv, "pip", "compile", *how, *options, "wanted.txt")
        return run(*argv, folder=tmp_path).splitlines()

    (newest,) = versions(trainer, "--no-deps")
    ours = f"rg-env @ file://{wheel}"
    assert newest in versions(f"{trainer}\n{ours}")
