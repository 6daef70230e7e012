"""`evaluate`: the same items for everybody, and a failed request is no wrong answer."""

import fcntl
import json
import signal

import pytest
import yaml

from rg_env import Tasks
from rg_env.inference import server_health, servers
from rg_env.results.samples import grouped, sample_of
from rg_env.results.score_tables import EvalSummary
from rg_env.settings.server_and_launch_settings import SIMULATED
from rg_env.stream.group_scorer import GroupScorer, ScoringUnavailableError
from tests.support.parts import FAST_TASKS, options_of, ready_env, run_main
from tests.support.runs import (
    always_wrong,
    completions_of,
    evaluated,
    interrupted_when,
    samples,
)

pytestmark = pytest.mark.processes


def numbers(folder):
    return json.loads((folder / "metrics.json").read_text())["results"]["all"]


def test_it_leaves_samples_numbers_and_settings_and_prints_its_tasks(
    tmp_path, capsys, logged
):
    argv = options_of(
        SIMULATED,
        data_dir_to_save_evals=tmp_path,
        num_eval_samples_per_task=2,
        eval_completions=3,
        eval_temperature=1.0,
    )
    assert run_main(["evaluate", "--tasks", *argv]) == 0
    printed = capsys.readouterr().out
    assert all(task in printed for task in FAST_TASKS)
    assert f"report: {tmp_path / 'report'}" in logged.text

    for row in samples(tmp_path):
        assert row["messages"][-1]["role"] == "assistant"
        assert row["completion_tokens"] > 0
    by_item = grouped(samples(tmp_path), lambda row: (row["task"], row["question"]))
    assert len(by_item) == 2 * len(FAST_TASKS)
    for rows in by_item.values():
        assert {row["completion"] for row in rows} == {0, 1, 2}

    tasks = Tasks(*FAST_TASKS)
    digest = tasks.digest(tasks.evaluation(2))  # another program's
    assert f"items digest: {digest}" in printed
    assert digest in (tmp_path / "report" / "index.html").read_text()

    saved = numbers(tmp_path)
    assert saved["summary"]["items_digest"] == digest
    assert saved["eval/items"] == 2 * len(FAST_TASKS)
    assert {f"eval/task/{task}" for task in FAST_TASKS} <= set(saved)
    assert saved["eval/right"] <= saved["eval/pass_at_k"] <= saved["eval/best_of_k"]
    again = EvalSummary([sample_of(row) for row in samples(tmp_path)])
    assert saved.pop("summary") == json.loads(json.dumps(again.as_json()))
    assert saved == again.metrics()

    settings = yaml.safe_load((tmp_path / "evaluate_config.yaml").read_text())
    assert settings["env"]["tasks"] == FAST_TASKS
    assert settings["openai"][0]["model_name"] == SIMULATED
    assert not settings["openai"][0]["api_key"]


# -- what is on disk, and when ---------------------------------------------------------


async def ended_after(number, folder, monkeypatch, **changes):
    """Evaluate one item after the other; press Ctrl-C in the midst of a request."""
    asked = interrupted_when(monkeypatch, lambda: len(asked) > number, always_wrong)
    status = 128 + signal.SIGINT
    await evaluated(folder, status, max_eval_workers=1, **changes)
    monkeypatch.undo()


async def test_what_was_interrupted_is_continued_and_queries_nothing_twice(
    tmp_path, logged, monkeypatch
):
    # And one is on its way.
    await ended_after(1, tmp_path, monkeypatch, eval_completions=2)
    assert len(samples(tmp_path)) == 2
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"samples.jsonl", "evaluate_config.yaml"}
    assert f"2 of {2 * len(FAST_TASKS)} samples are in {tmp_path}" in logged.text
    with (tmp_path / "samples.jsonl").open("a") as file:
        file.write('{"task": "gcd", "tor')  # as a killed process leaves it
    asked = completions_of(monkeypatch)
    # The other two settings change no sample.
    await evaluated(
        tmp_path, eval_completions=2, max_eval_workers=7, adaptive_floor=0.5
    )
    assert len(asked) == 2 * len(FAST_TASKS) - 2
    found = samples(tmp_path)
    assert len(found) == 2 * len(FAST_TASKS)
    keys = {(row["task"], row["question"], row["completion"]) for row in found}
    assert len(keys) == len(found)
    assert numbers(tmp_path)["eval/items"] == len(FAST_TASKS)
    assert f"2 of {len(found)} are there" in logged.text


