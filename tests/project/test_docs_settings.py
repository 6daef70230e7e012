"""The tables and samples of settings are those of the code."""

from __future__ import annotations

import re
from enum import Enum

import pytest
import yaml

from reasoning_gym_environment import ReasoningGymEnv
from rg_env.atropos.config import ReasoningGymEnvConfig, ServerSettings
from rg_env.cli import run_commands
from rg_env.cli.settings_command import FIRST
from rg_env.inference.routes import ROUTES
from rg_env.items import worker_jobs
from rg_env.settings.environment_settings import DATA_DUMPS
from rg_env.task_rules.table import TABLE
from rg_env.tasks.scales import load_shipped
from rg_env.tasks.selection import StreamSettings, build_selection
from tests.support.documents import (
    EXAMPLES,
    README,
    ROOT,
    codes,
    name_of,
    table,
    text_of,
)
from tests.support.parts import GUARD_S

SETTINGS = ROOT / "docs" / "settings.md"
TASKS = ROOT / "docs" / "tasks_and_levels.md"
NO_SCALE = {task for task, rules in TABLE.items() if rules.fixed_level} - (
    load_shipped().scales.keys()
)
YAML_EXAMPLES = [path for path in EXAMPLES if path.suffix == ".yaml"]

START, (START_SERVER,) = ReasoningGymEnv.config_init()


def shown(value):
    """Return a default as the table writes it."""
    if isinstance(value, Enum):
        value = value.value
    if value == str(DATA_DUMPS):
        value = DATA_DUMPS.relative_to(ROOT)
    return str(value)


# -- tables ----------------------------------------------------------------------------


def test_what_config_init_sets_of_the_fields_of_atropos_is_named():
    start, default = START, ReasoningGymEnvConfig()
    own = set(re.findall(r"^- \[?`(\w+)`", text_of(SETTINGS), re.M))
    inherited = set(ReasoningGymEnvConfig.model_fields) - own
    changed = {n for n in inherited if getattr(start, n) != getattr(default, n)}
    text = text_of(SETTINGS).split("## What the commands start from")[1]
    assert changed <= set(codes(text.split("\n## ")[0]))


def test_the_settings_of_the_readme_are_first_in_the_help_and_have_its_defaults():
    rows = table("Setting", [README])
    starts = {"env": START, "openai": START_SERVER}
    assert {codes(row[0])[0] for row in rows} <= set(FIRST["serve"].split())
    for setting, value, _ in rows:
        section, name = codes(setting)[0].split(".")
        assert codes(value) == [shown(getattr(starts[section], name))], name


def test_the_fields_of_a_server_are_all_there_with_what_they_start_as():
    start = ServerSettings(**START_SERVER.model_dump())
    section = text_of(SETTINGS).split("## The inference server")[1].split("\n## ")[0]
    assert dict(re.findall(r"^- \[?`(\w+)`.*?, `([^`]*)`", section, re.M)) == {
        name: str(getattr(start, name)) for name in ServerSettings.model_fields
    }


def test_the_table_of_routes_names_them_all():
    named = {codes(path)[0] for path, _ in table("Route")}
    assert {route.path for route in ROUTES} == named


# -- YAML ------------------------------------------------------------------------------


def built(path):
    """Parse YAML through the option parser, and build all models of it."""
    command = run_commands.serve(ReasoningGymEnv)
    values = command.make_context("serve", ["--config", str(path)]).params
    return command.read(values).over(command.start)


@pytest.mark.parametrize("path", YAML_EXAMPLES, ids=name_of)
def test_every_yaml_example_is_accepted(path):
    config, servers = built(path)
    given = yaml.safe_load(path.read_text(encoding="utf-8"))["env"]
    assert servers
    unset = [name for name, value in given.items() if getattr(config, name) is None]
    assert [name for name in unset if given[name] is not None] == []


# -- tasks -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def library(pool):
    return pool.call(worker_jobs.describe_library, deadline_s=GUARD_S)


def refusal_of(pool, choices):
    """Return what the library has against the parameters of chosen tasks."""
    given = [(choice.task, dict(choice.params)) for choice in choices]
    return pool.call(worker_jobs.rejected_params, given, deadline_s=GUARD_S)


@pytest.mark.processes
def test_the_example_of_choosing_tasks_is_accepted_by_the_library(pool, library):
    config, _ = built(ROOT / "examples" / "choose_tasks.yaml")
    choices = build_selection(library, StreamSettings.of(config))
    assert refusal_of(pool, choices) is None


@pytest.mark.processes
def test_the_pages_name_every_category_and_the_number_of_tasks(library):
    named = text_of(TASKS).split("twelve categories:")[1].split(".", 1)[0]
    categories = [
        name for name in named.replace(",", " ").split() if name not in ("and",)
    ]
    assert set(categories) == {info.category for info in library.tasks.values()}
    assert len(categories) == 12
    assert f"all {len(library.tasks)} tasks of" in " ".join(text_of(README).split())


def test_the_tasks_without_a_scale_are_named():
    text = text_of(TASKS).split("Tasks without a scale")[1].split(")", 1)[0]
    named = set(text.split("(")[1].replace(",", " ").split())
    assert named == NO_SCALE - {"composite"}


def test_the_task_whose_scale_changes_nothing_is_named():
    dead = [task for task, scale in load_shipped().scales.items() if scale.is_dead]
    assert [f"so does {task}, whose items" in text_of(TASKS) for task in dead] == [True]
