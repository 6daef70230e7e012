"""The submodule is the library's own repository, at one commit."""

from __future__ import annotations

import configparser
import subprocess
from pathlib import Path

import pytest

URL = "https://github.com/open-thought/reasoning-gym"
COMMIT = "21e6d2a9a581b3e11aafe711abfd37402f8482d5"


def read_gitlink(root: Path) -> list[str]:
    """Mode and commit of the submodule in the index of the checkout."""
    command = ["git", "-c", "safe.directory=*", "ls-files", "--stage", "reasoning-gym"]
    done = subprocess.run(
        command, cwd=root, stdout=subprocess.PIPE, text=True, check=True
    )
    return done.stdout.split()[:2]


def test_the_submodule_is_declared_with_its_path_and_url(repo_root: Path) -> None:
    modules = configparser.ConfigParser()
    modules.read_string((repo_root / ".gitmodules").read_text())
    declared = {name: dict(modules[name]) for name in modules.sections()}
    name = 'submodule "reasoning-gym"'
    assert declared == {name: {"path": "reasoning-gym", "url": URL}}


@pytest.mark.processes
def test_a_checkout_holds_the_submodule_at_its_commit(repo_root: Path) -> None:
    # A copy without git's own data, such as a tarball, has no commit to compare.
    if (repo_root / ".git").exists():
        assert read_gitlink(repo_root) == ["160000", COMMIT]
