"""Names that callers of the original use: views of the real things."""

import asyncio
import random

import pytest

from reasoning_gym_environment import ReasoningGymEnv
from tests.support.parts import RIGHT, WRONG, build_env, ready_env, rollout
from tests.support.runs import next_items, questions


@pytest.mark.processes
async def test_the_position_of_the_stream_can_be_read_and_set():
    async with ready_env() as env:
        first = await next_items(env, 3)
        position = env.iter
        env.iter = 1
        again = await next_items(env, 2)
    assert position == 3
    assert questions(again) == questions(first[1:])


@pytest.mark.processes
async def test_the_generator_is_the_same_before_the_setup_and_after():
    env = build_env(seed=7)
    before = env.rng.random()
    await env.setup()
    after = env.rng.random()
    await env.close()
    assert before == after


@pytest.mark.processes
def test_reading_the_generator_leaves_the_stream_as_it_is():
    async def run(reads):
        async with ready_env() as env:
            if reads:
                assert isinstance(env.rng, random.Random)
                env.rng.random()
            return await next_items(env, 3)

    read, not_read = asyncio.run(run(True)), asyncio.run(run(False))
    assert questions(read) == questions(not_read)


async def test_dump_names_are_views_of_the_writers(tmp_path):
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
    run_uuid = env.run_uuid
    assert {path.name for path in tmp_path.iterdir()} == {
        f"reasoning_gym_environment_rollouts_{run_uuid}_0000.jsonl",
        f"reasoning_gym_environment_FAILED_rollouts_{run_uuid}_0000.jsonl",
    }


class ScoresWhatIsAnswered:
    """A dataset whose score is the number that stands in the answer."""

    def score_answer(self, answer, entry):
        return float(answer.removeprefix("<answer>").removesuffix("</answer>"))


async def test_the_buffer_of_the_original_holds_one_for_each_score_from_a_half():
    env = build_env()
    texts = [f"<answer>{score}</answer>" for score in ("1", "0.5", "0.49", "0")]
    dataset = ScoresWhatIsAnswered()
    await env.score([rollout(text, dataset=dataset) for text in texts])
    await env.close()
    assert env.percent_correct_buffer == [1.0, 1.0, 0.0, 0.0]


async def test_progress_names_are_views_of_the_tasks_progress():
    env = build_env()
    await env.score([rollout(RIGHT), rollout(WRONG)])
    await env.close()
    assert env.task_group_counts == {"sums": 1}
    assert list(env.task_performance_history["sums"]) == [0.5]
    assert env.get_curriculum_stats()["total_tasks_tracked"] == 1
    assert env.task_complexity_levels == {}


def test_a_subclass_can_write_to_the_log_of_the_environment(logged):
    ReasoningGymEnv.__new__(ReasoningGymEnv).logger.info("mine")
    assert "mine" in logged.text


@pytest.mark.parametrize("name", ["_extract_final_answer", "_update_task_performance"])
def test_a_class_that_overrides_a_helper_in_vain_is_warned(name):
    with pytest.warns(UserWarning, match=f"{name}, which nothing calls"):
        type("Own", (ReasoningGymEnv,), {name: lambda self, *given: None})


@pytest.mark.processes
def test_tasks_assigned_before_the_setup_are_those_of_the_run():
    async def run():
        env = build_env()
        env.task_names = ["gcd"]
        await env.setup()
        try:
            with pytest.raises(AttributeError, match=r"env\.tasks"):
                env.task_names = ["lcm"]
            return env.task_names
        finally:
            await env.close()

    assert asyncio.run(run()) == ["gcd"]
