"""`--help`, and what is answered before the framework is imported."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from atroposlib.envs.base import BaseEnvConfig

from reasoning_gym_environment import ReasoningGymEnv, ReasoningGymEnvConfig
from rg_env.atropos.config import ServerSettings
from rg_env.cli.main import COMMANDS, NAME
from rg_env.cli.settings_command import FIRST
from rg_env.settings import environment_settings
from rg_env.settings.environment_settings import GROUPS, CheckedSettings
from rg_env.settings.program_settings import CheckedServer
from tests.support.parts import ENTRY, run_main

EXPORTS = ("export items", "export sft", "export preferences")


def printed(capsys, *argv, env_cls=ReasoningGymEnv):
    assert run_main(argv, env_cls) == 0
    return capsys.readouterr().out


def test_the_models_without_the_framework_have_every_field_of_those_with_it():
    assert {*CheckedSettings.model_fields} == {*ReasoningGymEnvConfig.model_fields}
    assert {*CheckedServer.model_fields} == {*ServerSettings.model_fields}
    assert {*BaseEnvConfig.model_fields} <= {*CheckedSettings.model_fields}


def test_every_field_says_what_it_is():
    for model in (CheckedSettings, CheckedServer):
        assert all(field.description for field in model.model_fields.values())


@pytest.mark.parametrize("command", [*COMMANDS, *EXPORTS])
def test_help_of_every_command_shows_an_example_that_is_a_command_line(command, capsys):
    shown = printed(capsys, *command.split(), "--help")
    assert shown.startswith(f"Usage: {NAME} {command}")
    if command != "export":  # a group, whose commands have their own
        assert shown.index("Example:") < shown.index("--help")
    example = " ".join(shown.split("Example:\n")[1].split())
    assert example.startswith(f"python {NAME} {command} ")


@pytest.mark.parametrize("command", FIRST)
def test_help_of_a_command_shows_its_own_options_and_its_ten_settings(command, capsys):
    shown = printed(capsys, *command.split(), "--help")
    first = FIRST[command].split()
    assert [name for name in first if f"--{name} " not in shown] == []
    settings = shown.split("Settings (10 of")[1]
    assert len(re.findall(r"--(env|openai|launch)\.", settings)) == 10
    assert "--slurm" not in shown and "--testing" not in shown
    own = {"evaluate": "--json", "screen": "--groups"}
    assert shown.index(own.get(command, "--config")) <= shown.index("--config FILE")


def test_help_all_lists_every_field_in_groups_with_the_server_first(capsys):
    shown = printed(capsys, "process", "--help-all")
    fields = [f"--env.{name} " for name in ReasoningGymEnvConfig.model_fields]
    fields += [f"--openai.{name} " for name in ServerSettings.model_fields]
    assert [field for field in fields if field not in shown] == []
    titles = [str(group.__doc__).split("\n")[0] for group in (CheckedServer, *GROUPS)]
    places = [shown.index(f"\n{title.rstrip('.')}:\n") for title in titles]
    assert places == sorted(places)
    assert "[data/reasoning_gym.jsonl]" in shown  # what the command starts from


def test_help_of_a_subclass_shows_its_own_options(capsys):
    class MoreConfig(ReasoningGymEnvConfig):
        patience: int = 3

    class More(ReasoningGymEnv):
        env_config_cls = MoreConfig

        @classmethod
        def config_init(cls):
            _, servers = super().config_init()
            return MoreConfig(**environment_settings.START), servers

    shown = printed(capsys, "serve", "--help-all", env_cls=More)
    assert shown.index("Others") < shown.index("--env.patience INT")
    assert run_main(["serve", "--env.patience=many"], More) == 2
    assert "env.patience: 'many' is not allowed" in capsys.readouterr().err


@pytest.mark.processes
@pytest.mark.parametrize(
    ("command", "status"), [("serve --help", 0), ("process --env.tasks gdc", 2)]
)
def test_a_command_line_is_checked_without_the_framework(command, status):
    done = subprocess.run(
        [sys.executable, "-X", "importtime", str(ENTRY), *command.split()],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == status
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    heavy = {"atroposlib.envs", "transformers", "wandb", "reasoning_gym", "polars"}
    assert imported & heavy == set()
