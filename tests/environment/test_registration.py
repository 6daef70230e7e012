"""The session with a real API: registration, status, leave, and an API that forgets."""

import asyncio

import pytest

from rg_env.errors import SettingError
from tests.support.faults import listed
from tests.support.parts import until
from tests.support.real_api import LIMIT, SIZE, group, in_time, registered
from tests.support.spoilt_api import faulty_api

pytestmark = pytest.mark.usefixtures("impatient")


# -- an API that forgets ---------------------------------------------------------------


async def polling(env):
    """Do what the main loop does about the API."""
    while True:
        await env.get_status()
        await asyncio.sleep(0.05)


async def test_groups_wait_for_the_trainer_of_an_api_that_was_emptied(api):
    async with registered(api.url) as env:
        watching = asyncio.create_task(polling(env))
        api.forget()
        groups = [env.handle_send_to_api(group(str(i))) for i in range(3)]
        sends = asyncio.gather(*groups)
        await until(
            lambda: env._session.retries >= 3,
            "all groups have been tried",
        )
        # A group that comes before the trainer would keep it out for ever.
        api.start_trainer(max_token_len=99)
        assert api.query("GET", "/info")["max_token_len"] == 99
        await in_time(sends)
        watching.cancel()
        got = api.batches()
        texts = sorted(g["messages"][0][0]["content"] for g in got)
        ids = {g["env_id"] for g in got}
    assert texts == ["0", "1", "2"]
    assert ids == {env.env_id}
    assert env.max_token_len == 99


async def test_the_steps_of_a_new_api_start_nothing_on_their_way_back(api):
    async with registered(api.url, steps_per_eval=1) as env:
        env.curr_step = env.status_dict["current_step"] = 57
        api.forget()
        api.start_trainer()
        await in_time(env.get_status())
        began = []
        env._start_evaluation = lambda: began.append(1)
        await env.env_step_checks()
        assert (began, env.curr_step) == ([], 0)


async def test_an_environment_that_is_unregistered_registers_again(api):
    async with registered(api.url) as env:
        api.query("POST", "/disconnect-env", {"env_id": env.env_id})
        await in_time(env.get_status())
        await env.handle_send_to_api(group())
        assert (env.env_id, api.connected(), len(api.batches())) == (1, 1, 1)


# -- registration and leave ------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "fault"),
    [
        ("/register-env", "status_404"),
        ("/info", "not_json"),
        ("/status-env", "status_502"),
    ],
)
async def test_what_stands_in_the_place_of_the_api_at_the_start_is_waited_out(
    api, path, fault, logged
):
    async with (
        faulty_api(listed(fault), api.url, path) as front,
        registered(front.url) as env,
    ):
        env_id, limit, url = env.env_id, env.max_token_len, front.url
    assert (env_id, limit) == (0, LIMIT)
    if path != "/status-env":
        how = "does not answer" if fault == "not_json" else "answers with an error"
        assert f"the Atropos API at {url} {how}" in logged.text


async def test_a_trainer_that_is_gone_stops_the_start_of_groups_and_costs_none(api):
    async with registered(api.url, max_batches_offpolicy=2) as env:
        for _ in range(2):
            await env.handle_send_to_api(group())
        await env.get_status()
        before = env._may_start()
        api.batches()
        await env.get_status()
        after = env._may_start()
        assert (before, after, env.ledger.outcomes["sent"]) == (False, True, 2 * SIZE)


# -- what the API never says -----------------------------------------------------------


async def test_a_trainers_limit_that_no_prompt_stays_below_is_said_at_the_start(api):
    api.forget()
    api.start_trainer(max_token_len=64)
    with pytest.raises(SettingError, match=r"trainer's max_token_len.* 63 .*takes \d+"):
        await registered(api.url).__aenter__()
    assert api.connected() == 0
