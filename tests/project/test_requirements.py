"""The lists of dependencies say what the code imports, and name no place."""

import re
import sys
from importlib import import_module
from importlib.metadata import distribution

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import rg_env
from tests.support.imported_names import top_names
from tests.support.worker_attacks import run_script

PYTHONS = ["3.10", "3.11", "3.12", "3.13"]
LISTS = ["requirements.txt", "requirements-dev.txt", "constraints.txt"]
OF_THE_LIBRARY = {"bfi", "cellpylib", "pycosat"}
"""What reasoning-gym brings; imported by their names as text."""

EXTRAS = {
    "server": "cli.server_commands adapters.http serving",
    "export": "cli.export_command cli.result_commands adapters.dataset_export",
    "ray": "results.rescoring",
    "report": "results.report",
    "": "cli.main cli.console cli.error_reports cli.task_commands",
}
"""Extra, or none, to the modules of the commands that need nothing else."""


def read_requirements(path):
    lines = (line.split("#")[0].strip() for line in path.read_text().splitlines())
    return [Requirement(line) for line in lines if line and not line.startswith("-r")]


def provided_modules(requirement):
    """Top-level names that an installed distribution brings, from its own file list."""
    files = distribution(requirement.name).files or []
    return {f.parts[0].split(".")[0] for f in files if f.suffix in {".py", ".so"}}


def test_the_requirements_are_what_the_code_imports(repo_root):
    sources = [*repo_root.glob("rg_env/**/*.py"), *repo_root.glob("reasoning_gym*.py")]
    adapters = repo_root / "rg_env/adapters"  # whose packages are extras
    sources = [path for path in sources if adapters not in path.parents]
    imported = set().union(*map(top_names, sources))
    declared = read_requirements(repo_root / "requirements.txt")
    provided = set().union(*map(provided_modules, declared))
    imported -= {"rg_env", "reasoning_gym_environment", *OF_THE_LIBRARY}
    assert imported - sys.stdlib_module_names <= provided
    assert [r.name for r in declared if not provided_modules(r) & imported] == []


def project_of(root):
    text = (root / "pyproject.toml").read_text()
    toml = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    return toml.loads(text)["project"]


@pytest.mark.processes
@pytest.mark.parametrize("extra", EXTRAS)
def test_the_commands_of_an_extra_import_its_packages_only(repo_root, tmp_path, extra):
    of_extra = project_of(repo_root)["optional-dependencies"].get(extra, [])
    brought = {Requirement(line).name for line in of_extra}
    brought |= {"click", "msgspec", "numpy", "pyyaml", "rich", "sympy"}  # the core
    listed = [*read_requirements(repo_root / "requirements.txt")]
    others = [r for r in listed if r.name not in brought]
    missing = sorted(set().union(*map(provided_modules, others)))
    names = ", ".join(f"rg_env.{name}" for name in EXTRAS[extra].split())
    source = f"import sys; sys.modules.update(dict.fromkeys({missing})); import {names}"
    run_script(tmp_path, source)


def test_the_package_requires_what_requirements_txt_does(repo_root):
    project = project_of(repo_root)
    listed = read_requirements(repo_root / "requirements.txt")
    extra = map(Requirement, project["optional-dependencies"]["atropos"])
    assert sorted(map(str, extra)) == sorted(map(str, listed))
    core = {Requirement(line).name for line in project["dependencies"]}
    assert core == {"click", "msgspec", "reasoning-gym", "rich"}


def test_the_version_and_the_pythons_are_the_same_everywhere(repo_root):
    project = project_of(repo_root)
    assert project["version"] == rg_env.__version__
    prefix = "Programming Language :: Python :: "
    named = [c for c in project["classifiers"] if c.startswith(prefix)]
    assert named == [prefix + python for python in PYTHONS]
    workflow = yaml.safe_load((repo_root / ".github/workflows/tests.yml").read_text())
    assert workflow["jobs"]["tests"]["strategy"]["matrix"]["python"] == PYTHONS


@pytest.mark.parametrize("python", PYTHONS)
def test_the_lock_holds_one_allowed_version_of_every_requirement(repo_root, python):
    # The highest patch release stands for all: no marker asks for a patch release.
    machine = {"python_version": python, "python_full_version": f"{python}.99"}
    pins = {}
    for pin in read_requirements(repo_root / "constraints.txt"):
        if pin.marker is None or pin.marker.evaluate(machine):
            assert canonicalize_name(pin.name) not in pins
            (exact,) = pin.specifier
            assert exact.operator == "=="
            pins[canonicalize_name(pin.name)] = exact.version
    for wanted in read_requirements(repo_root / "requirements.txt") + read_requirements(
        repo_root / "requirements-dev.txt"
    ):
        assert pins[canonicalize_name(wanted.name)] in wanted.specifier, wanted


@pytest.mark.parametrize("name", LISTS)
def test_lists_name_no_host_and_no_path(repo_root, name):
    lines = (repo_root / name).read_text().splitlines()
    placed = re.compile(r"://| @ |^\s*(--|-[ifec]\b|\.{0,2}/|[A-Za-z]:\\)")
    assert [line for line in lines if placed.search(line)] == []
