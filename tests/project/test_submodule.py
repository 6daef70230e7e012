"""The submodule is the library's own repository, at one commit."""

import subprocess

import pytest

URL = "https://github.com/open-thought/reasoning-gym"
COMMIT = "21e6d2a9a581b3e11aafe711abfd37402f8482d5"


@pytest.mark.processes
def test_the_submodule_is_the_library_at_its_commit(repo_root):
    declared = (repo_root / ".gitmodules").read_text().split()
    assert declared[1:] == f'"reasoning-gym"] path = reasoning-gym url = {URL}'.split()
    # A copy without git's own data, such as a tarball, has no commit to compare.
    if (repo_root / ".git").exists():
        git = ["git", "-c", "safe.directory=*", "ls-files", "--stage", "reasoning-gym"]
        listed = subprocess.check_output(git, cwd=repo_root, text=True)
        assert listed.split()[:2] == ["160000", COMMIT]
