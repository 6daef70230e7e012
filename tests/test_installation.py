"""A Python, a machine or an installation that cannot run this says so in a sentence."""

import ast
import os
import subprocess
import sys

import pytest
from packaging.requirements import Requirement

from rg_env import installation
from tests.support.parts import ENTRY, GUARD_S

SEEN_BY_AN_OLD_PYTHON = (
    "reasoning_gym_environment.py",
    "rg_env/__init__.py",
    "rg_env/cli/console.py",
    "rg_env/cli/error_reports.py",
    "rg_env/errors.py",
    "rg_env/installation.py",
)


def run_entry(*argv, **environment):
    return subprocess.run(
        [sys.executable, *argv],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=GUARD_S,
    )


def refusal(*packages):
    with pytest.raises(ImportError) as caught:
        installation.check(packages)
    return str(caught.value)


def test_the_needed_packages_are_those_of_requirements_txt(repo_root):
    lines = (repo_root / "requirements.txt").read_text().splitlines()
    texts = [line.partition("#")[0].strip() for line in lines]
    brought = {Requirement(text).name for text in texts if text} - {"reasoning-gym"}
    imported = {"pyyaml": "yaml", "huggingface-hub": "huggingface_hub"}
    assert set(installation.NEEDED) == {imported.get(name, name) for name in brought}


@pytest.mark.parametrize("file", SEEN_BY_AN_OLD_PYTHON)
def test_an_old_python_can_parse_the_modules_before_the_check(file, repo_root):
    ast.parse((repo_root / file).read_text(), feature_version=(3, 8))


def test_an_old_python_is_told_which_one_is_needed(monkeypatch):
    monkeypatch.setattr(sys, "version_info", (3, 9, 18))
    assert "Python 3.10 or newer is needed" in refusal()


def test_another_system_than_linux_is_refused_with_the_reason(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    assert "runs on Linux only, because" in refusal()


def test_missing_packages_are_named_all_at_once():
    assert refusal("json", "no_one", "no_two").startswith(
        f"not installed for {sys.executable}: no_one, no_two"
    )


EXPLAINED = {
    "a package that is not there": (
        ModuleNotFoundError("No module named 'no_one'", name="no_one"),
        "the package no_one cannot be used",
    ),
    "a package that lacks something": (
        ImportError("cannot import name 'x' from 'rich.table'", name="rich.table"),
        "the package rich cannot be used",
    ),
}


@pytest.mark.parametrize("case", EXPLAINED)
def test_an_import_that_fails_is_explained(case):
    error, expected = EXPLAINED[case]
    assert expected in str(installation.explain(error))
    assert "[export]'` installs it" in str(installation.explain(error, "export"))


@pytest.mark.processes
@pytest.mark.parametrize("command", ["serve", "--help"])
def test_without_the_packages_a_command_ends_in_one_sentence(command):
    done = run_entry("-S", str(ENTRY), command)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: not installed for ")
    assert done.stderr.count("\n") == 1


@pytest.mark.processes
def test_an_incompatible_atropos_is_named_with_its_version(tmp_path):
    (tmp_path / "atroposlib").mkdir()
    (tmp_path / "atroposlib" / "__init__.py").touch()
    about = tmp_path / "atroposlib-0.3.0.dist-info"
    about.mkdir()
    metadata = "Metadata-Version: 2.1\nName: atroposlib\nVersion: 0.3.0\n"
    (about / "METADATA").write_text(metadata)
    done = run_entry(str(ENTRY), "process", PYTHONPATH=str(tmp_path))
    assert done.returncode == 2
    assert "is needed, found 0.3.0" in done.stderr
    assert len(done.stderr.splitlines()) == 1
