"""`evaluate`: the same items for everybody, and a failed request is no wrong answer."""

import asyncio
import fcntl
import json
import resource
from pathlib import Path

import pytest
import reasoning_gym
import yaml

from rg_env import patience
from rg_env.demo.chat_tokenizer import load_tokenizer
from rg_env.evaluation.samples import grouped, read_rows, sample_of
from rg_env.evaluation.summary import summarise
from rg_env.items.group_scorer import GroupScorer, ScoringUnavailableError
from rg_env.tasks.evaluation_specs import load_preset
from tests.support.odd_servers import openai_endpoint, serving
from tests.support.parts import (
    FAST_TASKS,
    NOWHERE,
    build_env,
    options_of,
    ready_env,
    run_main,
    vllm_reply,
    vllm_server,
)
from tests.support.runs import status_of

pytestmark = pytest.mark.processes


NO_FOLDER = "--env.data_dir_to_save_evals=None"


def evaluate(folder, url, kind="vllm", **changes):
    given = {"data_dir_to_save_evals": folder, "num_eval_samples_per_task": 2}
    return run_main(["evaluate", *options_of(url, kind, **(given | changes))])


def samples(folder):
    lines = (Path(folder) / "samples.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def numbers(folder):
    results = json.loads((Path(folder) / "metrics.json").read_text())["results"]
    return results["all"]


@pytest.fixture(scope="module")
def done(simulated, tmp_path_factory):
    folder = tmp_path_factory.mktemp("evaluate")
    return folder, evaluate(folder, simulated.url)


def test_it_ends_with_status_0_and_leaves_three_files(done):
    folder, status = done
    assert status == 0
    names = {path.name for path in folder.iterdir()}
    assert names >= {"metrics.json", "samples.jsonl", "evaluate_config.yaml"}


def test_the_numbers_cover_every_task_and_the_whole(done):
    values = numbers(done[0])
    assert 0.0 <= values["eval/percent_correct"] <= 1.0
    assert values["eval/items"] == 2 * len(FAST_TASKS)
    assert {f"eval/task/{task}" for task in FAST_TASKS} <= set(values)


def test_a_sample_has_its_question_its_answer_and_its_outcome(done):
    for sample in samples(done[0]):
        assert sample["messages"][-1]["role"] == "assistant"
        assert {"task", "question", "gold_answer", "answer", "outcome"} <= set(sample)


def test_the_settings_are_written_without_the_key(done):
    settings = yaml.safe_load((done[0] / "evaluate_config.yaml").read_text())
    assert settings["env"]["tasks"] == FAST_TASKS
    assert settings["openai"][0]["model_name"] == "simulated-policy"
    assert not settings["openai"][0]["api_key"]


def test_a_table_of_tasks_is_printed_on_request(simulated, capsys):
    assert run_main(["evaluate", "--tasks", *options_of(simulated.url), NO_FOLDER]) == 0
    said = capsys.readouterr().out
    assert all(task in said for task in FAST_TASKS)


# -- what is on disk, and when ---------------------------------------------------------


def always_wrong(body):
    return vllm_reply(["<answer>x</answer>"])


def question_of(body):
    tokens = body["prompt"]["prompt_token_ids"]
    return load_tokenizer().decode(tokens, skip_special_tokens=False)


async def evaluated(url, folder, **changes):
    env = build_env(url, data_dir_to_save_evals=str(folder), **changes)
    return await status_of(env._run_evaluate())


def evaluated_by(reply, folder, **changes):
    """Evaluate a server that replies so; return the status."""

    async def run():
        async with vllm_server(reply) as url:
            return await evaluated(url, folder, **changes)

    return asyncio.run(run())


def test_each_sample_is_on_disk_before_the_next_item_is_queried(tmp_path):
    seen = []

    def reply(body):
        path = tmp_path / "samples.jsonl"
        seen.append(path.read_text().count("\n") if path.exists() else 0)
        return always_wrong(body)

    assert evaluated_by(reply, tmp_path, max_eval_workers=1) == 0
    assert seen == list(range(len(FAST_TASKS)))


def ended_after(number, folder, **changes):
    """Evaluate one item after the other; end it in the midst of a request."""
    requests = []

    async def run():
        def answer(body):
            requests.append(body)
            if len(requests) > number:
                evaluating.cancel()
            return always_wrong(body)

        async with vllm_server(answer) as url:
            one_by_one = evaluated(url, folder, max_eval_workers=1, **changes)
            evaluating = asyncio.ensure_future(one_by_one)
            await asyncio.wait([evaluating])

    asyncio.run(run())


def test_what_is_interrupted_keeps_its_samples_and_says_where(tmp_path, logged):
    ended_after(2, tmp_path)
    assert len(samples(tmp_path)) == 2
    assert {path.name for path in tmp_path.iterdir()} == {
        "samples.jsonl",
        "evaluate_config.yaml",
    }
    assert f"2 of {len(FAST_TASKS)} samples are in {tmp_path}" in logged.text


def queried_of(folder, **changes):
    """Evaluate to the end; return the prompts that the server got."""
    prompts = []

    def reply(body):
        prompts.append(question_of(body))
        return always_wrong(body)

    assert evaluated_by(reply, folder, **changes) == 0
    return prompts


def test_what_was_interrupted_is_continued_and_queries_nothing_twice(tmp_path, logged):
    ended_after(2, tmp_path, eval_completions=2)
    with (tmp_path / "samples.jsonl").open("a") as file:
        file.write('{"task": "gcd", "tor')  # as a killed process leaves it
    asked = queried_of(tmp_path, eval_completions=2, max_eval_workers=7)
    assert len(asked) == 2 * len(FAST_TASKS) - 2
    found = samples(tmp_path)
    assert len(found) == 2 * len(FAST_TASKS)
    keys = {(row["task"], row["question"], row["completion"]) for row in found}
    assert len(keys) == len(found)
    assert numbers(tmp_path)["eval/items"] == len(FAST_TASKS)
    assert f"2 of {len(found)} samples are there" in logged.text


def test_with_other_settings_an_interrupted_one_is_left_as_it_is(tmp_path):
    ended_after(2, tmp_path / "results")
    before = (tmp_path / "results" / "samples.jsonl").read_text()
    asked = queried_of(tmp_path / "results", eval_temperature=0.5)
    assert len(asked) == len(FAST_TASKS)
    assert (tmp_path / "results" / "samples.jsonl").read_text() == before
    assert numbers(tmp_path / "results_1")["eval/items"] == len(FAST_TASKS)


def test_one_that_another_process_writes_is_left_alone(tmp_path):
    ended_after(2, tmp_path / "results")
    with (tmp_path / "results" / "samples.jsonl").open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert len(queried_of(tmp_path / "results")) == len(FAST_TASKS)
    assert numbers(tmp_path / "results_1")


def test_training_never_continues_an_evaluation_since_its_model_has_changed(tmp_path):
    ended_after(2, tmp_path / "results")

    async def run():
        async with vllm_server(always_wrong) as url:
            folder = str(tmp_path / "results")
            async with ready_env(url, data_dir_to_save_evals=folder) as env:
                await env.evaluate()

    asyncio.run(run())
    assert len(samples(tmp_path / "results")) == 2
    assert len(samples(tmp_path / "results_1")) == len(FAST_TASKS)


def test_one_that_gave_up_has_no_numbers_and_is_continued(tmp_path, logged):
    asked = []

    def reply(body):
        asked.append(body)
        return always_wrong(body) if len(asked) < 3 else 500

    given = {"give_up_after_s": 0.5, "max_eval_workers": 1}
    assert evaluated_by(reply, tmp_path, **given) == 1
    assert not (tmp_path / "metrics.json").exists()
    assert f"was given up: 2 of {len(FAST_TASKS)} samples are in" in logged.text
    assert len(queried_of(tmp_path)) == len(FAST_TASKS) - 2
    assert numbers(tmp_path)["eval/failed_requests"] == 0


def test_one_whose_workers_gave_no_score_says_so_and_is_continued(
    tmp_path, monkeypatch, logged, capsys
):
    scored = GroupScorer.score_group

    async def lost(scorer, handle, *how):
        # The reference answer too: the start does not leave the task out for that.
        if handle.task == FAST_TASKS[0]:
            raise ScoringUnavailableError("workers were killed")
        return await scored(scorer, handle, *how)

    monkeypatch.setattr(GroupScorer, "score_group", lost)
    assert evaluated_by(always_wrong, tmp_path) == 0
    assert numbers(tmp_path)["eval/outcome/unscored"] == 1
    said = "without a score: 1 completion to which the workers gave none"
    assert said in capsys.readouterr().out
    assert "the same command with" in logged.text
    monkeypatch.undo()
    assert len(queried_of(tmp_path)) == 1
    assert numbers(tmp_path)["eval/items"] == len(FAST_TASKS)
    assert "eval/outcome/unscored" not in numbers(tmp_path)


# -- what is queried -------------------------------------------------------------------


def test_k_completions_of_each_item_are_sampled_and_summed_up(tmp_path, simulated):
    given = {"eval_completions": 3, "eval_temperature": 1.0}
    assert evaluate(tmp_path, simulated.url, **given) == 0
    found = samples(tmp_path)
    by_item = grouped(found, lambda row: (row["task"], row["question"])).values()
    assert all({r["completion"] for r in rows} == {0, 1, 2} for rows in by_item)
    values = numbers(tmp_path)
    assert values["eval/right"] <= values["eval/pass_at_k"] <= values["eval/best_of_k"]
    assert all(row["completion_tokens"] > 0 for row in found)


def test_the_numbers_are_those_of_the_samples_on_disk(tmp_path, simulated):
    given = {"eval_completions": 2, "eval_temperature": 1.0}
    assert evaluate(tmp_path, simulated.url, **given) == 0
    rows = read_rows(tmp_path / "samples.jsonl")
    again = summarise([sample_of(row) for row in rows])
    saved = numbers(tmp_path)
    assert saved.pop("summary") == json.loads(json.dumps(again.as_json()))
    assert saved == again.metrics()


def test_completions_at_temperature_0_are_said_to_be_the_same(logged):
    assert run_main(["evaluate", *options_of(NOWHERE), *TWICE, NO_FOLDER]) == 1
    assert "will be identical at env.eval_temperature 0.0" in logged.text


TWICE = ["--env.eval_completions=2", "--env.give_up_after_s=0.1"]


def test_a_preset_samples_the_published_items_with_the_published_prompt(tmp_path):
    seen = []

    def reply(body):
        seen.append(question_of(body))
        return always_wrong(body)

    given = {"eval_preset": "rg-hard", "eval_system_prompt": "published"}
    tasks = ["aiw", "game_of_life_halting", "survo"]
    assert evaluated_by(reply, tmp_path, tasks=tasks, **given) == 0
    params = load_preset("rg-hard").params["aiw"]
    dataset = reasoning_gym.create_dataset("aiw", seed=45, size=50, **params)
    found = {r["index"]: r for r in samples(tmp_path) if r["task"] == "aiw"}
    assert sorted(found) == list(range(50))
    asked = {i: row for i, row in found.items() if row["outcome"] != "not_used"}
    assert all(dataset[i]["question"] == row["question"] for i, row in asked.items())
    assert len(seen) == len(asked) == numbers(tmp_path)["eval/items"]
    not_used = numbers(tmp_path)["summary"]["not_used"]
    # The boards of the other one are hidden, and survo was not published.
    assert not_used == {"aiw": 50 - len(asked), "game_of_life_halting": 50}
    assert not_used["aiw"] > 0
    prompt = reasoning_gym.utils.SYSTEM_PROMPTS["default"]
    assert all(r["messages"][0]["content"] == prompt for r in asked.values())


def test_a_level_is_that_of_every_item_whose_task_has_a_scale(tmp_path, simulated):
    given = {"eval_level": 1.0, "tasks": "gcd,acre"}
    assert evaluate(tmp_path, simulated.url, **given) == 0
    levels = {(row["task"], row["level"]) for row in samples(tmp_path)}
    assert levels == {("gcd", 1.0), ("acre", None)}


# -- what is on disk at the end --------------------------------------------------------


def test_a_second_evaluation_into_a_folder_goes_beside_the_first(tmp_path):
    folder = tmp_path / "results"

    for seed in range(3):
        assert evaluated_by(always_wrong, folder, eval_seed=seed) == 0
    folders = [tmp_path / name for name in ("results", "results_1", "results_2")]
    assert sorted(tmp_path.iterdir()) == folders
    asked = [{s["question"] for s in samples(one)} for one in folders]
    assert all(numbers(one) for one in folders)
    assert asked[0] != asked[1] != asked[2]


def test_a_full_disk_is_said_once_and_leaves_no_numbers_without_their_samples(
    tmp_path, logged
):
    results = tmp_path / "results"
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (7000, before[1]))
    try:
        status = evaluated_by(always_wrong, results, num_eval_samples_per_task=4)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert status == 1
    assert not (results / "metrics.json").exists()
    assert logged.text.count("env.data_dir_to_save_evals") == 1
    kept, items = len(samples(results)), 4 * len(FAST_TASKS)
    assert 0 < kept < items
    assert f"only {kept} of {items} samples were written" in logged.text


