"""Items, scores and old names of `ReasoningGymEnv`, one promise at a time."""

import asyncio
import json
import pickle
import random

import pytest
from parts import (
    FAST_TASKS,
    RIGHT,
    WRONG,
    build_env,
    env_config,
    ready_env,
    rollout,
    server_config,
)

from reasoning_gym_environment import (
    ReasoningGymEnv,
    ReasoningGymEnvConfig,
    system_prompt,
)
from rg_env.tasks import library


def questions(items):
    return [item[1]["question"] for item in items]


async def next_items(env, n):
    return [await env.get_next_item() for _ in range(n)]


def items_of(n, **changes):
    async def run():
        async with ready_env(**changes) as env:
            return await next_items(env, n)

    return asyncio.run(run())


def scored(rollouts, **changes):
    """Score a group in an environment that needs no setup for it."""

    async def run():
        env = build_env(**changes)
        try:
            return await env.score(rollouts)
        finally:
            await env.close()

    return asyncio.run(run())


def test_close_leaves_no_worker_behind():
    async def run():
        env = build_env()
        await env.setup()
        pool = env._pool
        await env.close()
        await env.close()
        return pool

    pool = asyncio.run(run())
    with pytest.raises(Exception, match="closed"):
        pool.call(len, [], deadline_s=1.0)


def test_it_takes_a_single_server_config():
    env = ReasoningGymEnv(env_config(), server_config("http://127.0.0.1:7/v1"))
    assert [s.config.base_url for s in env.server.servers] == ["http://127.0.0.1:7/v1"]
    asyncio.run(env.close())


def test_slurm_is_off_unless_asked_for(monkeypatch):
    monkeypatch.setenv("SLURM_JOB_NODELIST", "n[1-3]")
    env = build_env()
    assert len(env.server.servers) == 1
    asyncio.run(env.close())


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("rollout_save_score_threshold", 1.1),
        ("group_size", 0),
        ("seed", -1),
        ("inference_weight", -1),
        ("inference_weight", float("nan")),
        ("complexity_mode", "hard"),
        ("min_batch_allocation", 2),
        ("temperature", -0.1),
        ("no_such_field", 1),
    ],
)
def test_a_value_out_of_range_is_refused_when_it_is_set(field, value):
    with pytest.raises(ValueError, match=field):
        ReasoningGymEnvConfig(**{field: value})


def test_a_value_out_of_range_is_refused_by_assignment_too():
    config = env_config()
    with pytest.raises(ValueError, match="group_size"):
        config.group_size = 0


@pytest.fixture(scope="module")
def item():
    return items_of(1)[0]


def test_the_system_prompt_is_the_one_that_can_be_imported(item):
    assert dict(item[0][0])["content"] == system_prompt


def test_the_dataset_of_an_item_scores_in_a_worker(item):
    _, entry, dataset = item
    assert dataset.score_answer(entry["answer"], entry) == 1.0
    assert dataset.score_answer(None, entry) == 0.0


def test_the_entry_is_what_its_provenance_regenerates(item):
    _, entry, handle = item
    again = library.make_entry(handle.task, dict(handle.params), handle.seed)
    assert again["question"] == entry["question"]


def test_a_thinking_prompt_of_the_host_comes_before_the_system_prompt():
    ((messages, _, _),) = items_of(1, custom_thinking_prompt="Think hard.")
    assert messages[0]["content"] == f"Think hard.\n\n{system_prompt}"


def test_training_and_evaluation_items_share_no_seed():
    async def run():
        async with ready_env(num_eval_samples_per_task=3) as env:
            return await next_items(env, 20), env.test_items_with_scorers

    items, evaluation = asyncio.run(run())
    assert len(evaluation) == 3 * len(FAST_TASKS)
    assert not {i[2].seed for i in items} & {handle.seed for _, handle in evaluation}


def test_evaluation_items_do_not_depend_on_the_training_seed_or_the_choice():
    async def evaluation(**changes):
        async with ready_env(**changes) as env:
            return {
                handle.task: entry["question"]
                for entry, handle in env.test_items_with_scorers
            }

    one = asyncio.run(evaluation(seed=1))
    other = asyncio.run(evaluation(seed=2, tasks=FAST_TASKS[:2]))
    assert {task: one[task] for task in other} == other


@pytest.mark.parametrize(
    ("trainer", "own", "limit"),
    [(2048, 8192, 2047), (8192, 8192, 8191), (9000, 8192, 8192), (-1, 8192, 8192)],
)
def test_a_sequence_stays_below_the_trainers_limit_and_its_own(trainer, own, limit):
    env = build_env(max_token_length=own)
    env.max_token_len = trainer
    assert env.limit_tokens == limit
    asyncio.run(env.close())


def test_the_rollouts_given_are_not_changed_or_shuffled():
    rollouts = [rollout(text) for text in (WRONG, RIGHT, WRONG, RIGHT)]
    before = pickle.dumps([r["messages"] for r in rollouts])
    scored(rollouts)
    assert pickle.dumps([r["messages"] for r in rollouts]) == before


def test_a_group_of_equal_scores_is_kept_where_the_setting_says_so():
    group = scored([rollout(RIGHT)] * 2, ensure_scores_are_not_same=False)
    assert group["scores"] == [1.0, 1.0]


def test_no_rollouts_are_no_group():
    assert scored([]) is None


