"""The command line and YAML: what is accepted, and the sentence for what is not."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest
from atroposlib.envs.server_handling.server_manager import (
    APIServerConfig,
    ServerBaseline,
)

from reasoning_gym_environment import ReasoningGymEnv, ReasoningGymEnvConfig
from rg_env.cli import settings_command
from rg_env.cli.command import loaded
from rg_env.errors import SettingError
from tests.support.parts import ENTRY, TOKENIZER, run_main


def parsed(*argv, env_cls=ReasoningGymEnv):
    """Parse a command line of `serve`."""
    command = settings_command.serve(env_cls)
    values = command.make_context("serve", list(argv)).params
    return settings_command.read(command, values)


def env_of(*argv):
    """Return the settings that a command line of `serve` gives."""
    config: ReasoningGymEnvConfig
    config = parsed(*argv).build_env(settings_command.serve(ReasoningGymEnv).start)
    return config


def servers_of(*argv, env_cls=ReasoningGymEnv):
    start = settings_command.serve(env_cls).start
    return parsed(*argv, env_cls=env_cls).build_servers(start)


def yaml_file(folder, text):
    path = folder / "settings.yaml"
    path.write_text(text)
    return str(path)


REFUSED_YAML = {
    "unknown key": ("env: {group_sise: 3}", "did you mean 'group_size'"),
    "unknown server key": ("openai: {base_ur: x}", "did you mean 'base_url'"),
    "misspelt section": ("env: {}\nenvv: {}", "did you mean 'env'"),
    "no sections": ("- a\n- b", "none of the sections `env` and `openai`"),
    "empty": ("", "none of the sections"),
    "sections of others alone": ("tinker: {lora_rank: 32}", "none of the sections"),
    "section that is no map": ("env: 3", "--config.env: 3 is not allowed"),
    "broken": ("env: {a: [", "line 1, column 11"),
    "value": ("env: {group_size: 0}", "env.group_size: 0 is not allowed"),
    "field at the top": ("env: {}\ngroup_size: 4", "unknown section 'group_size'"),
    "flag": ("env: {}\nslurm: maybe", "--config.slurm: 'maybe' is not allowed"),
    "empty list of servers": ("openai: []", "--config.openai"),
    "one of several servers": (
        "openai: [{base_url: 'http://a/v1'}, {base_url: b}]",
        "openai.1.base_url",
    ),
    "several servers that are none": ("openai: [3, {api_key: secret}]", "openai"),
}


@pytest.mark.parametrize("case", REFUSED_YAML)
def test_a_wrong_yaml_file_ends_in_one_sentence_and_status_2(case, tmp_path, capsys):
    text, expected = REFUSED_YAML[case]
    assert run_main(["serve", "--config", yaml_file(tmp_path, text)], None) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: ") and expected in said
    assert said.count("\n") == 1
    assert "\x1b" not in said and "secret" not in said


def test_a_command_says_at_once_that_it_imports_the_framework(caplog):
    caplog.set_level(logging.INFO)
    seen = loaded(lambda: caplog.messages.copy())
    assert seen == ["importing Atropos, which takes some seconds"]


def test_wandb_without_a_login_stops_serve(monkeypatch, capsys):
    monkeypatch.setattr("rg_env.atropos.start_checks.has_wandb_login", lambda: False)
    assert run_main(["serve"]) == 2
    assert "wandb login" in capsys.readouterr().err


@pytest.mark.processes
@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--env.tasks=gdc"], "env.tasks: unknown task 'gdc'; did you mean 'gcd'"),
        (
            ["--env.tasks=gcd", "--env.task_params={gcd: {max_numberz: 3}}"],
            "env.task_params.gcd: unknown parameter",
        ),
    ],
)
def test_what_the_library_does_not_know_is_refused_and_leaves_no_file(
    tmp_path, monkeypatch, capsys, argv, said
):
    monkeypatch.chdir(tmp_path)
    small = [f"--env.tokenizer_name={TOKENIZER}", "--env.use_wandb=false"]
    small.append("--openai.model_name=m")
    assert run_main(["process", *small, *argv]) == 2
    assert said in capsys.readouterr().err
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_null_is_a_value_in_yaml(tmp_path):
    path = yaml_file(tmp_path, "env: {min_batch_allocation: null}")
    assert env_of("--config", path).min_batch_allocation is None


def test_the_command_line_wins_over_yaml_and_yaml_over_defaults(tmp_path):
    path = yaml_file(tmp_path, "env: {group_size: 4, seed: 7}")
    config = env_of("--config", path, "--env.seed", "9")
    assert (config.group_size, config.seed, config.total_steps) == (4, 9, 250)


def test_a_section_of_another_program_is_left_alone(tmp_path):
    path = yaml_file(tmp_path, "env: {seed: 7}\ntinker: {lora_rank: 32}")
    assert env_of("--config", path).seed == 7


@pytest.mark.parametrize("field", ["data_dumps_dir", "data_path_to_save_groups"])
def test_a_tilde_in_a_path_is_the_home_of_who_runs_it(field, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", "/home/me")
    path = yaml_file(tmp_path, f"env: {{{field}: ~/x}}")
    assert getattr(env_of("--config", path), field) == "/home/me/x"
    assert getattr(env_of(f"--env.{field}=~/x"), field) == "/home/me/x"


def test_several_servers_stand_on_the_default_one_each(tmp_path):
    text = "openai: [{base_url: 'http://a/v1'}, {base_url: 'http://b/v1'}]"
    servers = servers_of("--config", yaml_file(tmp_path, text))
    assert [server.base_url for server in servers] == ["http://a/v1", "http://b/v1"]
    assert {server.server_type for server in servers} == {"vllm"}


def test_server_options_and_several_servers_exclude_each_other(tmp_path):
    path = yaml_file(tmp_path, "openai: [{base_url: a}, {base_url: b}]")
    with pytest.raises(SettingError, match="a list of servers"):
        parsed("--config", path, "--openai.model_name", "x")


def test_an_openai_endpoint_is_not_queried_for_its_health_unless_told():
    (quiet,) = servers_of("--openai.server_type", "openai")
    (asked,) = servers_of(
        "--openai.server_type", "openai", "--openai.health_check", "true"
    )
    assert (quiet.health_check, asked.health_check) == (False, True)


def starting_from(servers):
    """Return a class that starts from what a function makes of the server of ours."""

    class Own(ReasoningGymEnv):
        @classmethod
        def config_init(cls):
            env, (server,) = super().config_init()
            return env, servers(server)

    return Own


OTHER = APIServerConfig(base_url="http://b/v1", server_type="vllm")


@pytest.mark.parametrize(
    ("servers", "count"),
    [
        (lambda server: server, 1),
        (lambda server: [server, OTHER], 2),
        (lambda server: ServerBaseline(model_name="m", server_type="vllm"), 1),
    ],
)
def test_whatever_servers_a_class_starts_from_are_those_of_the_run(servers, count):
    found = servers_of("--openai.timeout", "7", env_cls=starting_from(servers))
    assert [server.timeout for server in found] == [7] * count
    assert len({str(server) for server in found}) == count


def test_what_does_nothing_is_said(tmp_path, caplog):
    path = yaml_file(tmp_path, "proxy_url: x\nenv: {seed: 3}")
    parsed("--config", path, "--max_n_completions", "3")
    assert [record.args for record in caplog.records] == [
        ("max_n_completions",),
        ("proxy_url",),
    ]


@pytest.mark.parametrize(
    ("option", "level"),
    [("-q", logging.WARNING), ("-v", logging.DEBUG), ("--env.seed=1", logging.INFO)],
)
def test_the_level_of_the_log_is_an_option(option, level, capsys):
    argv = [
        "evaluate",
        option,
        "--env.tokenizer_name=/nowhere",
        "--openai.model_name=m",
    ]
    assert run_main([*argv, "--env.use_wandb=false"]) == 2
    assert logging.getLogger("rg_env").level == level


@pytest.mark.processes
def test_the_program_is_a_command_of_its_own():
    """As a shell completes it; `python` would be what it completed otherwise."""
    done = subprocess.run(
        [ENTRY, "--version"],
        capture_output=True,
        text=True,
        timeout=120,
        env={
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        },
    )
    assert (done.returncode, done.stderr) == (0, "")