@pytest.mark.parametrize(("given", "limit"), [({}, 2048), ({"eval": 4096}, 4096)])
def test_an_evaluation_takes_as_many_tokens_as_training_or_as_many_as_are_given(
    tmp_path, given, limit
):
    asked = []

    def reply(body):
        asked.append(len(body["prompt"]["prompt_token_ids"]) + body["max_tokens"])
        return always_wrong(body)

    own = given.get("eval")
    assert evaluated_by(reply, tmp_path, eval_max_token_length=own) == 0
    assert set(asked) == {limit}
    config = json.loads((tmp_path / "metrics.json").read_text())["config_general"]
    assert config["generation_parameters"]["max_new_tokens"] == limit


def test_a_limit_that_every_prompt_reaches_is_refused_and_no_item_scores_0(
    tmp_path, simulated, capsys
):
    limits = {"eval_max_token_length": 222, "data_dir_to_save_evals": tmp_path}
    assert run_main(["evaluate", *options_of(simulated.url, **limits)]) == 2
    said = capsys.readouterr().err
    assert "222 tokens" in said and "leave no room for an answer to any of" in said
    assert list(tmp_path.iterdir()) == []


def test_json_is_one_document_and_nothing_else(tmp_path, simulated, capsys):
    argv = options_of(simulated.url, data_dir_to_save_evals=tmp_path)
    assert run_main(["evaluate", "--json", *argv]) == 0
    found = json.loads(capsys.readouterr().out)
    assert sorted(found["by_task"]) == FAST_TASKS
    assert found["overall"]["items"] == len(FAST_TASKS)
    assert found["failed_requests"] == 0


