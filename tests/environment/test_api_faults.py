"""An environment at a real API that forgets it, or while something between them fails.

Neither workers nor a model take part.
"""

import asyncio

import pytest

from reasoning_gym_environment import ReasoningGymEnv
from rg_env.atropos import api_client, delivery
from rg_env.atropos.api_client import ApiSession
from rg_env.errors import SettingError
from rg_env.line_file import read_groups
from tests.support.faults import always, listed
from tests.support.parts import until
from tests.support.real_api import (
    LIMIT,
    SIZE,
    EndsError,
    RealApi,
    group,
    in_time,
    registered,
)
from tests.support.runs import fill_disk
from tests.support.spoilt_api import faulty_api


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    """Wait as for an API that is near: the waits are no part of what is specified."""
    monkeypatch.setattr(api_client, "FIRST_PAUSE_S", 0.02)
    monkeypatch.setattr(api_client, "POLL_S", 0.05)


@pytest.fixture
def api(api_url):
    real = RealApi(api_url)
    real.start_trainer()
    return real


def unsent_in(folder):
    files = folder.glob("unsent/*UNSENT*.jsonl")
    return [line for path in sorted(files) for line in read_groups(path)]


# -- groups on their way ---------------------------------------------------------------


async def sent_through(api, script, **changes):
    """Send a group through faults; return the environment and what the trainer got."""
    async with (
        faulty_api(script, api.url, "/scored_data") as front,
        registered(front.url, **changes) as env,
    ):
        env.ledger.query(SIZE)
        await in_time(env.handle_send_to_api(group()))
        return env, api.batches()


@pytest.mark.parametrize(
    "fault",
    ["status_500", "status_400", "reset", "hang", "reply_lost", "faulted_after"],
)
async def test_a_group_arrives_once_if_it_or_its_reply_did_not_get_through(
    api, fault, monkeypatch
):
    within_s = 0.5 if fault == "hang" else 30.0
    monkeypatch.setitem(ApiSession.request.__kwdefaults__, "timeout_s", within_s)
    env, got = await sent_through(api, listed(fault, fault))
    assert [g["tokens"] for g in got] == [group()["tokens"]]
    assert env.ledger.endings == {"sent": SIZE}


async def test_groups_that_are_sent_at_once_arrive_once_each(api):
    groups = [group(text) for text in "abc"]
    async with (
        faulty_api(listed("", "reply_lost"), api.url, "/scored_data") as front,
        registered(front.url) as env,
    ):
        await in_time(asyncio.gather(*map(env._send_scored_data_to_api, groups)))
    got = sorted(str(each["messages"]) for each in api.batches())
    assert got == [str(each["messages"]) for each in groups]


@pytest.mark.parametrize("fault", ["status_422", "status_500"])
async def test_a_group_that_is_refused_again_and_again_is_on_disk_and_counted(
    api, fault, tmp_path, monkeypatch
):
    monkeypatch.setattr(delivery, "SEND_TRIES_IF_FAULTY", 3)
    env, got = await sent_through(api, always(fault), data_dumps_dir=str(tmp_path))
    assert got == [] and env.ledger.endings == {"unsent": SIZE}
    (line,) = unsent_in(tmp_path)
    assert line["tokens"] == group()["tokens"] and line["item_id"] == "gcd"
    assert f"status {fault[-3:]}" in line["unsent_because"]


async def test_a_group_that_reaches_no_api_by_the_end_is_on_disk_and_counted(
    api, tmp_path
):
    async with registered(api.url, data_dumps_dir=str(tmp_path)) as env:
        api.forget()
        env.ledger.query(SIZE)
        sending = asyncio.create_task(env.handle_send_to_api(group()))
        await until(lambda: env._session.retries, "it has been tried")
        sending.cancel()
        await asyncio.wait([sending])
    (line,) = unsent_in(tmp_path)
    assert line["tokens"] == group()["tokens"] and line["unsent_because"]
    assert env.ledger.endings == {"unsent": SIZE}


# -- hooks and disks that fail ---------------------------------------------------------


class BadTable(ReasoningGymEnv):
    """A subclass whose rows for W&B fail."""

    async def add_rollouts_for_wandb(self, scored_data, item=None):
        raise EndsError


async def test_rows_for_wandb_that_fail_cost_no_group(api):
    async with registered(api.url, cls=BadTable) as env:
        env.ledger.query(SIZE)
        with pytest.raises(EndsError):
            await env.handle_send_to_api(group())
        got = api.batches()
        outcomes = dict(env.ledger.endings)
    assert len(got) == 1 and outcomes == {"sent": SIZE}


async def test_a_disk_that_takes_no_rows_costs_no_group(
    api, tmp_path, logged, monkeypatch
):
    path = tmp_path / "rows.jsonl"
    async with registered(api.url, data_path_to_save_groups=str(path)) as env:
        fill_disk(monkeypatch)
        for _ in range(3):
            await env.handle_send_to_api(group())
        got = api.batches()
        lost = env.jsonl_writer.rows_lost
    assert (len(got), lost) == (3, 3)
    lines = [line for line in logged.messages if "data_path_to_save_groups" in line]
    assert len(lines) == 2  # the first and the second, then the fourth


# -- registration ----------------------------------------------------------------------


async def test_a_restarted_api_gets_groups_again(api):
    async def polling():
        """Do what the main loop does about the API."""
        while True:
            await env.get_status()
            await asyncio.sleep(0.05)

    async with registered(api.url) as env:
        watching = asyncio.create_task(polling())
        api.forget()
        groups = [env.handle_send_to_api(group(str(i))) for i in range(3)]
        sends = asyncio.gather(*groups)
        await until(lambda: env._session.retries >= 3, "all groups have been tried")
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


@pytest.mark.parametrize(
    ("path", "fault"),
    [
        ("/register-env", "status_404"),
        ("/info", "not_json"),
        ("/status-env", "status_502"),
    ],
)
async def test_what_stands_in_the_place_of_the_api_at_the_start_is_waited_out(
    api, path, fault
):
    async with (
        faulty_api(listed(fault), api.url, path) as front,
        registered(front.url) as env,
    ):
        assert (env.env_id, env.max_token_len) == (0, LIMIT)


async def test_a_trainers_limit_that_no_prompt_stays_below_is_said_at_the_start(api):
    api.forget()
    api.start_trainer(max_token_len=64)
    with pytest.raises(SettingError, match=r"trainer's max_token_len.* 63 .*takes \d+"):
        await registered(api.url).__aenter__()
    assert api.connected() == 0
