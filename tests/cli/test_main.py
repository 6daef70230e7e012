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


def refusal(capsys, *argv, env_cls=ReasoningGymEnv):
    """Return the one line that refuses a command line."""
    assert run_main(argv, env_cls) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: ")
    assert said.count("\n") == 1
    return said


REFUSED = {
    "unknown option": (["--env.group_sise", "3"], "Did you mean '--env.group_size'"),
    "unknown server option": (["--openai.base_ur", "x"], "'--openai.base_url'"),
    "without its section": (["--group_size", "3"], "'--env.group_size'"),
    "unlike any option": (["--openai.nope", "3"], "No such option '--openai.nope'.\n"),
    "no value": (["--env.seed"], "'--env.seed' requires an argument"),
    "stray word": (["--env.seed", "3", "gcd"], "unexpected extra argument (gcd)"),
    "below the range": (
        ["--env.seed=-1"],
        "env.seed: '-1' is not allowed; expected a number greater",
    ),
    "above the range": (["--env.eval_limit_ratio", "2"], "env.eval_limit_ratio"),
    "no number": (
        ["--env.group_size", "many"],
        "'many' is not allowed; expected a valid integer",
    ),
    "weight of zero": (["--env.inference_weight", "0"], "greater than 0"),
    "mode that is not there": (["--env.complexity_mode", "rondom"], "'random'?"),
    "level outside the scale": (["--env.complexity_mode", "1.5"], "a level in 0 to 1"),
    "level of a task": (
        ["--env.task_levels", "{gcd: hard}"],
        "gcd: 'hard' is not allowed",
    ),
    "shard that is not there": (["--env.shard_index", "2"], "num_shards"),
    "server type": (["--openai.server_type", "vlm"], "'vllm'"),
    "flag": (["--slurm", "maybe"], "true or false"),
    "broken map": (["--env.task_weights", "{a: ["], "no YAML value"),
    "no such file": (["--config", "/nowhere.yaml"], "/nowhere.yaml"),
    "other capitals": (["--env.tasks", "GCD"], "did you mean 'gcd'?"),
    "no such user": (["--env.data_dumps_dir=~nobody_here/x"], "expected a path"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_wrong_command_line_ends_in_one_sentence_and_status_2(case, capsys):
    argv, expected = REFUSED[case]
    command = ["serve", "--env.use_wandb", "false", *argv]
    assert expected in refusal(capsys, *command, env_cls=None)


REFUSED_YAML = {
    "unknown key": ("env: {group_sise: 3}", "did you mean 'group_size'"),
    "unknown server key": ("openai: {base_ur: x}", "did you mean 'base_url'"),
    "misspelt section": ("env: {}\nenvv: {}", "did you mean 'env'"),
    "no sections": ("- a\n- b", "none of the sections `env` and `openai`"),
    "empty": ("", "none of the sections"),
    "sections of others alone": ("tinker: {lora_rank: 32}", "none of the sections"),
    "section that is no map": ("env: 3", "must map names to values"),
    "broken": ("env: {a: [", "line 1, column 11"),
    "value": ("env: {group_size: 0}", "env.group_size"),
    "field at the top": (
        "env: {seed: 3}\ngroup_size: 4",
        "'group_size' is outside a section; move 'group_size' to the section `env`",
    ),
    "field of the server at the top": (
        "env: {}\nbase_url: http://a/v1",
        "move 'base_url' to the section `openai`",
    ),
    "dotted field": ("env: {}\nenv.seed: 3", "move 'seed' to the section `env`"),
    "no map at the top": ("env: {}\nnotes: [a, b]", "unknown section 'notes'"),
    "key that steers a terminal": (
        'env: {task_weights: {"\\e[2J": many}}',
        "env.task_weights.\\x1b[2J",
    ),
    "empty section": ("env: 0", "must map names to values"),
    "false as a section": ("openai: false", "must map names to values"),
    "empty list of servers": ("openai: []", "openai: at least one server is needed"),
    "one of several servers": (
        "openai: [{base_url: 'http://a/v1'}, {base_url: b}]",
        "openai.1.base_url: 'b' is not allowed",
    ),
    "section that steers a terminal": ('env: {}\n"\\e[2J": 1', "\\x1b[2J"),
}


@pytest.mark.parametrize("case", REFUSED_YAML)
def test_a_wrong_yaml_file_ends_in_one_sentence_and_status_2(case, tmp_path, capsys):
    text, expected = REFUSED_YAML[case]
    argv = ["--config", yaml_file(tmp_path, text), "--env.use_wandb", "false"]
    said = refusal(capsys, "serve", *argv)
    assert expected in said
    assert "\x1b" not in said


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (["procezz"], "Did you mean 'process'"),
        (["--env.seed", "1", "process"], "'process' must come first"),
        (["-v", "process"], "'process' must come first"),
        (["--env.group_sise=3"], "'--env.group_size'"),  # without a command it is serve
    ],
)
def test_a_command_that_is_not_there_or_elsewhere_is_refused(argv, expected, capsys):
    assert expected in refusal(capsys, *argv)


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


@pytest.mark.parametrize("word", ["None", "null"])
def test_none_is_a_value_on_the_command_line(word):
    config = env_of(f"--env.min_batch_allocation={word}", "--env.complexity_mode", word)
    assert (config.min_batch_allocation, config.complexity_mode) == (None, None)


def test_null_is_a_value_in_yaml(tmp_path):
    path = yaml_file(tmp_path, "env: {min_batch_allocation: null}")
    assert env_of("--config", path).min_batch_allocation is None


def test_minus_one_is_a_number_and_no_option():
    assert env_of("--env.total_steps", "-1").total_steps == -1
    assert env_of("--env.total_steps=-1").total_steps == -1


def test_an_option_without_a_value_is_true():
    config = env_of("--env.dump_rollouts", "--env.seed", "3", "--env.use_wandb=false")
    assert (config.dump_rollouts, config.use_wandb) == (True, False)


def test_lists_and_maps_can_be_written_on_the_command_line():
    config = env_of("--env.tasks", "gcd, *_sorting", "--env.task_weights", "{gcd: 2}")
    assert config.tasks == ["gcd", "*_sorting"]
    assert config.task_weights == {"gcd": 2.0}
    assert env_of("--env.complexity_mode", "[0.2, 0.6]").complexity_mode == [0.2, 0.6]


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


@pytest.mark.parametrize(
    ("servers", "said"),
    [("[{base_url: a}, {base_url: b}]", "a list of servers"), ("[]", "at least one")],
)
def test_server_options_and_several_servers_exclude_each_other(tmp_path, servers, said):
    path = yaml_file(tmp_path, f"openai: {servers}")
    with pytest.raises(SettingError, match=said):
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


def test_a_word_shows_the_help_of_a_command(capsys):
    assert run_main(["help", "doctor"]) == 0
    assert "doctor [OPTIONS]" in capsys.readouterr().out


def test_what_does_nothing_is_said(tmp_path, caplog):
    path = yaml_file(tmp_path, "proxy_url: x\nenv: {seed: 3}")
    parsed("--config", path, "--max_n_completions", "3")
    assert [record.args for record in caplog.records] == [
        ("max_n_completions",),
        ("proxy_url",),
    ]


def test_an_option_may_be_given_twice_and_with_hyphens():
    argv = ["--env.seed", "1", "--env.group-size=4", "--env.seed=2", "--env.seed=3"]
    config = env_of(*argv)
    assert (config.seed, config.group_size) == (3, 4)


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