# -- servers that fail -----------------------------------------------------------------


def test_a_request_that_keeps_failing_is_counted_and_is_no_wrong_answer(tmp_path):
    asked = []

    def reply(body):
        if "legs" in question_of(body):
            asked.append(body)
            return 500
        return always_wrong(body)

    assert evaluated_by(reply, tmp_path) == 0
    assert len(asked) == patience.EVALUATION_TRIES * patience.COMPLETION_TRIES
    values = numbers(tmp_path)
    assert values["eval/failed_requests"] == 1
    assert values["eval/items"] == len(FAST_TASKS) - 1
    assert "eval/task/leg_counting" not in values
    (failed,) = [s for s in samples(tmp_path) if s["task"] == "leg_counting"]
    assert failed["outcome"] == "request_failed" and "score" not in failed
    assert "500" in failed["reason"]


def test_a_server_that_is_not_there_ends_it_with_status_1_and_is_named(
    tmp_path, logged
):
    folder = tmp_path / "results"
    assert evaluate(folder, NOWHERE, give_up_after_s=1) == 1
    assert NOWHERE in logged.text
    assert "results" not in logged.text and not folder.exists()


async def test_an_endpoint_that_charges_is_queried_once_more_and_not_for_its_health(
    tmp_path,
):
    odd = openai_endpoint()

    async with serving(odd) as url:
        argv = options_of(url, "openai", data_dir_to_save_evals=tmp_path)
        assert await asyncio.to_thread(run_main, ["evaluate", *argv]) == 0
    assert odd.asked == ["POST /v1/chat/completions"] * (len(FAST_TASKS) + 1)
    assert odd.bodies[0]["messages"][-1]["content"] == "What is 2 + 2?"


async def test_one_item_can_be_evaluated_by_hand():
    async with vllm_server(always_wrong) as url, ready_env(url) as env:
        found = await env.rollout_and_score_eval(env.test_items_with_scorers[0])
    assert 0.0 <= found < 1.0
