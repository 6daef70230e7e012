"""Every way of importing and starting the plugin, from a copy of its folder.

The copy lies where people put it: `atropos/environments/reasoning_gym_environment`.
"""

import json
import os
import shutil
import subprocess
import sys

import pytest

from rg_env.installation import VERSION
from tests.support.documents import ROOT

pytestmark = pytest.mark.processes

GUARD_S = 120.0
NAME = "reasoning_gym_environment"
FOLDER = f"atropos/environments/{NAME}"

STYLES = {
    NAME: FOLDER,
    f"environments.{NAME}": "atropos",
    f"environments.{NAME}.{NAME}": "atropos",
    f"atropos.environments.{NAME}": ".",
    f"atropos.environments.{NAME}.{NAME}": ".",
    f"{NAME}.{NAME}": "atropos/environments",
}
"""What is imported, and the folder that has to be on the import path for it."""

TOGETHER = [
    (NAME, f"environments.{NAME}"),
    (f"environments.{NAME}", NAME),
    (f"{NAME}.{NAME}", f"environments.{NAME}"),
]
"""Ways of importing that meet in one process, in this order."""

# The host takes seconds to import. It is imported once, and each case is a fork that
# holds the host and nothing of ours.
DRIVER = """
import importlib, json, os, sys
import atroposlib.envs.base

def try_case(folders, names):
    sys.path[:0] = folders
    modules = [importlib.import_module(name) for name in names]
    classes = [module.ReasoningGymEnv for module in modules]
    return {
        "classes": len(set(classes)),
        "prompts": [module.system_prompt for module in modules],
        "configs": [module.ReasoningGymEnvConfig.__name__ for module in modules],
        "rooms": sys.modules["rg_env"].__path__[0],
    }

for label, (folders, names) in json.loads(sys.argv[1]).items():
    child = os.fork()
    if not child:
        try:
            result = try_case(folders, names)
        except BaseException as error:
            result = {"error": repr(error)}
        os.write(1, json.dumps([label, result]).encode() + b"\\n")
        os._exit(0)
    os.waitpid(child, 0)
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Return a folder that holds `atropos/`, and in it a copy of the plugin."""
    place = tmp_path_factory.mktemp("place")
    shutil.copytree(ROOT / "rg_env", place / FOLDER / "rg_env")
    for file in ROOT.glob("*.py"):
        shutil.copy(file, place / FOLDER)
    return place


def run_elsewhere(place, *arguments, path="."):
    """Run Python in an empty folder; the import path holds a folder of the copy's."""
    elsewhere = place / "elsewhere"
    elsewhere.mkdir(exist_ok=True)
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=elsewhere,
        env=os.environ | {"PYTHONPATH": str(place / path)},
        capture_output=True,
        text=True,
        timeout=GUARD_S,
        check=False,
    )


@pytest.fixture(scope="module")
def results(place):
    """Import in all ways, each in a process of its own; case to what came of it."""
    order = {
        " ".join(names): ([str(place / STYLES[name]) for name in names], names)
        for names in [*zip(STYLES), *TOGETHER]
    }
    done = run_elsewhere(place, "-I", "-c", DRIVER, json.dumps(order))
    assert done.returncode == 0, done.stderr
    return dict(json.loads(line) for line in done.stdout.splitlines())


@pytest.mark.parametrize("names", [*zip(STYLES), *TOGETHER], ids=" then ".join)
def test_the_plugin_can_be_imported_as(names, results, place):
    result = results[" ".join(names)]
    assert "error" not in result, result
    assert result["classes"] == 1
    assert result["rooms"] == str(place / FOLDER / "rg_env")
    assert {*result["configs"]} == {"ReasoningGymEnvConfig"}
    assert "<answer>" in result["prompts"][0]


@pytest.mark.parametrize(
    ("start", "path"),
    [
        ([f"{{place}}/{FOLDER}/{NAME}.py"], "."),
        (["-m", f"atropos.environments.{NAME}.{NAME}"], "."),
        (["-m", f"{NAME}.{NAME}"], "atropos/environments"),
    ],
    ids=["as a file", "as a module", "as a module of the shortest package"],
)
def test_it_starts_from_any_folder_without_a_warning_and_leaves_nothing_there(
    start, path, place
):
    arguments = [word.format(place=place) for word in start]
    done = run_elsewhere(place, *arguments, "--version", path=path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"rg-env {VERSION}\n"
    assert not list((place / "elsewhere").iterdir())
