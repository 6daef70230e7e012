"""The command line and YAML: values, and the sentence for a wrong one."""

from __future__ import annotations

import ast
import logging
import os
import re
import shlex

import pytest
from atroposlib.envs.server_handling.server_manager import ServerBaseline

from reasoning_gym_environment import ReasoningGymEnv
from rg_env.atropos import served_models
from rg_env.cli import run_commands
from rg_env.errors import SettingError
from tests.support.parts import TOKENIZER, run_main


def parsed(*argv, env_cls=None):
    """Return the settings of a command line of `serve`: environment and servers."""
    command = run_commands.serve(env_cls)
    values = command.make_context("serve", list(argv)).params
    return command.read(values).merged_with(command.defaults)


def yaml_file(folder, text):
    path = folder / "settings.yaml"
    path.write_text(text)
    return str(path)


# -- values ----------------------------------------------------------------------------


VALUES = """
--env.tasks 'gcd, *_sorting'                  | ["gcd", "*_sorting"]
--env.tasks="[gcd, '*_sorting']"              | ["gcd", "*_sorting"]
--env.tasks=None                              | None
--env.task_levels='{gcd: null, lcm: [0, 1]}'  | {"gcd": None, "lcm": [0, 1]}
--env.complexity_mode '[0.2, 0.6]'            | [0.2, 0.6]
--env.complexity_mode 0.3                     | 0.3
--env.reasoning_effort none                   | "none"
--env.reasoning_effort None                   | None
--env.tokenizer_name None                     | "none"
--env.system_prompt 'Think: {first}'          | "Think: {first}"
--env.data_dumps_dir=~/x                      | "/home/me/x"
--env.dump_rollouts --env.seed 3              | True
--env.group-size=4                            | 4
--env.seed=4 --slurm=false --testing=false    | 4
--env.seed=4 --proxy_url=None --max_n_completions=2 | 4
"""
"""Command lines, and the value of the first setting."""


@pytest.mark.parametrize("row", VALUES.strip().splitlines())
def test_the_value_of_an_option_is_yaml_or_text(row, monkeypatch):
    monkeypatch.setenv("HOME", "/home/me")
    line, expected = row.split(" | ")
    field = re.match(r"--env\.([\w-]+)", line)[1].replace("-", "_")
    config, _ = parsed(*shlex.split(line))
    assert getattr(config, field) == ast.literal_eval(expected)


def test_the_command_line_wins_over_yaml_and_yaml_over_defaults(tmp_path):
    text = "env: {group_size: 4, seed: 7, min_batch_allocation: null}\ntesting: false"
    other = "\nopenai: [null]\ntinker: {lora_rank: 32}"  # of another program
    path = yaml_file(tmp_path, text + other)
    config, _ = parsed("--config", path, "--env.seed", "9")
    assert (config.group_size, config.seed, config.total_steps) == (4, 9, 250)
    assert config.min_batch_allocation is None


# -- what is wrong ---------------------------------------------------------------------


def assert_refused(argv, expected, capsys):
    assert run_main(argv, None) == 2
    printed = capsys.readouterr().err
    assert printed.startswith("error: ") and expected in printed
    assert printed.count("\n") == 1
    assert "secret" not in printed


WRONG = """
--env.group_sise 3               | mean one of: '--env.group_size'
--group_size 3                   | '--env.group_size'
--env.seed=-1                    | env.seed: '-1' is not allowed: Input should be gr
--env.seed=x                     | should be a valid integer
--env.task_params=5              | should be a valid dictionary
--env.tokenizer_name=            | '' is not allowed: String should have at
--openai.base_url=host:1/v1      | openai.base_url: 'host:1/v1' is not
--env.max_token_length=100       | more than the 121 words of the system
--openai.server_type vlm         | 'vlm' is not allowed: Input should be 'openai',
screen --least_share=nan         | nan is not a number
--slurm perhaps                  | 'perhaps' is not allowed: Input should be a
--testing                        | testing: Must be false
--proxy_url http://a             | proxy_url: Must be None
--env.task_weights '{a: ['       | env.task_weights: line 1, column 6
--openai.headers='{a: [secret'   | openai.headers: line 1, column 1
--config /nowhere.yaml           | '/nowhere.yaml': No such file
--config .                       | --config: '.': Is a directory
--config /bin/sh                 | can't decode
--env.tasks GCD                  | did you mean 'gcd'?
demo --steps=0                   | 0 is not in the range x>=1
score-server --complexity_mode=x | 'x' is not allowed
procezz                          | Did you mean 'process'
"""
"""Command lines, and what the sentence says."""


@pytest.mark.parametrize("row", WRONG.strip().splitlines())
def test_a_wrong_command_line_is_one_sentence_and_status_2(row, capsys):
    line, expected = map(str.strip, row.split("|"))
    assert_refused(shlex.split(line), expected, capsys)


PLACES = """
serve --env.data_dumps_dir=file
serve --env.data_path_to_save_groups=.
process --env.data_path_to_save_groups=pipe
process --env.data_path_to_save_groups=/dev/full
evaluate --env.data_dir_to_save_evals=file/a
evaluate --env.data_dir_to_save_evals=loop
screen --out=file/a.yaml
launch --launch.model=m --openai.base_url=http://a/v1 --launch.folder=file
demo --dumps=file
rescore a.json --out=pipe
report a.json --out=file/a
export sft a.json --out=file/a
"""
"""Command lines whose last option names a path that cannot be written."""


