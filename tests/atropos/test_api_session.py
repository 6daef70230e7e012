"""The session with the real API: registration, what the trainer asks, groups."""

import asyncio

import pytest

from rg_env.errors import SettingError
from tests.support.parts import RIGHT, WRONG, rollout
from tests.support.real_api import after_registration

pytestmark = pytest.mark.processes


async def nothing(env):
    return env


def test_the_trainers_batch_limit_and_steps_are_taken_over(api_url):
    env = asyncio.run(
        after_registration(api_url, 16, nothing, total_steps=-1, wandb_name=None)
    )
    assert (env.config.batch_size, env.max_token_len) == (16, 512)
    assert env.config.total_steps == 10**6
    assert env.wandb_prepend == "reasoning_gym_0"


def test_a_group_that_does_not_fit_the_batch_is_refused(api_url):
    with pytest.raises(SettingError, match=r"env\.group_size: 8 .* batch of 4"):
        asyncio.run(after_registration(api_url, 4, nothing, group_size=8))


def test_a_batch_that_no_groups_make_up_is_warned_of(api_url, logged):
    asyncio.run(after_registration(api_url, 18, nothing, group_size=4))
    assert "no multiple" in logged.text


def test_several_groups_can_be_sent_at_once(api_url):
    async def work(env):
        groups = [await env.score([rollout(RIGHT), rollout(WRONG)]) for _ in range(2)]
        env.ledger.query(4)
        await env.handle_send_to_api(groups)
        await env.get_status()
        return env.ledger.outcomes["sent"], env.status_dict["queue_size"]

    assert asyncio.run(after_registration(api_url, 16, work, group_size=2)) == (4, 2)
