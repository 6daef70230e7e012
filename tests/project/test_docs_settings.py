"""The tables and samples of settings and tasks, and counts, are those of the code."""

import pytest
import yaml

from reasoning_gym_environment import ReasoningGymEnv
from rg_env.cli import run_commands
from rg_env.cli.options import SHOWN_IN_HELP
from rg_env.inference.protocols import ROUTES
from rg_env.library import registry
from rg_env.library.scales import load_shipped
from rg_env.stream.task_selection import StreamSettings, build_selection
from rg_env.task_rules.table import TABLE
from tests.support.documents import (
    EXAMPLES,
    README,
    ROOT,
    codes,
    name_of,
    table,
    text_of,
)

TASKS = ROOT / "docs" / "tasks_and_levels.md"
SETTINGS_FILES = [path for path in EXAMPLES if path.suffix == ".yaml"]


def test_the_settings_of_the_readme_are_first_in_the_help_and_have_its_defaults():
    start, (server,) = ReasoningGymEnv.config_init()
    rows = table("Setting", [README])
    assert {codes(row[0])[0] for row in rows} <= {*SHOWN_IN_HELP["serve"].split()}
    for setting, value, _ in rows:
        section, name = codes(setting)[0].split(".")
        model = {"env": start, "openai": server}[section]
        assert codes(value) == [str(getattr(model, name))], name


def test_the_table_of_routes_names_them_all():
    named = {codes(path)[0] for path, _ in table("Route")}
    assert {route.path for route in ROUTES} == named


def built(path):
    """Return the settings of the environment, and of the servers, of a file."""
    command = run_commands.serve(ReasoningGymEnv)
    values = command.make_context("serve", ["--config", str(path)]).params
    return command.read(values).merged_with(command.defaults)


@pytest.mark.parametrize("path", SETTINGS_FILES, ids=name_of)
def test_every_yaml_example_is_accepted(path):
    config, servers = built(path)
    given = yaml.safe_load(path.read_text(encoding="utf-8"))["env"]
    assert servers
    unset = [name for name, value in given.items() if getattr(config, name) is None]
    assert [name for name in unset if given[name] is not None] == []


def test_the_example_of_choosing_tasks_is_accepted_by_the_library():
    settings = StreamSettings.from_config(
        built(ROOT / "examples" / "choose_tasks.yaml")[0]
    )
    choices = build_selection(registry.describe(), settings)
    given = [(choice.task, choice.params) for choice in choices]
    assert registry.rejected_params(given) is None


def test_the_pages_name_every_category_and_the_number_of_tasks():
    named = text_of(TASKS).split("twelve categories:")[1].split(".", 1)[0]
    categories = {*named.replace(",", " ").split()} - {"and"}
    tasks = registry.describe().tasks
    assert categories == {info.category for info in tasks.values()}
    assert f"all {len(tasks)} tasks of" in " ".join(text_of(README).split())


def test_the_tasks_without_a_scale_are_named():
    text = text_of(TASKS).split("Tasks without a scale")[1].split(")", 1)[0]
    fixed = {task for task, rules in TABLE.items() if rules.fixed_level}
    lacking = fixed - load_shipped().scales.keys() - {"composite"}
    assert {*text.split("(")[1].replace(",", " ").split()} == lacking


def test_the_counts_of_tasks_and_levels_are_those_of_the_table_of_scales():
    scales = load_shipped().scales.values()
    works = sum(len(step.levels) for scale in scales for step in scale.steps)
    levels = works + sum(len(scale.skipped) for scale in scales)
    changing = sum(not scale.is_constant for scale in scales)
    page = " ".join(text_of(ROOT / "docs" / "measurements.md").split())
    of_tasks = f"{len(scales)} of 105 tasks have a scale of levels, and in {changing}"
    assert of_tasks in page
    assert f"{works} of {levels} levels of the library work" in page