@pytest.mark.parametrize("line", PLACES.strip().splitlines())
def test_a_place_that_cannot_be_written_is_known_before_any_work(
    line, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    (tmp_path / "loop").symlink_to("loop")
    for name in ("file", "a.json"):
        (tmp_path / name).touch()
    assert run_main(line.split()) == 2
    option = line.split()[-1].partition("=")[0]
    setting = option.removeprefix("--") if "." in option else option
    assert capsys.readouterr().err.startswith(f"error: {setting}")
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "a.json",
        "file",
        "loop",
        "pipe",
    ]


WRONG_FILES = r"""
env: {group_sise: 3}                      | did you mean 'group_size'
env: {}\nenvv: {}                         | did you mean 'env'
- a\n- b                                  | none of the sections `env` and `openai`
tinker: {lora_rank: 32}                   | none of the sections
env: 3                                    | --config.env: 3 is not allowed: Input
env: {group_size: None}                   | None is not allowed: Input should be a
env: {}\ntesting: true                    | testing: Must be false
env: {a: [secret                          | line 1, column 17:
env: {}\nopenai: {}\nenv: {}              | line 3: a second env
env: {seed: 1, seed: 1}                   | a second seed
!!python/object/apply:os.getpid []        | line 1, column 1:
env: 2026-99-99                           | month must be in 1..12
env: {}\ngroup_size: 4                    | unknown option 'group_size'
openai: []                                | --config.openai
openai: [{base_url: http://a}, {base_url: b}] | openai.1.base_url
openai: [3, {api_key: secret}]            | openai
"""
"""Settings files, and what the sentence says."""


@pytest.mark.parametrize("row", WRONG_FILES.strip().splitlines())
def test_a_wrong_yaml_file_is_one_sentence_and_status_2(row, tmp_path, capsys):
    text, expected = map(str.strip, row.split("|"))
    path = yaml_file(tmp_path, text.replace(r"\n", "\n"))
    assert_refused(["--config", path], expected, capsys)


UNKNOWN = """
--env.categories=gamez                 | env.categories: unknown category 'gamez'
--env.task_params='{gcd: {seed_: 1}}'  | env.task_params.gcd:
--env.task_levels='{acre: 0.5}'        | env.task_levels:
evaluate --env.tasks=games             | is a category
tasks gdc                              | unknown task 'gdc'; did you mean 'gcd'
tasks gcd --category games             | no such task is in such a category
tasks --category gams                  | unknown category 'gams'; did you mean
show gdc                               | command line: unknown task 'gdc'
show acre --level=0.5                  | --level: 'acre' has no difficulty scale
"""
"""Command lines that the library refuses, and what the sentence says."""


@pytest.mark.processes
@pytest.mark.parametrize("row", UNKNOWN.strip().splitlines())
def test_an_unknown_task_is_refused_before_a_server_is_queried(
    row, capsys, monkeypatch
):
    queried = []
    monkeypatch.setattr(
        served_models, "list_models", lambda *of, **how: queried.append(of)
    )
    line, expected = map(str.strip, row.split("|"))
    assert_refused(shlex.split(line), expected, capsys)
    assert queried == []


def test_a_section_of_another_program_is_named(tmp_path, logged):
    parsed("--config", yaml_file(tmp_path, "env: {}\nmodel: {name: m}"))
    assert "'model'" in logged.text


# -- servers ---------------------------------------------------------------------------


def test_each_of_several_servers_has_the_defaults(tmp_path):
    text = "openai: [{base_url: 'http://a/v1', weight: 1}, {base_url: 'http://b/v1'}]"
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


@pytest.mark.parametrize(
    ("start", "ports"),
    [
        (lambda servers: servers[0].model_copy(update={"model_name": "own"}), [9004]),
        (lambda servers: ServerBaseline(model_name="own"), [9004, 9005, 9006, 9007]),
    ],
    ids=["one that stands in no list", "the four of a config without an address"],
)
def test_the_default_servers_of_a_class_may_be_no_list(start, ports):
    class Own(ReasoningGymEnv):
        @classmethod
        def config_init(cls):
            env, servers = super().config_init()
            return env, start(servers)

    _, servers = parsed("--openai.timeout=7", env_cls=Own)
    urls = [f"http://localhost:{port}/v1" for port in ports]
    assert [server.base_url for server in servers] == urls
    assert {(server.model_name, server.timeout) for server in servers} == {("own", 7)}


def test_the_log_names_every_server_with_its_model(tmp_path, logged):
    env = f"env: {{tokenizer_name: {TOKENIZER}, use_wandb: false}}\nopenai:"
    text = "".join(f"\n- {{base_url: 'http://{n}/v1', model_name: {n}}}" for n in "ab")
    command = run_commands.evaluate(ReasoningGymEnv)
    argv = ["--config", yaml_file(tmp_path, env + text)]
    values = command.make_context("evaluate", argv).params
    run_commands.build_env(command, command.read(values))
    named = "model a (vllm) at http://a/v1, model b (vllm) at http://b/v1"
    assert named in logged.text


# -- the log and the program -----------------------------------------------------------


@pytest.mark.parametrize(
    ("option", "level"),
    [("-v", logging.DEBUG), ("--env.seed=1", logging.INFO)],
)
def test_the_level_of_the_log_is_an_option(option, level):
    argv = ["--env.tokenizer_name=no/where", "--openai.model_name=m"]
    assert run_main(["evaluate", option, *argv, "--env.use_wandb=false"]) == 2
    assert logging.getLogger("rg_env").level == level
