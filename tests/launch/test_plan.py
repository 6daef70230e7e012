"""The command lines of a run, and the plans that are refused."""

import pytest
import yaml

from rg_env.errors import SettingError
from rg_env.launch.plan import Plan, locked_folder
from rg_env.settings.environment_settings import CheckedSettings
from rg_env.settings.server_and_launch_settings import LaunchSettings

API, SERVER = "http://127.0.0.1:8001", "http://127.0.0.1:9001"


def plan(place, *, env=(), openai=(), numbers=(), **settings):
    for program in ("python", "vllm"):
        (place / program).touch()
    sizes = {"group_size": 8, "batch_size": 64, "max_token_length": 512}
    given = {
        "folder": f"{place}/run",
        "python": f"{place}/python",
        "model": "some/model",
    }
    return Plan(
        settings=LaunchSettings(**given | settings),
        env=dict(env),
        openai=dict(openai),
        config=CheckedSettings(
            **{**sizes, "total_steps": 5, "rollout_server_url": API, **dict(numbers)}
        ),
        command=["own"],
    )


def command_lines(of):
    programs = [*of.server_programs(), of.serve_program(), of.trainer_program()]
    return {program.name: program.argv for program in programs}


def test_every_program_has_the_same_numbers(tmp_path):
    one = plan(tmp_path, trainer_args="--learning-rate 1e-5")
    lines = command_lines(one)
    sizes = {"--groups=8", "--group-size=8", "--steps=5", "--max-token-length=512"}
    assert {*lines["trainer"]} > {f"--model={one.policy}", *sizes}
    assert lines["trainer"][-2:] == ["--learning-rate", "1e-5"]
    assert lines["vllm"][2] == str(one.policy) == str(tmp_path / "run" / "policy")
    assert "--max-model-len=512" in lines["vllm"]


def test_the_placeholders_of_another_trainer_are_replaced(tmp_path):
    words = (
        "{api} {server} {model} {folder} {group_size} {batch_size} '{total_steps} x'"
    )
    one = plan(tmp_path, trainer=f"mine {words} {{max_token_length}}")
    sizes = ["8", "64", "5 x", "512"]
    expected = [one.api, one.server, str(one.policy), str(one.folder), *sizes]
    assert command_lines(one)["trainer"] == ["mine", *expected]


def test_a_server_that_already_runs_is_not_started(tmp_path):
    where = {"rollout_server_url": f"{API}/"}
    one = plan(tmp_path, env=where, openai={"base_url": f"{SERVER}/v1/"})
    assert (one.server_programs(), one.api, one.server) == ([], API, SERVER)


def test_serve_gets_the_explicit_settings_and_the_urls(tmp_path):
    one = plan(tmp_path, env={"tasks": ["gcd"], "total_steps": "5"})
    lines = one.serve_settings()
    assert lines["env"]["tasks"] == ["gcd"]
    assert lines["env"]["total_steps"] > 5  # the trainer says when it is enough
    assert lines["env"]["rollout_server_url"] == one.api
    assert lines["env"]["tokenizer_name"] == str(one.policy)
    assert lines["openai"]["base_url"] == f"{one.server}/v1"


REFUSED = """
numbers: {batch_size: -1}       | env.batch_size
numbers: {total_steps: -1}      | env.total_steps
numbers: {batch_size: 60}       | env.batch_size: 60 is not a multiple
openai: {base_url: simulated}   | openai.base_url: .* simulated
model: null                     | launch.model
python: /no/such/python         | launch.python: /no/such/python is not a file
"""
"""A setting of a plan, and what the sentence says."""


@pytest.mark.parametrize("row", REFUSED.strip().splitlines())
def test_a_plan_that_cannot_start_is_refused(tmp_path, row):
    setting, expected = row.split(" | ")
    with pytest.raises(SettingError, match=expected):
        plan(tmp_path, **yaml.safe_load(setting)).check()


def test_two_launches_do_not_share_a_folder(tmp_path):
    with (
        locked_folder(plan(tmp_path)),
        pytest.raises(SettingError, match="another launch"),
        locked_folder(plan(tmp_path)),
    ):
        pass


@pytest.mark.parametrize("text", ["env: [", "- a"])
def test_a_folder_with_damaged_settings_is_refused(tmp_path, text):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "serve.yaml").write_text(text)
    with pytest.raises(SettingError, match=r"serve\.yaml is damaged"):
        locked_folder(plan(tmp_path)).__enter__()


def test_only_the_owner_may_read_the_settings_file(tmp_path):
    with locked_folder(plan(tmp_path)):
        assert (tmp_path / "run" / "serve.yaml").stat().st_mode & 0o077 == 0


def test_a_run_continues_only_with_its_first_model(tmp_path):
    with locked_folder(plan(tmp_path, model="a/mistyped-model")):
        pass
    with locked_folder(plan(tmp_path)):
        plan(tmp_path).policy.mkdir()
    with (
        locked_folder(plan(tmp_path)),
        locked_folder(plan(tmp_path, folder=str(tmp_path / "other"))),
    ):
        pass
    with (
        pytest.raises(SettingError, match="has a run of 'some/model'"),
        locked_folder(plan(tmp_path, model="another/model")),
    ):
        pass
