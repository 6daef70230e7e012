"""Which room may know which, read from the source, and what an import costs."""

import re
import sys

import pytest

import rg_env
from rg_env.library import worker_jobs
from tests.support.documents import ROOT
from tests.support.imported_names import imports_of, top_names
from tests.support.worker_attacks import run_script

ENTRY = ("__init__.py", "reasoning_gym_environment.py")
HEAVY = {"atroposlib", "reasoning_gym", "torch", "transformers", "wandb"}
GUARD_S = 120.0

LEAVES = {"shutdown", "errors", "installation", "logs", "executor", "line_file"}
LEAVES |= {"group_encoding", "places", "serving"}
CORE = {"task_rules", "reward", "workers", "library", "stream"}
RULES = """
    shutdown: errors
    group_encoding: executor
    line_file: places
    logs: errors
    places: shutdown errors
    serving: errors logs
    task_rules: errors
    reward: errors task_rules
    workers: errors logs
    library: errors task_rules reward workers
    stream: LEAVES CORE
    settings: LEAVES CORE
    inference: LEAVES reward settings
    run: LEAVES CORE
    results: LEAVES CORE run settings
    adapters: LEAVES CORE settings run results NAMES
    atropos: LEAVES CORE settings inference run results
    demo: LEAVES CORE inference
    launch: LEAVES workers settings run results
    cli: LEAVES CORE settings run results adapters atropos demo launch
"""
SEVERAL = {"LEAVES": LEAVES, "CORE": CORE, "NAMES": set(rg_env.__all__)}
MAY_IMPORT = {leaf: set() for leaf in LEAVES}
for room, names in re.findall(r"(\w+): (.+)", RULES):
    rooms = (SEVERAL.get(name, {name}) for name in names.split())
    MAY_IMPORT[room] = set().union(*rooms)
"""Room to the other rooms that it may know; the entry may know all."""

MAY_IMPORT_THE_HOST = {"inference", "atropos", "cli", "demo"}
LIGHT_ROOMS = LEAVES | CORE | {"run", "results"}
"""It imports what it names, when it is asked for it."""

SCORING = {"task_rules", "reward"}
"""The package inside the house that could be published alone: rules of tasks and what
becomes a reward of a text. Its two rooms know `errors` and each other, in one
direction, and of other packages one alone, but where a rule needs the library's own."""

SCORING_PACKAGES = {"msgspec"}
SCORING_PACKAGES_OF_THE_LIBRARY = {"bfi", "cellpylib", "numpy", "pycosat", "sympy"}

FILES = sorted(
    str(path.relative_to(ROOT))
    for path in [*(ROOT / name for name in ENTRY), *(ROOT / "rg_env").rglob("*.py")]
)


def room_of(dotted):
    """Return the second part of a dotted name, "" where there is none."""
    return dotted.partition(".")[2].partition(".")[0]


def own_room(file):
    return room_of(file.removesuffix(".py").replace("/", "."))


def test_every_room_has_its_rule():
    rooms = {own_room(f) for f in FILES if f.startswith("rg_env/")}
    assert rooms - {"__init__"} == set(MAY_IMPORT)


@pytest.mark.parametrize("room", sorted(MAY_IMPORT))
def test_a_room_knows_only_the_rooms_before_it(room):
    for file in (f for f in FILES if own_room(f) == room):
        names = imports_of(ROOT / file)
        known = {room_of(n) for n in names if n.split(".")[0] == "rg_env"}
        assert known - {room} <= MAY_IMPORT[room], file


def test_scoring_is_entered_by_the_names_that_architecture_md_lists():
    names = "|".join(SCORING)
    page = (ROOT / "docs/architecture.md").read_text()
    listed = set(re.findall(rf"`rg_env/((?:{names})/\w+)\.py` \(", page))
    entered = {
        "/".join(name.split(".")[1:3])
        for file in FILES
        for name in imports_of(ROOT / file)
        if room_of(name) in SCORING and own_room(file) not in SCORING
    }
    assert entered == listed


def test_scoring_needs_one_package_besides_those_of_the_library():
    files = [ROOT / file for file in FILES if own_room(file) in SCORING]
    outside = set.union(*map(top_names, files)) - sys.stdlib_module_names - {"rg_env"}
    assert outside == SCORING_PACKAGES | SCORING_PACKAGES_OF_THE_LIBRARY


IMPORTERS = {
    "": [],  # a relative import
    "reasoning_gym": ["rg_env/library/registry.py"],
    # The program: by its name, for the commands that need it.
    "reasoning_gym_environment": ["__init__.py", "rg_env/cli/console.py"],
}


@pytest.mark.parametrize(("name", "files"), IMPORTERS.items())
def test_a_name_is_imported_by_these_files_alone(name, files):
    assert [f for f in FILES if name in top_names(ROOT / f)] == files


def test_the_host_is_imported_by_the_outer_rooms_alone():
    files = {f for f in FILES if "atroposlib" in top_names(ROOT / f)}
    assert {own_room(f) for f in files - set(ENTRY)} <= MAY_IMPORT_THE_HOST


@pytest.mark.processes
def test_importing_every_inner_module_brings_neither_host_nor_library(tmp_path):
    light = [f.removesuffix(".py") for f in FILES if own_room(f) in LIGHT_ROOMS]
    names = [f.removesuffix("/__init__").replace("/", ".") for f in light]
    script = f"import {', '.join(names)}, sys; print(*sys.modules)"
    held = run_script(tmp_path, script).split()
    assert not {name.split(".")[0] for name in held} & HEAVY


@pytest.mark.processes
def test_a_worker_that_made_an_entry_holds_the_library_and_not_the_host(other_pool):
    import reasoning_gym_environment  # noqa: F401 - the owner of the pool holds it all

    other_pool.call(worker_jobs.make_entry, "chain_sum", {}, 1, deadline_s=GUARD_S)
    source = "sorted(__import__('sys').modules)"
    held = other_pool.call(eval, source, deadline_s=GUARD_S)
    assert {name.split(".")[0] for name in held} & HEAVY == {"reasoning_gym"}
