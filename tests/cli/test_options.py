"""The command line and YAML: what a text means, and the sentence for what is wrong."""

from __future__ import annotations

import logging

import pytest

from reasoning_gym_environment import ReasoningGymEnv
from rg_env.cli import run_commands
from rg_env.errors import SettingError
from tests.support.parts import run_main


def parsed(*argv, env_cls=None):
    """Return the settings of a command line of `serve`: environment and servers."""
    command = run_commands.serve(env_cls)
    values = command.make_context("serve", list(argv)).params
    return command.read(values).over(command.start)


def yaml_file(folder, text):
    path = folder / "settings.yaml"
    path.write_text(text)
    return str(path)


# -- values ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (["--env.tasks", "gcd, *_sorting"], ["gcd", "*_sorting"]),
        (["--env.tasks=[gcd, '*_sorting']"], ["gcd", "*_sorting"]),
        (["--env.tasks=None"], None),
        (["--env.task_levels={gcd: null, lcm: [0, 1]}"], {"gcd": None, "lcm": [0, 1]}),
        (["--env.complexity_mode", "[0.2, 0.6]"], [0.2, 0.6]),
        (["--env.complexity_mode", "0.3"], 0.3),
        (["--env.reasoning_effort", "none"], "none"),
        (["--env.reasoning_effort", "None"], None),
        (["--env.tokenizer_name", "None"], "none"),
        (["--env.system_prompt", "Think: {first}"], "Think: {first}"),
        (["--env.data_dumps_dir=~/x"], "/home/me/x"),
        (["--env.dump_rollouts", "--env.seed", "3"], True),
        (["--env.group-size=4"], 4),
    ],
)
def test_the_value_of_an_option_is_yaml_or_text(argv, expected, monkeypatch):
    monkeypatch.setenv("HOME", "/home/me")
    field = argv[0].partition("=")[0].removeprefix("--env.").replace("-", "_")
    assert getattr(parsed(*argv)[0], field) == expected


def test_the_command_line_wins_over_yaml_and_yaml_over_defaults(tmp_path):
    text = "env: {group_size: 4, seed: 7, min_batch_allocation: null}"
    other = "\ntinker: {lora_rank: 32}"  # of another program
    path = yaml_file(tmp_path, text + other)
    config, _ = parsed("--config", path, "--env.seed", "9")
    assert (config.group_size, config.seed, config.total_steps) == (4, 9, 250)
    assert config.min_batch_allocation is None


# -- what is wrong ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (["--env.group_sise", "3"], "one of: '--env.group_size'"),
        (["--group_size", "3"], "'--env.group_size'"),  # without its section
        (["--env.seed=-1"], "env.seed: '-1' is not allowed; Input should be greater"),
        (["--openai.server_type", "vlm"], "'vlm' is not allowed; Input should be"),
        (["--slurm", "perhaps"], "'perhaps' is not a valid boolean"),
        (["--env.task_weights", "{a: ["], "env.task_weights: line 1, column 6"),
        (["--openai.headers={a: [secret"], "openai.headers: line 1, column 1"),
        (["--config", "/nowhere.yaml"], "'/nowhere.yaml': No such file"),
        (["--env.tasks", "GCD"], "did you mean 'gcd'?"),
        (["demo", "--batch_size=9"], "is no multiple of"),
        (["score-server", "--complexity_mode", "hard"], "'hard' is not allowed"),
        (["procezz"], "Did you mean 'process'"),
    ],
)
def test_a_wrong_command_line_is_one_sentence_and_status_2(argv, expected, capsys):
    assert run_main(argv, None) == 2
    printed = capsys.readouterr().err
    assert printed.startswith("error: ") and expected in printed
    assert printed.count("\n") == 1
    assert "secret" not in printed


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("env: {group_sise: 3}", "did you mean 'group_size'"),
        ("env: {}\nenvv: {}", "did you mean 'env'"),
        ("- a\n- b", "none of the sections `env` and `openai`"),
        ("tinker: {lora_rank: 32}", "none of the sections"),
        ("env: 3", "--config.env: 3 is not allowed"),
        ("env: {}\ntesting: true", "--config.testing: True is not allowed"),
        ("env: {a: [", "line 1, column 11"),
        ("env: {}\ngroup_size: 4", "unknown option 'group_size'"),
        ("openai: []", "--config.openai"),
        ("openai: [{base_url: 'http://a/v1'}, {base_url: b}]", "openai.1.base_url"),
        ("openai: [3, {api_key: secret}]", "openai"),
    ],
)
def test_a_wrong_yaml_file_is_one_sentence_and_status_2(
    text, expected, tmp_path, capsys
):
    assert run_main(["serve", "--config", yaml_file(tmp_path, text)], None) == 2
    printed = capsys.readouterr().err
    assert printed.startswith("error: ") and expected in printed
    assert printed.count("\n") == 1
    assert "secret" not in printed


# -- servers ---------------------------------------------------------------------------


def test_several_servers_stand_on_the_default_one_each(tmp_path):
    text = "openai: [{base_url: 'http://a/v1'}, {base_url: 'http://b/v1'}]"
    path = yaml_file(tmp_path, text)
    _, servers = parsed("--config", path)
    assert [server.base_url for server in servers] == ["http://a/v1", "http://b/v1"]
    assert {server.server_type for server in servers} == {"vllm"}
    with pytest.raises(SettingError, match="a list of servers"):
        parsed("--config", path, "--openai.model_name", "x")


def test_an_openai_endpoint_is_not_queried_for_its_health_unless_told():
    argv = ["--openai.server_type", "openai"]
    both = [parsed(*argv, *more)[1] for more in ([], ["--openai.health_check=true"])]
    assert [server.health_check for (server,) in both] == [False, True]


def test_a_class_may_start_from_one_server_that_stands_in_no_list():
    class Own(ReasoningGymEnv):
        @classmethod
        def config_init(cls):
            env, (server,) = super().config_init()
            return env, server

    _, (server,) = parsed("--openai.timeout", "7", env_cls=Own)
    assert server.timeout == 7


# -- the log and the program -----------------------------------------------------------


@pytest.mark.parametrize(
    ("option", "level"),
    [("-q", logging.WARNING), ("-v", logging.DEBUG), ("--env.seed=1", logging.INFO)],
)
def test_the_level_of_the_log_is_an_option(option, level):
    argv = ["--env.tokenizer_name=/nowhere", "--openai.model_name=m"]
    assert run_main(["evaluate", option, *argv, "--env.use_wandb=false"]) == 2
    assert logging.getLogger("rg_env").level == level
