"""Values of options: what a text means, and the sentence for what is not allowed."""

from __future__ import annotations

import click
import pytest

from rg_env.cli import settings_command
from rg_env.cli.main import PROGRAM
from tests.support.parts import run_main


def env_of(*argv):
    """Return the settings that a command line of `serve` gives."""
    command = settings_command.serve(None)
    values = command.make_context("serve", list(argv)).params
    return settings_command.read(command, values).build_env(command.start)


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (["--env.tasks", "gcd, *_sorting"], ["gcd", "*_sorting"]),
        (["--env.tasks=*_sorting"], ["*_sorting"]),
        (["--env.tasks=[gcd, '*_sorting']"], ["gcd", "*_sorting"]),
        (["--env.tasks=None"], None),
        (["--env.task_weights", "{gcd: 2}"], {"gcd": 2.0}),
        (["--env.task_levels={gcd: null, lcm: [0, 1]}"], {"gcd": None, "lcm": [0, 1]}),
        (["--env.complexity_mode", "[0.2, 0.6]"], [0.2, 0.6]),
        (["--env.complexity_mode", "0.3"], 0.3),
        (["--env.complexity_mode", "None"], None),
        (["--env.min_batch_allocation=null"], None),
        (["--env.reasoning_effort", "none"], "none"),
        (["--env.reasoning_effort", "None"], None),
        (["--env.tokenizer_name", "None"], "none"),
        (["--env.total_steps", "-1"], -1),
        (["--env.system_prompt", "Think: {first}"], "Think: {first}"),
        (["--env.dump_rollouts", "--env.seed", "3"], True),
        (["--env.use_wandb=off"], False),
        (["--env.group-size=4"], 4),
        (["--env.seed", "1", "--env.seed=2"], 2),
    ],
)
def test_the_value_of_an_option_is_yaml_or_text(argv, expected):
    field = argv[0].partition("=")[0].removeprefix("--env.").replace("-", "_")
    assert getattr(env_of(*argv), field) == expected


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (["--env.group_sise", "3"], "one of: '--env.group_size'"),
        (["--group_size", "3"], "'--env.group_size'"),  # without its section
        (["--env.seed=-1"], "env.seed: '-1' is not allowed; Input should be greater"),
        (["--env.complexity_mode", "rondom"], "'random'?"),
        (["--openai.server_type", "vlm"], "'vlm' is not one of 'openai'"),
        (["--slurm", "maybe"], "'maybe' is not a valid boolean"),
        (["--env.task_weights", "{a: ["], "env.task_weights: line 1, column 6"),
        (["--env.task_weights", "gcd"], "Input should be a valid dictionary"),
        (["--openai.headers={a: [secret"], "openai.headers: line 1, column 1"),
        (["--config", "/nowhere.yaml"], "'/nowhere.yaml': No such file"),
        (["--env.tasks", "GCD"], "did you mean 'gcd'?"),
        (["demo", "--step", "3"], "'--steps'?"),
        (["demo", "--batch_size=9"], "is no multiple of"),
        (["show", "gcd", "--param", "x"], "NAME=VALUE"),
        (["show", "gcd", "--param", "x=["], "no YAML value"),
        (["simulated-server", "--complexity_mode", "hard"], "'hard' is not allowed"),
        (["procezz"], "Did you mean 'process'"),
    ],
)
def test_a_wrong_command_line_is_one_sentence_and_status_2(argv, expected, capsys):
    assert run_main(argv, None) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: ") and expected in said
    assert said.count("\n") == 1
    assert "secret" not in said


def test_hyphens_in_the_name_of_a_command_mean_underscores():
    assert PROGRAM.get_command(click.Context(PROGRAM), "run_api").name == "run-api"
