"""`ReasoningGymEnv` without an API and without a server: items, scores, state."""

import asyncio
from collections import Counter

import pytest

from reasoning_gym_environment import ReasoningGymEnv, system_prompt
from rg_env import Item
from rg_env.adapters.dataset_export import sft_rows
from rg_env.errors import SettingError
from rg_env.results.rescoring import rescore_here
from rg_env.results.sources import Sources, find_files
from tests.support.parts import build_env, env_config, ready_env, server_config
from tests.support.runs import next_items, rollout_of, score_items

pytestmark = pytest.mark.processes


# -- items -----------------------------------------------------------------------------


async def test_an_item_is_two_messages_an_entry_and_a_scorer():
    async with ready_env() as env:
        messages, entry, dataset = await env.get_next_item()
    assert [dict(m)["role"] for m in messages] == ["system", "user"]
    assert dict(messages[1])["content"] == entry["question"]
    assert dataset.score_answer(entry["answer"], entry) == 1.0
    assert len(repr(dataset)) < 60  # the framework formats every item


async def test_a_prompt_that_leaves_no_room_is_replaced():
    async def next_length():
        messages, *_ = await env.get_next_item()
        return len((await env._prompts.prompts.render(messages)).tokens)

    async with ready_env() as env:
        lengths = [await next_length() for _ in range(10)]
        env.config.max_token_length = sorted(lengths)[5]
        assert await next_length() < env.limit_tokens


# -- scores ----------------------------------------------------------------------------


def right(item):
    return f"<answer>{item[1]['answer']}</answer>"


async def test_results_move_the_level_of_their_task_alone(logged):
    tasks = ["gcd", "acre"]
    async with ready_env(tasks=tasks, complexity_mode="curriculum") as env:
        await score_items(env, 12)
        levels = dict(env.task_complexity_levels)
        stats = env.get_curriculum_stats()
    assert levels.keys() == {"gcd"}
    assert levels["gcd"] > 0.3
    assert stats["curriculum_mode"] is True
    assert stats["tasks_with_adjustments"] == 1
    assert stats["task_details"]["gcd"]["complexity"] == levels["gcd"]
    assert stats["avg_complexity"] == levels["gcd"]
    assert "level of gcd: 0.30 -> " in logged.text


async def test_boxed_answers_are_scored_and_rescored_from_the_dump(tmp_path):
    async with ready_env(
        answer_format="boxed",
        data_dumps_dir=str(tmp_path),
        dump_rollouts=True,
        tasks=["gcd"],
    ) as env:
        assert env._extract_final_answer(r"\boxed{\{5\}}") == r"\{5\}"
        item = await env.get_next_item()
        assert r"\boxed{5}" in dict(item[0][0])["content"]
        texts = [rf"\boxed{{{item[1]['answer']}}}", right(item)]
        group = await env.score([rollout_of(item, text) for text in texts])
    assert group["outcomes"] == ["right", "no_answer"]
    samples = list(Sources(find_files([str(tmp_path)])).samples())
    again = await asyncio.to_thread(rescore_here, samples)
    assert [sample.outcome for sample in again] == group["outcomes"]
    assert {sample.row["answer_format"] for sample in again} == {"boxed"}
    (row,) = sft_rows(samples, 1.0, 1, Counter())
    assert Item.from_json(row["item"]).answer_format == "boxed"


async def test_without_partial_credit_a_part_is_a_zero_for_trainer_and_levels():
    async with ready_env(
        partial_credit=False, tasks=["word_sorting"], complexity_mode="curriculum"
    ) as env:
        item = await env.get_next_item()
        first, *rest = item[1]["answer"].split(", ")
        part = f"<answer>{', '.join([*rest, first])}</answer>"
        group = await env.score([rollout_of(item, t) for t in (part, right(item))])
        stats = env.get_curriculum_stats()
    assert (group["scores"], group["outcomes"]) == ([0.0, 1.0], ["partial", "right"])
    assert stats["avg_recent_accuracy"] == 0.5


# -- the class as others use it --------------------------------------------------------


async def test_a_wrong_setting_stops_the_setup():
    with pytest.raises(SettingError, match=r"env\.task_levels: unknown task 'gdc'"):
        await build_env(task_levels={"gdc": 0.5}).setup()
    with pytest.raises(SettingError, match="leave no room for an answer: the prompt"):
        await build_env(max_token_length=100).setup()


async def test_it_takes_a_single_server_config():
    env = ReasoningGymEnv(env_config(), server_config("http://127.0.0.1:7/v1"))
    assert [s.config.base_url for s in env.server.servers] == ["http://127.0.0.1:7/v1"]
    await env.close()


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"system_prompt": "Be brief."}, "Be brief."),
        ({"custom_thinking_prompt": "Think."}, f"Think.\n\n{system_prompt}"),
    ],
)
async def test_the_system_prompt_is_that_of_the_settings_or_the_imported_one(
    changes, expected
):
    async with ready_env(**changes) as env:
        ((messages, *_),) = await next_items(env, 1)
        assert dict(messages[0])["content"] == expected


async def test_the_seed_of_an_item_chooses_one_of_several_system_prompts():
    prompts = ["Even.", "Odd."]
    async with ready_env(system_prompt=prompts, custom_thinking_prompt="Think.") as env:
        items = await next_items(env, 8)
        items += map(env._evaluation._with_messages, env.test_items_with_scorers)
    found = {(item.seed % 2, messages[0]["content"]) for messages, _, item in items}
    assert found == {(0, "Think.\n\nEven."), (1, "Think.\n\nOdd.")}


@pytest.mark.parametrize(
    ("trainer", "own", "limit"),
    [(2048, 8192, 2047), (8192, 8192, 8191), (9000, 8192, 8192), (-1, 8192, 8192)],
)
async def test_a_sequence_stays_below_the_trainers_limit_and_its_own(
    trainer, own, limit
):
    env = build_env(max_token_length=own)
    env.max_token_len = trainer
    assert env.limit_tokens == limit
    await env.close()