async def test_an_evaluation_that_is_not_to_be_continued_stays_and_the_next_goes_beside(
    tmp_path, monkeypatch
):
    results = tmp_path / "Qwen3-0.6B"
    await ended_after(2, results, monkeypatch)
    completions_of(monkeypatch)
    before = (results / "samples.jsonl").read_text()
    async with ready_env(SIMULATED, data_dir_to_save_evals=str(results)) as env:
        await env.evaluate()  # of a training: its model has changed since
    await evaluated(results, eval_temperature=0.5)
    with (results / "samples.jsonl").open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # as the process that writes it
        await evaluated(results)
        await evaluated(results)
    assert (results / "samples.jsonl").read_text() == before
    for number in range(1, 5):
        beside = tmp_path / f"Qwen3-0.6B_{number}"
        assert len(samples(beside)) == numbers(beside)["eval/items"] == len(FAST_TASKS)


async def test_one_that_gave_up_has_no_numbers_and_is_continued(
    tmp_path, logged, monkeypatch
):
    def write(*how):
        if len(asked) > 2:
            raise ConnectionError
        return always_wrong()

    asked = completions_of(monkeypatch, write)
    await evaluated(tmp_path, status=1, give_up_after_s=0.5, max_eval_workers=1)
    assert not (tmp_path / "metrics.json").exists()
    assert f"was given up: 2 of {len(FAST_TASKS)} samples are in" in logged.text
    asked = completions_of(monkeypatch)
    await evaluated(tmp_path)
    assert len(asked) == len(FAST_TASKS) - 2
    assert numbers(tmp_path)["eval/failed_requests"] == 0


# -- what is on disk at the end --------------------------------------------------------


def test_a_limit_that_every_prompt_reaches_is_refused_and_no_item_scores_0(
    tmp_path, capsys
):
    options = options_of(
        SIMULATED, eval_max_token_length=222, data_dir_to_save_evals=tmp_path
    )
    assert run_main(["evaluate", *options]) == 2
    printed = capsys.readouterr().err
    assert "222 tokens" in printed
    assert "leave no room for an answer to any of" in printed
    assert list(tmp_path.iterdir()) == []


# -- completions without a score -------------------------------------------------------


async def test_completions_without_a_score_are_counted_and_are_no_wrong_answers(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(server_health, "PAUSE_S", 0.02)
    scored = GroupScorer.score_group
    unscored, unanswered, *rest = FAST_TASKS

    async def lost(scorer, handle, *how):
        # The reference answer too: the start does not leave the task out for that.
        if handle.task == unscored:
            raise ScoringUnavailableError("workers were killed")
        return await scored(scorer, handle, *how)

    def write(known, *how):
        if known.task == unanswered:
            raise ConnectionError("status 500")
        return always_wrong()

    monkeypatch.setattr(GroupScorer, "score_group", lost)
    asked = completions_of(monkeypatch, write)
    await evaluated(tmp_path)
    tries = [known for known in asked if known.task == unanswered]
    assert len(tries) == servers.COMPLETION_TRIES
    values = numbers(tmp_path)
    assert values["eval/outcome/unscored"] == 1
    assert "unscored 1" in capsys.readouterr().out
    assert values["eval/items"] == len(rest)
    assert f"eval/task/{unanswered}" not in values
    (failed,) = [s for s in samples(tmp_path) if s["task"] == unanswered]
    assert failed["outcome"] == "request_failed" and "score" not in failed
    assert "500" in failed["reason"]
