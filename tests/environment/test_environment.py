"""`ReasoningGymEnv` without an API and without a server: items, scores, state."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from reasoning_gym_environment import ReasoningGymEnv
from tests.support.parts import TOKENIZER, env_config, ready_env
from tests.support.runs import next_items, questions, rollout_of

pytestmark = pytest.mark.processes

Env = Any


def with_env(work: Callable[[Env], Awaitable[Any]], **changes: Any) -> Any:

    async def run() -> Any:
        async with ready_env(**changes) as env:
            return await work(env)

    return asyncio.run(run())


def right(item: Any) -> str:
    return f"<think>hm</think><answer>{item[1]['answer']}</answer>"


WRONG = "<answer>no idea</answer>"


async def mixed_group(env: Env, **changes: Any) -> Any:
    item = await env.get_next_item()
    texts = [WRONG, right(item), "no tags", right(item)]
    return await env.score([rollout_of(item, text, **changes) for text in texts])


# -- items -----------------------------------------------------------------------------


async def test_an_item_is_two_messages_an_entry_and_a_scorer() -> None:
    async with ready_env() as env:
        messages, entry, dataset = await env.get_next_item()
        assert [dict(m)["role"] for m in messages] == ["system", "user"]
        assert dict(messages[1])["content"] == entry["question"]
        assert dataset.score_answer(entry["answer"], entry) == 1.0


async def test_the_scorer_of_an_item_has_a_short_repr_and_pickles() -> None:
    async with ready_env() as env:
        *_, dataset = await env.get_next_item()
        assert len(repr(dataset)) < 60
        assert pickle.loads(pickle.dumps(dataset)) == dataset


def test_two_environments_of_one_seed_sample_the_same_items() -> None:
    first = with_env(lambda env: next_items(env, 12))
    second = with_env(lambda env: next_items(env, 12), num_workers=2)
    assert questions(first) == questions(second)


async def test_a_prompt_that_leaves_no_room_is_replaced() -> None:
    async with ready_env() as env:
        lengths = []
        for _ in range(10):
            messages, *_ = await env.get_next_item()
            lengths.append(len((await env._requests.prompt(messages)).tokens))
        env.config.max_token_length = sorted(lengths)[5]
        messages, *_ = await env.get_next_item()
        assert len((await env._requests.prompt(messages)).tokens) < env.limit_tokens


# -- scores ----------------------------------------------------------------------------


def test_a_group_keeps_its_order_and_its_size() -> None:
    group = with_env(mixed_group)
    assert group["scores"] == [0.0, 1.0, 0.0, 1.0]
    assert group["outcomes"] == ["wrong", "right", "no_answer", "right"]


def test_a_group_has_the_form_that_host_and_api_need() -> None:
    group = with_env(mixed_group)
    lengths = [
        [len(part) for part in group[key]]
        for key in ("tokens", "masks", "inference_logprobs")
    ]
    assert lengths == [[5] * 4] * 3
    assert group["overrides"] == [{}] * 4
    assert group["group_overrides"] == {}


def test_a_completion_of_one_token_costs_its_group_nothing() -> None:
    group = with_env(lambda env: mixed_group(env, length=1))
    assert len(group["scores"]) == 4


def test_equal_scores_are_no_group_when_the_scores_must_differ() -> None:
    async def work(env: Env) -> Any:
        item = await env.get_next_item()
        return await env.score([rollout_of(item, WRONG)] * 4)

    assert with_env(work) is None
    assert with_env(work, ensure_scores_are_not_same=False)["scores"] == [0.0] * 4


def test_a_truncated_rollout_gets_no_advantage() -> None:
    async def work(env: Env) -> Any:
        item = await env.get_next_item()
        cut = rollout_of(item, "<think>", finish="length")
        return await env.score([rollout_of(item, right(item)), cut])

    group = with_env(work)
    assert group["overrides"] == [{}, {"set_advantage_to_zero": True}]
    group = with_env(work, mask_too_long_completions=False)
    assert group["overrides"] == [{}, {}]


@pytest.mark.parametrize(
    ("counts", "expected"), [("prompt_and_completion", 0.4), ("completion", 1.0)]
)
async def test_the_length_penalty_counts_what_it_is_told(
    counts: str, expected: float
) -> None:
    async with ready_env(
        max_token_length=100,
        length_penalty_counts=counts,
        ensure_scores_are_not_same=False,
        system_prompt="-",
        tasks=["gcd"],
    ) as env:
        item = await env.get_next_item()
        long = rollout_of(item, right(item), prompt=60, length=30)
        group = await env.score([rollout_of(item, right(item)), long])
    assert group["scores"] == pytest.approx([1.0, expected])


async def test_a_dataset_of_the_library_is_scored_by_its_name_and_config() -> None:
    import reasoning_gym

    dataset = reasoning_gym.create_dataset("gcd", seed=1, size=1)
    item = ([{"role": "user", "content": "?"}], dataset[0], dataset)

    async with ready_env() as env:
        found = await env.score(
            [rollout_of(item, right(item)), rollout_of(item, WRONG)]
        )
    assert found["scores"] == [1.0, 0.0]


# -- state -----------------------------------------------------------------------------


async def test_a_missing_checkpoint_is_said_and_starts_anew(
    tmp_path: Path, logged: pytest.LogCaptureFixture
) -> None:
    async with ready_env() as env:
        env.checkpoint_dir, env.curr_step = str(tmp_path), 3
        env.load_checkpoint()
    assert "no checkpoint" in logged.text


# -- the class as others use it --------------------------------------------------------


def test_a_server_baseline_means_the_four_local_servers_of_the_host() -> None:
    from atroposlib.envs.server_handling.server_manager import ServerBaseline

    baseline = ServerBaseline(server_type="vllm", tokenizer_name=TOKENIZER)
    env = ReasoningGymEnv(env_config(), baseline)
    urls = [server.config.base_url for server in env.server.servers]
    assert urls == [f"http://localhost:{port}/v1" for port in range(9004, 9008)]
    asyncio.run(env.close())
