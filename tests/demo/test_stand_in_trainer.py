"""The stand-in trainer against the real API, with groups made by hand."""

import asyncio
import dataclasses

import pytest
import yaml

from rg_env.demo.stand_in_trainer import (
    StandInTrainer,
    TrainerConfig,
    find_faults,
)
from rg_env.errors import RunError
from tests.support.real_api import session_at

GROUP = {
    "tokens": [[5, 6, 7, 8], [5, 6, 9]],
    "masks": [[-100, -100, 7, 8], [-100, -100, 9]],
    "scores": [1.0, 0.0],
    "inference_logprobs": [[1.0, 1.0, -0.1, -0.2], [1.0, 1.0, -0.3]],
    "overrides": [{}, {"set_advantage_to_zero": True}],
    "group_overrides": {},
}


@pytest.fixture
def config(api_url):
    return TrainerConfig(
        api_url=api_url, batch_size=4, group_size=2, max_token_len=10, num_steps=3
    )


async def post_groups(url, groups):
    """Send groups as an environment that waits for the trainer."""
    async with session_at(url) as session:
        me = {"env_id": session.env_id}
        for group in groups:
            await session.request("POST", "/scored_data", {**group, **me})


async def test_valid_groups_are_counted_without_a_fault(config):
    seen = []
    trainer = StandInTrainer(config, seen.append)
    posting = asyncio.create_task(post_groups(config.api_url, [GROUP] * 4))
    counts = await asyncio.wait_for(trainer.run(2), 30)
    await posting
    assert [len(groups) for groups in seen] == [2, 2]
    assert (counts.steps, counts.groups) == (2, 4)
    assert (counts.invalid_groups, counts.faults) == (0, {})


async def test_an_api_with_another_trainer_is_refused(config):
    await StandInTrainer(dataclasses.replace(config, batch_size=8)).run(0)
    with pytest.raises(RunError, match="another trainer registered first"):
        await StandInTrainer(config).run(0)


async def test_an_unreachable_api_is_an_error_with_its_url():
    config = TrainerConfig("http://127.0.0.1:9", 2, 2, 10, 1, give_up_s=0.1)
    with pytest.raises(RunError, match=r":9/register failed.*run-api"):
        await StandInTrainer(config).run(1)


FAULTS = """
tokens: [[5, 6, 7, 8]]                          | group_size
tokens: [[5, 5, 5, 5, 5, 5, 5, 5, 5, 5], [5]]   | too_long
masks: [[-100, 1, 7, 8], [5, 6, 9]]             | masks
inference_logprobs: null                        | inference_logprobs
inference_logprobs: [[0.0], [0.0]]              | inference_logprobs
inference_logprobs: [[.nan, 0, 0, 0], [0, 0, 0]] | inference_logprobs
scores: [1.0, .inf]                             | scores
overrides: [{}, null]                           | overrides
"""
"""A change of a good group, and the fault that is found."""


@pytest.mark.parametrize("row", FAULTS.strip().splitlines())
def test_every_fault_of_a_group_is_named(row):
    change, fault = row.split("|")
    group = GROUP | yaml.safe_load(change)
    assert fault.strip() in find_faults(group, group_size=2, max_token_len=10)
    assert find_faults(GROUP, group_size=2, max_token_len=10) == []