def test_the_length_penalty_leaves_a_group_with_a_wrong_answer_alone():
    rollouts = [rollout(RIGHT, length=98), rollout(WRONG, length=98)]
    assert scored(rollouts, max_token_length=100)["scores"] == [1.0, 0.0]


def test_messages_travel_with_the_group_only_when_asked_for():
    rollouts = [rollout(RIGHT), rollout(WRONG)]
    assert "messages" not in scored(rollouts)
    group = scored(rollouts, include_messages=True)
    assert group["messages"][1][-1] == {"role": "assistant", "content": WRONG}


def test_the_temperature_travels_with_the_group():
    group = scored([rollout(RIGHT), rollout(WRONG)], temperature=0.6)
    assert group["generation_params"] == {"temperature": 0.6}


def test_a_scorer_that_raises_is_a_wrong_answer_with_its_reason():
    class Broken:
        def score_answer(self, answer, entry):
            raise KeyError("board")

    group = scored(
        [rollout(RIGHT, dataset=Broken())] * 2, ensure_scores_are_not_same=False
    )
    assert group["scores"] == [0.0, 0.0]
    assert group["outcomes"] == ["scorer_error"] * 2


def test_the_answer_counts_only_outside_the_thinking():
    texts = [f"<think>{RIGHT}</think>{WRONG}", f"<think>{WRONG}</think>{RIGHT}"]
    assert scored([rollout(text) for text in texts])["scores"] == [0.0, 1.0]


def test_a_template_that_opens_the_thinking_is_taken_into_account():
    rollouts = [rollout(f"hm {WRONG}</think>{RIGHT}"), rollout(f"hm {RIGHT}")]
    group = scored([{**r, "thinking_open": True} for r in rollouts])
    assert group["scores"] == [1.0, 0.0]
    assert group["outcomes"][1] == "unfinished_thinking"


def test_discovered_tasks_are_validated_by_building_them(logged):
    class Package:
        @staticmethod
        def create_dataset(name, size, seed):
            return {"gcd": [{}]}[name]

    env = build_env()
    assert env._validate_discovered_tasks(["gcd", "gone"], Package) == ["gcd"]
    assert "gone" in logged.text
    asyncio.run(env.close())


def test_the_position_of_the_stream_can_be_read_and_set():
    async def run():
        async with ready_env() as env:
            first = await next_items(env, 3)
            position = env.iter
            env.iter = 1
            return first, position, await next_items(env, 2)

    first, position, again = asyncio.run(run())
    assert position == 3
    assert questions(again) == questions(first[1:])


def test_the_generator_can_be_looked_at_without_touching_the_stream():
    async def run(look):
        async with ready_env() as env:
            if look:
                assert isinstance(env.rng, random.Random)
                env.rng.random()
            return await next_items(env, 3)

    looked, not_looked = asyncio.run(run(True)), asyncio.run(run(False))
    assert questions(looked) == questions(not_looked)


def test_dump_names_are_views_of_the_writers(tmp_path):
    async def run():
        env = build_env(
            dump_rollouts=True, dump_failed_rollouts=True, data_dumps_dir=str(tmp_path)
        )
        await env.score([rollout(RIGHT), rollout(WRONG)])
        await env.score([rollout(WRONG), rollout(WRONG)])
        assert env.datadumps_dir == str(tmp_path)
        assert (env.processed_item_count, env.failed_processed_item_count) == (1, 1)
        assert len(env.rollouts_to_save_buffer) == 1
        assert len(env.failed_rollouts_to_save_buffer) == 1
        await env._save_rollouts_to_jsonl()
        await env._save_failed_rollouts_to_jsonl()
        assert (env.save_file_batch_num, env.failed_save_file_batch_num) == (1, 1)
        assert env.rollouts_to_save_buffer == []
        await env.close()
        return env.run_uuid

    run_uuid = asyncio.run(run())
    assert {path.name for path in tmp_path.iterdir()} == {
        f"reasoning_gym_environment_rollouts_{run_uuid}_0000.jsonl",
        f"reasoning_gym_environment_FAILED_rollouts_{run_uuid}_0000.jsonl",
    }


def test_a_dumped_conversation_stands_beside_its_own_score(tmp_path):
    texts = [WRONG, RIGHT, "nothing", RIGHT]
    scored(
        [rollout(text) for text in texts],
        dump_rollouts=True,
        data_dumps_dir=str(tmp_path),
    )
    (path,) = tmp_path.glob("*.jsonl")
    line = json.loads(path.read_text())
    assert line["item_id"] == "sums"
    said = [r["conversation"][-1]["content"] for r in line["rollouts"]]
    assert said == texts
    assert [r["score"] for r in line["rollouts"]] == [0.0, 1.0, 0.0, 1.0]


def test_scores_wait_for_wandb_in_the_buffer_of_the_original():
    async def run():
        env = build_env()
        await env.score([rollout(RIGHT), rollout(WRONG)])
        await env.close()
        return env.percent_correct_buffer

    assert asyncio.run(run()) == [1.0, 0.0]


def test_progress_names_are_views_of_the_tasks_progress():
    async def run():
        env = build_env()
        await env.score([rollout(RIGHT), rollout(WRONG)])
        await env.close()
        return env

    env = asyncio.run(run())
    assert env.task_group_counts == {"sums": 1}
    assert list(env.task_performance_history["sums"]) == [0.5]
    assert env.get_curriculum_stats()["total_tasks_tracked"] == 1
    assert env.task_complexity_levels == {}
