"""`screen`: groups of each task, a table and settings, with the real command."""

import collections

import pytest

from reasoning_gym_environment import ReasoningGymEnv
from rg_env.atropos import start_checks
from rg_env.cli import run_commands
from rg_env.line_file import read_groups
from rg_env.settings.server_and_launch_settings import SIMULATED
from tests.support.parts import NOWHERE, options_of, run_main
from tests.support.runs import completions_of

pytestmark = pytest.mark.processes

TASKS = ["acre", "chain_sum", "gcd"]
EACH = 6


def screen(folder, url, *more):
    options = options_of(url, tasks=",".join(TASKS), complexity_mode="random")
    out = f"--out={folder / 'screen.yaml'}"
    return run_main(["screen", *options, out, f"--groups={EACH}", *more])


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    folder = tmp_path_factory.mktemp("screen")
    return folder, screen(folder, SIMULATED, "--openai.api_key=secret-key")


def test_each_task_has_its_groups_at_levels_that_lie_evenly(done):
    folder, status = done
    rows = list(read_groups(folder / "screen.jsonl"))
    assert status == 0
    assert collections.Counter(row["task"] for row in rows) == dict.fromkeys(
        TASKS, EACH
    )
    levels = sorted(row["level"] for row in rows if row["task"] == "gcd")
    assert levels[0] < 0.3 < 0.7 < levels[-1]
    assert all(row["level"] is None for row in rows if row["task"] == "acre")
    for row in rows:
        assert len(row["completion_tokens"]) == len(row["finish_reasons"]) == 4
        assert row["seconds"] > 0 and "tokens" not in row


def test_the_settings_start_serve_as_they_are(done):
    path = done[0] / "screen.yaml"
    command = run_commands.serve(ReasoningGymEnv)
    with command.make_context("serve", [f"--config={path}"]) as context:
        given = command.read(context.params)
    config, servers = given.merged_with(command.defaults)
    start_checks.check_command("serve", config, servers)
    assert set(config.tasks) <= set(TASKS)
    assert set(config.task_weights) == set(config.tasks)
    assert set(config.task_levels) == set(config.tasks) - {"acre"}
    assert (config.group_size, config.task_choice) == (4, "weighted")
    assert config.data_path_to_save_groups is None
    for path in done[0].rglob("*"):
        assert path.is_dir() or b"secret-key" not in path.read_bytes()


def test_a_file_of_somebody_and_one_that_is_no_yaml_are_refused(tmp_path, capsys):
    (tmp_path / "screen.yaml").write_text("env: {seed: 1}\n")
    assert screen(tmp_path, NOWHERE) == 2
    assert "--out" in capsys.readouterr().err
    assert (tmp_path / "screen.yaml").read_text() == "env: {seed: 1}\n"
    assert screen(tmp_path, NOWHERE, "--out=screen.jsonl") == 2
    assert "--out: 'screen.jsonl' is not allowed" in capsys.readouterr().err


def test_it_ends_with_a_table_and_is_read_again_without_a_request(
    done, monkeypatch, capsys
):
    out = done[0] / "screen.yaml"
    completions = completions_of(monkeypatch)
    first = out.read_text()
    out.unlink()
    argv = ("--openai.api_key=secret-key", "--least_share=0.05")
    assert screen(done[0], SIMULATED, *argv) == 0
    table = capsys.readouterr().out.splitlines()
    assert table[-2:] == [
        f"settings: {out}",
        f"run: python reasoning_gym_environment.py serve --config {out}",
    ]
    assert any(line.split()[:2] == ["gcd", str(EACH)] for line in table)
    assert out.read_text() == first
    assert completions == []
    assert not (done[0] / "screen_1.jsonl").exists()
