"""The command line and YAML: what is accepted, and the sentence for what is not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from parts import ENTRY, TOKENIZER, run_main

from reasoning_gym_environment import ReasoningGymEnv, ReasoningGymEnvConfig
from rg_env.cli import atropos_options, options
from rg_env.cli.main import COMMANDS, glance
from rg_env.cli.option_table import describe
from rg_env.errors import SettingError


def parsed(*argv: str) -> options.Options:
    """Parse a command line of `serve`."""
    env, servers = ReasoningGymEnv.config_init()
    return atropos_options.parse("serve", argv, describe(env, servers[0]))


def env_of(*argv: str) -> ReasoningGymEnvConfig:
    """Return the settings that a command line of `serve` gives."""
    env, _ = ReasoningGymEnv.config_init()
    given = parsed(*argv).env
    config: ReasoningGymEnvConfig = options.build_model(
        "env", ReasoningGymEnvConfig, env.model_dump(), given
    )
    return config


def yaml_file(folder: Path, text: str) -> str:
    path = folder / "settings.yaml"
    path.write_text(text)
    return str(path)


REFUSED = {
    "unknown option": (["--env.group_sise", "3"], "did you mean '--env.group_size'"),
    "unknown server option": (["--openai.base_ur", "x"], "'--openai.base_url'"),
    "stray word": (["--env.seed", "3", "gcd"], "unexpected 'gcd'"),
    "below the range": (["--env.seed=-1"], "env.seed"),
    "above the range": (["--env.eval_limit_ratio", "2"], "env.eval_limit_ratio"),
    "no number": (["--env.group_size", "many"], "found 'many'"),
    "weight of zero": (["--env.inference_weight", "0"], "above 0"),
    "mode that is not there": (["--env.complexity_mode", "rondom"], "'random'?"),
    "level outside the scale": (["--env.complexity_mode", "1.5"], "a level in 0 to 1"),
    "level of a task": (["--env.task_levels", "{gcd: hard}"], "gcd: allowed are"),
    "shard that is not there": (["--env.shard_index", "2"], "num_shards"),
    "server type": (["--openai.server_type", "vlm"], "'vllm'"),
    "flag": (["--slurm", "maybe"], "true or false"),
    "broken map": (["--env.task_weights", "{a: ["], "no YAML value"),
    "no such file": (["--config", "/nowhere.yaml"], "/nowhere.yaml"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_wrong_command_line_ends_in_one_sentence_and_status_2(
    case: str, capsys: pytest.CaptureFixture[str]
) -> None:
    argv, expected = REFUSED[case]
    status = run_main(["serve", "--env.use_wandb", "false", *argv])
    said = capsys.readouterr().err.strip()
    assert status == 2
    assert said.startswith("error: ")
    assert expected in said
    assert "\n" not in said


REFUSED_YAML = {
    "unknown key": ("env: {group_sise: 3}", "did you mean 'group_size'"),
    "unknown server key": ("openai: {base_ur: x}", "did you mean 'base_url'"),
    "misspelt section": ("environment: {}\nenvv: {}", "did you mean 'env'"),
    "no sections": ("- a\n- b", "must hold sections"),
    "section that is no map": ("env: 3", "must map names to values"),
    "broken": ("env: {a: [", "line 1, column 11"),
    "value": ("env: {group_size: 0}", "env.group_size"),
}


@pytest.mark.parametrize("case", REFUSED_YAML)
def test_a_wrong_yaml_file_ends_in_one_sentence_and_status_2(
    case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text, expected = REFUSED_YAML[case]
    argv = ["--config", yaml_file(tmp_path, text), "--env.use_wandb", "false"]
    assert run_main(["serve", *argv]) == 2
    said = capsys.readouterr().err.strip()
    assert expected in said
    assert "\n" not in said


def test_an_unknown_command_names_the_nearest(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run_main(["procezz"]) == 2
    assert "did you mean 'process'" in capsys.readouterr().err


def test_a_tokenizer_that_is_not_there_is_refused_with_the_way_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = [f"--env.tokenizer_name={tmp_path}", "--env.use_wandb=false"]
    assert run_main(["serve", *argv]) == 2
    assert "folder that holds its tokenizer.json" in capsys.readouterr().err


def test_a_dump_folder_that_cannot_be_written_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    in_the_way = tmp_path / "file"
    in_the_way.touch()
    argv = [f"--env.data_dumps_dir={in_the_way}", "--env.dump_rollouts"]
    status = run_main(
        ["serve", *argv, f"--env.tokenizer_name={TOKENIZER}", "--env.use_wandb=false"]
    )
    assert status == 2
    assert "env.data_dumps_dir" in capsys.readouterr().err


def test_wandb_without_a_login_stops_serve(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("rg_env.atropos.start_checks.has_wandb_login", lambda: False)
    assert run_main(["serve"]) == 2
    assert "wandb login" in capsys.readouterr().err


@pytest.mark.processes
def test_a_refused_process_leaves_no_file(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    argv = [f"--env.tokenizer_name={TOKENIZER}", "--env.use_wandb=false"]
    assert run_main(["process", *argv, "--env.tasks", "gdc"]) == 2
    assert (
        "env.tasks: unknown task 'gdc'; did you mean 'gcd'" in capsys.readouterr().err
    )
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


@pytest.mark.processes
def test_unknown_dataset_parameters_are_refused_with_the_nearest(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    argv = [f"--env.tokenizer_name={TOKENIZER}", "--env.use_wandb=false"]
    argv += ["--env.tasks=gcd", "--env.task_params", "{gcd: {max_numberz: 3}}"]
    assert run_main(["process", *argv]) == 2
    assert "env.task_params.gcd: unknown parameter" in capsys.readouterr().err


def test_none_is_a_value_on_the_command_line() -> None:
    config = env_of("--env.min_batch_allocation", "None", "--env.wandb_name=None")
    assert (config.min_batch_allocation, config.wandb_name) == (None, None)


def test_null_is_a_value_in_yaml(tmp_path: Path) -> None:
    path = yaml_file(tmp_path, "env: {min_batch_allocation: null}")
    assert env_of("--config", path).min_batch_allocation is None


def test_minus_one_is_a_number_and_no_option() -> None:
    assert env_of("--env.total_steps", "-1").total_steps == -1
    assert env_of("--env.total_steps=-1").total_steps == -1


def test_an_option_without_a_value_is_true() -> None:
    assert env_of("--env.dump_rollouts", "--env.seed", "3").dump_rollouts is True


def test_lists_and_maps_can_be_written_on_the_command_line() -> None:
    config = env_of("--env.tasks", "gcd, *_sorting", "--env.task_weights", "{gcd: 2}")
    assert config.tasks == ["gcd", "*_sorting"]
    assert config.task_weights == {"gcd": 2.0}


def test_the_command_line_wins_over_yaml_and_yaml_over_defaults(tmp_path: Path) -> None:
    path = yaml_file(tmp_path, "env: {group_size: 4, seed: 7}")
    config = env_of("--config", path, "--env.seed", "9")
    assert (config.group_size, config.seed, config.total_steps) == (4, 9, 250)


def test_a_section_of_another_program_is_left_alone(tmp_path: Path) -> None:
    path = yaml_file(tmp_path, "env: {seed: 7}\ntinker: {lora_rank: 32}")
    assert env_of("--config", path).seed == 7


def test_several_servers_stand_on_the_default_one_each(tmp_path: Path) -> None:
    text = "openai: [{base_url: 'http://a/v1'}, {base_url: 'http://b/v1'}]"
    _, defaults = ReasoningGymEnv.config_init()
    given = parsed("--config", yaml_file(tmp_path, text)).openai
    servers = options.build_servers(defaults[0], given)
    assert [server.base_url for server in servers] == ["http://a/v1", "http://b/v1"]
    assert {server.server_type for server in servers} == {"vllm"}


def test_server_options_and_several_servers_exclude_each_other(tmp_path: Path) -> None:
    path = yaml_file(tmp_path, "openai: [{base_url: a}, {base_url: b}]")
    with pytest.raises(SettingError, match="several servers"):
        parsed("--config", path, "--openai.model_name", "x")


def test_an_openai_endpoint_is_not_asked_for_its_health_unless_told() -> None:
    _, defaults = ReasoningGymEnv.config_init()
    (quiet,) = options.build_servers(defaults[0], {"server_type": "openai"})
    told = {"server_type": "openai", "health_check": "true"}
    (asked,) = options.build_servers(defaults[0], told)
    assert (quiet.health_check, asked.health_check) == (False, True)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_every_command_is_printed_with_status_0(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_main([command, "--help"]) == 0
    assert f"reasoning_gym_environment.py {command}" in capsys.readouterr().out


def test_help_of_serve_lists_every_field(capsys: pytest.CaptureFixture[str]) -> None:
    run_main(["serve", "--help"])
    said = capsys.readouterr().out
    assert [
        f for f in ReasoningGymEnvConfig.model_fields if f"--env.{f}" not in said
    ] == []


@pytest.mark.processes
def test_the_general_help_lists_every_command() -> None:
    done = subprocess.run(
        [sys.executable, str(ENTRY), "--help"],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert [name for name in COMMANDS if name not in done.stdout] == []
    assert done.stderr == ""


def test_no_command_means_serve(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_main(["--env.group_sise=3"]) == 2
    assert "--env.group_size" in capsys.readouterr().err


def test_an_empty_list_of_servers_is_refused(tmp_path: Path) -> None:
    _, (default,) = ReasoningGymEnv.config_init()
    given = parsed("--config", yaml_file(tmp_path, "openai: []")).openai
    with pytest.raises(SettingError, match="openai: found no server"):
        options.build_servers(default, given)


def test_the_fault_of_one_of_several_servers_says_which(tmp_path: Path) -> None:
    _, (default,) = ReasoningGymEnv.config_init()
    text = "openai: [{base_url: 'http://a/v1'}, {base_url: b}]"
    given = parsed("--config", yaml_file(tmp_path, text)).openai
    with pytest.raises(SettingError, match=r"openai\.1\.base_url: found 'b'"):
        options.build_servers(default, given)


@pytest.mark.parametrize("text", ["env: 0", "env: []", "openai: ''", "openai: false"])
def test_a_section_that_is_no_map_is_refused_even_if_it_is_empty(
    text: str, tmp_path: Path
) -> None:
    with pytest.raises(SettingError, match="must map names to values"):
        parsed("--config", yaml_file(tmp_path, text))


def test_what_does_nothing_is_said(tmp_path: Path) -> None:
    path = yaml_file(tmp_path, "proxy_url: x\nenv: {seed: 3}")
    given = parsed("--config", path, "--max_n_completions", "3")
    assert given.ignored == ("max_n_completions", "proxy_url")


def test_an_option_that_is_given_twice_is_refused() -> None:
    with pytest.raises(SettingError, match=r"--env\.seed: it is given twice"):
        parsed("--env.seed", "1", "--env.seed=2")


def test_the_demo_says_a_word_before_the_framework_is_imported(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert glance(["demo"]) is None
    assert capsys.readouterr().out.startswith("Importing Atropos")
