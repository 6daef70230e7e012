"""W&B: a real run, offline, and what it holds."""

import json
import numbers

import pytest
import wandb

from rg_env.errors import RunError
from rg_env.settings.server_and_launch_settings import SIMULATED
from tests.support.parts import build_env, options_of, run_main
from tests.support.runs import serve, trainer_config

pytestmark = pytest.mark.processes


@pytest.fixture
def offline(monkeypatch, tmp_path):
    """W&B offline, in a folder of its own."""
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_DIR", str(tmp_path))
    monkeypatch.setenv("WANDB_SILENT", "true")
    wandb.teardown()  # it keeps the settings of the first run of a process
    yield tmp_path
    wandb.teardown()


@pytest.fixture
def logged_numbers(monkeypatch):
    """Everything that a run is given to log, which it does all the same."""
    given = []
    log = wandb.Run.log

    def listening(run, logged, *args, **kwargs):
        given.append(logged)
        return log(run, logged, *args, **kwargs)

    monkeypatch.setattr(wandb.Run, "log", listening)
    return given


def lines(folder):
    """Return the numbers of this machine; there is one file of them."""
    (path,) = folder.rglob("*metrics.jsonl")
    return [json.loads(line) for line in path.read_text().splitlines()]


async def test_a_run_logs_its_documented_numbers_and_is_finished(
    offline, logged_numbers, api_url
):
    env = build_env(
        SIMULATED,
        rollout_server_url=api_url,
        total_steps=4,
        use_wandb=True,
        wandb_name="rg",
        min_items_sent_before_logging=1,
        num_rollouts_per_group_for_logging=99,
        steps_per_eval=1,
        eval_handling="NONE",
        data_dumps_dir=str(offline),
    )
    counts = await serve(env, trainer_config(api_url, 4, step_time_s=0.2), 4)
    logged = [
        {name.removeprefix(f"{env.wandb_prepend}_"): n for name, n in given.items()}
        for given in logged_numbers
    ]
    short = set().union(*logged)
    assert {"train/percent_correct", "train/mean_score", "train/rollouts"} <= short
    assert {"alarms/repeated_answer", "curriculum/tasks"} <= short
    assert {f"server/server_0_request_time_{kind}" for kind in ("avg", "99p")} <= short
    for given, line in zip(logged, found := lines(offline), strict=True):
        known = {
            name: pytest.approx(n)
            for name, n in given.items()
            if isinstance(n, numbers.Real)
        }
        assert line.items() >= known.items()
        assert line["kind"] == "serve"
    steps = [line["step"] for line in found]
    assert steps == sorted(steps)
    assert counts.invalid_groups == 0
    assert env.ledger.endings["discarded"] == 0
    assert wandb.run is None
    assert list(offline.rglob("run-*.wandb"))


def test_evaluate_logs_its_result(offline, logged_numbers):
    options = options_of(
        SIMULATED,
        use_wandb="true",
        data_dir_to_save_evals=offline / "eval",
        data_dumps_dir=offline / "dumps",
    )
    assert run_main(["evaluate", *options]) == 0
    (logged,) = [n for n in logged_numbers if "eval/percent_correct" in n]
    results = json.loads((offline / "eval" / "metrics.json").read_text())["results"]
    assert logged["eval/percent_correct"] == results["all"]["eval/percent_correct"]
    assert wandb.run is None
    by_task = {n: v for n, v in results["all"].items() if n.startswith("eval/task/")}
    assert logged.items() >= by_task.items() and len(by_task) > 1
    (line,) = lines(offline / "eval")
    assert line["kind"] == "evaluate"
    assert line.items() >= by_task.items()


async def test_a_run_that_wandb_does_not_start_is_no_defect_of_ours(
    offline, monkeypatch
):
    monkeypatch.setenv("WANDB_SERVICE", "junk")
    env = build_env()
    env.config.use_wandb = True
    with pytest.raises(RunError) as caught:
        await env._start_wandb("name")
    assert caught.value.sentence.startswith("W&B failed (ValueError: ")
    assert "WANDB_MODE=offline" in caught.value.sentence
