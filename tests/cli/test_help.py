"""`--help`, and what is answered before the framework is imported."""

from __future__ import annotations

import subprocess
import sys

import pytest
from atroposlib.envs.base import BaseEnvConfig
from parts import ENTRY, run_main

from reasoning_gym_environment import ReasoningGymEnv, ReasoningGymEnvConfig
from rg_env.atropos import defaults
from rg_env.atropos.server_settings import ServerSettings
from rg_env.cli import option_table
from rg_env.cli.option_groups import GROUPS, SERVER_GROUP

FRAMEWORK_GROUP = GROUPS[-1]


def test_the_table_that_is_written_down_is_that_of_the_models(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("RANK", "WORLD_SIZE", "SLURM_PROCID", "SLURM_NTASKS"):
        monkeypatch.delenv(name, raising=False)
    table = option_table.describe(defaults.env_config(), defaults.servers()[0])
    assert option_table.TABLE_FILE.read_text("utf-8") == option_table.as_json(table)


def test_a_table_of_another_framework_is_not_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    option_table.read_table.cache_clear()
    monkeypatch.setattr(option_table.metadata, "version", lambda _name: "0.5.0")
    try:
        assert option_table.read_table() is None
    finally:
        option_table.read_table.cache_clear()


def test_every_option_stands_in_one_group() -> None:
    grouped = [name for group in GROUPS for name in group.names]
    assert sorted(grouped) == sorted(ReasoningGymEnvConfig.model_fields)
    assert sorted(SERVER_GROUP.names) == sorted(ServerSettings.model_fields)


def test_the_options_of_atropos_come_after_our_own(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert set(FRAMEWORK_GROUP.names) == set(BaseEnvConfig.model_fields)
    assert run_main(["serve", "--help"]) == 0
    said = capsys.readouterr().out
    places = [said.index(f"{g.title}:\n  {g.line}") for g in (*GROUPS, SERVER_GROUP)]
    assert places == sorted(places)


def test_help_shows_what_the_command_starts_from(
    capsys: pytest.CaptureFixture[str],
) -> None:
    run_main(["process", "--help"])
    assert "data/reasoning_gym.jsonl" in capsys.readouterr().out


def test_help_of_a_subclass_shows_its_own_options(
    capsys: pytest.CaptureFixture[str],
) -> None:
    class MoreConfig(ReasoningGymEnvConfig):
        patience: int = 3

    class More(ReasoningGymEnv):
        env_config_cls = MoreConfig

        @classmethod
        def config_init(cls):  # type: ignore[no-untyped-def]
            _, servers = super().config_init()
            return MoreConfig(**defaults.env_config().model_dump()), servers

    assert run_main(["serve", "--help"], More) == 0
    said = capsys.readouterr().out
    assert said.index("others:") < said.index("--env.patience INT")


@pytest.mark.processes
@pytest.mark.parametrize(
    ("command", "status"),
    [
        ("serve --help", 0),
        ("demo --help", 0),
        ("process --env.tasks gdc", 2),
        ("demo --step 3", 2),
        ("serve --env.seed many", 2),
        ("--env.group_sise 3", 2),
        ("process --config /no/such/file", 2),
        ("evaluate --env.seed", 2),
    ],
)
def test_what_needs_no_environment_is_answered_without_the_framework(
    command: str, status: int
) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", str(ENTRY), *command.split()],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == status
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert (
        imported & {"atroposlib.envs", "transformers", "wandb", "reasoning_gym"}
        == set()
    )
