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
from rg_env.cli.options import SHOWN_IN_HELP
from rg_env.settings import environment_settings
from rg_env.settings.environment_settings import CheckedSettings
from rg_env.settings.server_and_launch_settings import CheckedServer
from tests.support.parts import ENTRY, run_main

EXPORTS = ("export items", "export sft")


def printed(capsys, *argv, env_cls=ReasoningGymEnv):
    assert run_main(argv, env_cls) == 0
    return capsys.readouterr().out


def test_the_models_of_options_have_every_field_of_the_framework():
    assert {*CheckedSettings.model_fields} == {*ReasoningGymEnvConfig.model_fields}
    assert {*CheckedServer.model_fields} == {*ServerSettings.model_fields}
    assert {*BaseEnvConfig.model_fields} <= {*CheckedSettings.model_fields}
    for model in (CheckedSettings, CheckedServer):
        assert all(field.description for field in model.model_fields.values())


@pytest.mark.parametrize("command", [*COMMANDS, *EXPORTS])
def test_help_of_every_command_shows_an_example_that_is_a_command_line(command, capsys):
    text = printed(capsys, *command.split(), "--help")
    assert text.startswith(f"Usage: {NAME} {command}")
    example = " ".join(text.split("Example:\n")[1].split())
    assert example.startswith(f"python {NAME} {command} ")


@pytest.mark.parametrize("command", SHOWN_IN_HELP)
def test_help_shows_the_first_settings_of_a_command_and_help_all_all(command, capsys):
    shown = re.compile(r"^ +--((?:env|openai|launch)\.\w+) ", re.M)
    first = {*shown.findall(printed(capsys, command, "--help"))}
    assert first == {*SHOWN_IN_HELP[command].split()}
    every = shown.findall(printed(capsys, command, "--help-all"))
    fields = [f"env.{name}" for name in ReasoningGymEnvConfig.model_fields]
    assert {*every} >= {*fields, *(f"openai.{n}" for n in ServerSettings.model_fields)}


def test_help_of_a_subclass_shows_its_options_and_defaults(capsys):
    class MoreConfig(ReasoningGymEnvConfig):
        patience: int = 3

    class More(ReasoningGymEnv):
        name = "more"
        env_config_cls = MoreConfig

        @classmethod
        def config_init(cls):
            _, servers = super().config_init()
            return MoreConfig(**environment_settings.DEFAULTS), servers

    text = printed(capsys, "process", "--help-all", env_cls=More)
    assert "--env.patience INT" in text and "[data/more.jsonl]" in text
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
