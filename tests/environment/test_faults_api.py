"""The environment against the real API while something between them fails.

The environment's part of the host's hooks alone is run here where that is enough: it
needs no worker process and no model to register, to send a group and to take leave.
"""

import asyncio
import contextlib
import json
import os
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from faulty import always, faulty_api, faulty_server, listed
from parts import (
    ENTRY_OF_FOUR,
    GUARD_S,
    NOWHERE,
    Exact,
    build_env,
    options_of,
    ready_env,
    run_main,
    until,
)

from reasoning_gym_environment import ReasoningGymEnv
from rg_env import patience
from rg_env.errors import SettingError
from rg_env.rollouts.dump_writer import read_groups
from rg_env.rollouts.ledger import Ending
from rg_env.simulation.stand_in_trainer import find_faults

SIZE = 2
"""Rollouts of a group; a batch is one group, so that the trainer gets it at once."""

LIMIT = 256
"""The trainer's limit of length, in tokens."""


class RealApi:
    """A real API, emptied, and what a trainer does with it."""

    def __init__(self, url, folder):
        self.url = url
        self._folder = folder

    def ask(self, method, path, payload=None):
        body = None if payload is None else json.dumps(payload).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(self.url + path, body, headers, method=method)
        with urllib.request.urlopen(request, timeout=30) as reply:
            text = reply.read()
        return json.loads(text) if text.startswith(b"{") else text

    def forget(self):
        """Lose all that it knows, as a restart does."""
        with contextlib.suppress(urllib.error.HTTPError):
            self.ask("GET", "/reset_data")

    def start_trainer(self, max_token_len=LIMIT, batch_size=SIZE):
        given = {
            "wandb_group": "g",
            "wandb_project": "p",
            "batch_size": batch_size,
            "max_token_len": max_token_len,
            "checkpoint_dir": str(self._folder),
            "save_checkpoint_interval": 0,
            "starting_step": 0,
            "num_steps": 10**6,
        }
        self.ask("POST", "/register", given)
        self.ask("GET", "/batch")

    def batches(self):
        """Take all groups that it holds, as the trainer does."""
        taken = []
        while batch := self.ask("GET", "/batch")["batch"]:
            taken += batch
        return taken

    def connected(self):
        """Return how many environments it counts in, by a probe's equal share."""
        probe = {
            "max_token_length": 2048,
            "desired_name": "probe",
            "weight": 1.0,
            "group_size": SIZE,
        }
        me = {"env_id": self.ask("POST", "/register-env", probe)["env_id"]}
        share = self.ask("GET", "/status-env", me)["env_weight"]
        self.ask("POST", "/disconnect-env", me)
        return round(1 / share) - 1


@pytest.fixture
def api(api_url, tmp_path):
    real = RealApi(api_url, tmp_path)
    real.forget()
    real.start_trainer()
    return real


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    """Wait as for an API that is near: the waits are no part of what is specified."""
    monkeypatch.setattr(patience, "API_FIRST_PAUSE_S", 0.02)
    monkeypatch.setattr(patience, "API_POLL_S", 0.05)


def group(text="x"):
    return {
        "tokens": [[1, 2, 3]] * SIZE,
        "masks": [[-100, 2, 3]] * SIZE,
        "scores": [0.0, 1.0],
        "inference_logprobs": [[1.0, -0.25, -0.5]] * SIZE,
        "messages": [[{"role": "assistant", "content": text}]] * SIZE,
        "overrides": [{}, {}],
        "task": "gcd",
    }


@contextlib.asynccontextmanager
async def registered(url, cls=ReasoningGymEnv, **changes):
    """Yield an environment that the API knows, without workers; close it."""
    given = {"group_size": SIZE, "rollout_server_url": url} | changes
    env = build_env(cls=cls, **given)
    try:
        await env.register_env()
        await env.get_server_info()
        await env.get_status()
        yield env
    finally:
        await env.close()


async def in_time(work):
    return await asyncio.wait_for(work, GUARD_S)


def unsent_in(folder):
    files = folder.glob("*UNSENT*.jsonl")
    return [line for path in sorted(files) for line in read_groups(path)]


# -- groups on their way ---------------------------------------------------------------

NOT_SERVED = (
    "status_500",
    "status_503",
    "status_429",
    "status_400",
    "not_json",
    "reset",
    "hang",
)
SERVED_AND_NOT_SAID = ("reply_lost", "faulted_after")


def sent_through(api, script, **changes):
    """Send a group through faults; return the environment and what the trainer got."""

    async def run():
        async with (
            faulty_api(script, api.url, "/scored_data") as front,
            registered(front.url, **changes) as env,
        ):
            env.ledger.ask(SIZE)
            await in_time(env.handle_send_to_api(group()))
            return env, api.batches()

    return asyncio.run(run())


@pytest.mark.parametrize("fault", NOT_SERVED)
def test_a_group_that_did_not_get_through_is_sent_again_and_arrives_once(
    api, fault, monkeypatch
):
    monkeypatch.setattr(
        patience, "API_REQUEST_TIMEOUT_S", 0.5 if fault == "hang" else 30
    )
    env, got = sent_through(api, listed(fault, fault))
    assert [g["tokens"] for g in got] == [group()["tokens"]]
    assert env.ledger.fates == {"sent": SIZE}
    assert env._api.retries == 2


@pytest.mark.parametrize("fault", SERVED_AND_NOT_SAID)
def test_a_group_whose_receipt_is_lost_is_sent_again(api, fault):
    env, got = sent_through(api, listed(fault))
    assert len(got) == 2  # the API has no way to tell them apart
    assert env.ledger.fates == {"sent": SIZE}


def test_an_api_that_is_slow_gets_a_group_once(api):
    env, got = sent_through(api, listed("slow"))
    assert len(got) == 1 and env._api.retries == 0


@pytest.mark.parametrize("fault", ["status_400", "status_413", "status_422"])
def test_a_group_that_is_refused_again_and_again_is_on_disk_and_counted(
    api, fault, tmp_path
):
    env, got = sent_through(api, always(fault), data_dumps_dir=str(tmp_path))
    assert got == [] and env.ledger.fates == {"unsent": SIZE}
    (line,) = unsent_in(tmp_path)
    assert line["tokens"] == group()["tokens"] and line["item_id"] == "gcd"
    assert f"status {fault[-3:]}" in line["unsent_because"]


def test_a_group_at_which_the_api_always_fails_is_given_up(api, tmp_path, monkeypatch):
    monkeypatch.setattr(patience, "SEND_GIVE_UP_AFTER_S", 0.2)
    env, got = sent_through(api, always("status_500"), data_dumps_dir=str(tmp_path))
    assert got == [] and env.ledger.fates == {"unsent": SIZE}
    assert len(unsent_in(tmp_path)) == 1


def test_an_outage_does_not_count_against_a_group(api, monkeypatch):
    monkeypatch.setattr(patience, "SEND_GIVE_UP_AFTER_S", 0.2)
    # Half a second without an API, and then a single fault.
    env, got = sent_through(api, listed(*["reset"] * 5, "status_500"))
    assert len(got) == 1 and env.ledger.fates == {"sent": SIZE}


# -- an API that forgets ---------------------------------------------------------------


async def polling(env):
    """Do what the main loop does about the API."""
    while True:
        await env.get_status()
        await asyncio.sleep(0.05)


def test_groups_wait_for_the_trainer_of_an_api_that_was_emptied(api):
    async def run():
        async with registered(api.url) as env:
            watching = asyncio.create_task(polling(env))
            api.forget()
            groups = [env.handle_send_to_api(group(str(i))) for i in range(3)]
            sends = asyncio.gather(*groups)
            await until(lambda: env._api.retries >= 3, "all groups have been tried")
            # A group that comes before the trainer would keep it out for ever.
            api.start_trainer(max_token_len=99)
            assert api.ask("GET", "/info")["max_token_len"] == 99
            await in_time(sends)
            watching.cancel()
            got = api.batches()
            texts = sorted(g["messages"][0][0]["content"] for g in got)
            return texts, {g["env_id"] for g in got}, env

    texts, ids, env = asyncio.run(run())
    assert texts == ["0", "1", "2"]
    assert ids == {env.env_id}
    assert env.max_token_len == 99


def test_the_steps_of_a_new_api_ask_for_nothing_on_their_way_back(api):
    async def run():
        async with registered(api.url, steps_per_eval=1) as env:
            env.curr_step = env.status_dict["current_step"] = 57
            api.forget()
            api.start_trainer()
            await in_time(env.get_status())
            began = []
            env._start_evaluation = lambda: began.append(1)
            await env.env_step_checks()
            return began, env.curr_step

    assert asyncio.run(run()) == ([], 0)


def test_an_environment_that_is_unregistered_registers_again(api):
    async def run():
        async with registered(api.url) as env:
            api.ask("POST", "/disconnect-env", {"env_id": env.env_id})
            await in_time(env.get_status())
            await env.handle_send_to_api(group())
            return env.env_id, api.connected(), len(api.batches())

    assert asyncio.run(run()) == (1, 1, 1)


def test_one_failed_status_does_not_make_us_register_twice(api):
    async def run():
        async with (
            faulty_api(listed("", "status_500"), api.url, "/status-env") as front,
            registered(front.url) as env,
        ):
            await in_time(env.get_status())
            return env.env_id, front.requests

    assert asyncio.run(run()) == (0, 4)


# -- registration and leave ------------------------------------------------------------


@pytest.mark.parametrize("path", ["/register-env", "/info", "/status-env"])
@pytest.mark.parametrize("fault", ["status_404", "status_502", "not_json"])
def test_what_stands_in_the_place_of_the_api_at_the_start_is_waited_out(
    api, path, fault, logged
):
    async def run():
        async with (
            faulty_api(listed(fault), api.url, path) as front,
            registered(front.url) as env,
        ):
            return env.env_id, env.max_token_len, front.url

    env_id, limit, url = asyncio.run(run())
    assert (env_id, limit) == (0, LIMIT)
    if path != "/status-env":
        how = "answers with an error" if fault == "status_502" else "does not answer"
        assert f"the Atropos API at {url} {how}" in logged.text


@pytest.mark.parametrize("fault", SERVED_AND_NOT_SAID)
def test_a_registration_whose_reply_is_lost_does_not_block_batches_for_ever(api, fault):
    async def run():
        api.forget()
        api.start_trainer(batch_size=2 * SIZE)
        async with (
            registered(api.url, min_batch_allocation=0.5) as other,
            faulty_api(listed(fault), api.url, "/register-env") as front,
            registered(front.url, min_batch_allocation=0.5) as env,
        ):
            for each in (other, env):
                await each.handle_send_to_api(group())
            return env.env_id, api.connected(), len(api.batches())

    # Environment 1 is what was lost; 0 is another one of the same settings.
    assert asyncio.run(run()) == (2, 2, 2)


@pytest.mark.parametrize("fault", ["status_500", "status_400", "reset", "not_json"])
def test_leave_is_taken_even_if_the_first_try_fails(api, fault):
    async def run():
        async with faulty_api(listed(fault), api.url, "/disconnect-env") as front:
            async with registered(front.url):
                before = api.connected()
            return before, api.connected()

    assert asyncio.run(run()) == (1, 0)


class Ends(RuntimeError):
    """What ends a run in a test."""


class Bare(ReasoningGymEnv):
    """An environment whose items end the run in a way of choice."""

    async def setup(self):
        """Start no workers."""

    async def get_next_item(self):
        return await self.ending()


async def fails():
    raise Ends


async def hangs():
    await asyncio.sleep(GUARD_S)


@pytest.mark.parametrize("how", ["complete", "error", "cancelled"])
def test_the_api_is_told_of_every_end(api, how):
    async def run():
        steps = 0 if how == "complete" else 10**6
        if how == "complete":
            api.ask("POST", "/scored_data", group() | {"env_id": None})
            api.batches()  # the API is at step 1 of 0
        env = build_env(
            cls=Bare, rollout_server_url=api.url, group_size=SIZE, total_steps=steps
        )
        env.ending = hangs if how == "cancelled" else fails
        serving = asyncio.create_task(env.env_manager())
        if how == "cancelled":
            await until(lambda: env.status_dict.get("env_weight"), "it serves")
            assert api.connected() == 1
            serving.cancel()
        (ended,) = await in_time(asyncio.gather(serving, return_exceptions=True))
        return env.env_id, type(ended), api.connected()

    ends = {"complete": type(None), "error": Ends, "cancelled": asyncio.CancelledError}
    assert asyncio.run(run()) == (0, ends[how], 0)


def test_a_trainer_that_is_gone_stops_the_start_of_groups_and_costs_none(api):
    async def run():
        async with registered(api.url, max_batches_offpolicy=2) as env:
            for _ in range(2):
                await env.handle_send_to_api(group())
            await env.get_status()
            loop = env._serve_loop
            before = loop.may_start(evaluates=False)
            api.batches()
            await env.get_status()
            after = loop.may_start(evaluates=False)
            return before, after, env.ledger.fates["sent"]

    assert asyncio.run(run()) == (False, True, 2 * SIZE)


# -- what the API never says -----------------------------------------------------------


def test_a_batch_that_is_no_multiple_of_the_group_is_said_at_the_start(api, logged):
    async def run():
        api.forget()
        api.start_trainer(batch_size=5)
        async with registered(api.url):
            pass

    asyncio.run(run())
    assert "env.group_size 2" in logged.text and "batch of 5" in logged.text


def test_a_trainers_limit_that_no_prompt_stays_below_is_said_at_the_start(api):
    async def run():
        api.forget()
        api.start_trainer(max_token_len=64)
        async with registered(api.url):
            pass

    with pytest.raises(SettingError, match=r"trainer's max_token_len.* 64 .*takes \d+"):
        asyncio.run(run())
    assert api.connected() == 0


@pytest.mark.parametrize("command", ["serve", "process", "evaluate"])
def test_our_own_limit_that_no_prompt_stays_below_is_said_at_the_start(
    command, tmp_path, capsys
):
    options = options_of(
        max_token_length=64,
        data_path_to_save_groups=tmp_path / "rows.jsonl",
        data_dir_to_save_evals=tmp_path / "evals",
    )
    assert run_main([command, *options]) == 2
    said = capsys.readouterr().err
    assert "env.max_token_length" in said and said.count("\n") == 1


@pytest.mark.parametrize("weight", ["0", "-1", "nan", "inf"])
def test_a_weight_by_which_the_api_cannot_divide_is_refused(weight, capsys):
    status = run_main(["serve", *options_of(inference_weight=weight)])
    assert status == 2
    said = capsys.readouterr().err
    assert "env.inference_weight" in said and said.count("\n") == 1


# -- no waste --------------------------------------------------------------------------

ITEM = ([{"role": "user", "content": "2 + 2?"}], ENTRY_OF_FOUR, Exact())


@contextlib.asynccontextmanager
async def working(collect=hangs, cls=ReasoningGymEnv, **changes):
    """Yield an environment with one worker, in which a hook does what is asked."""
    env = build_env(NOWHERE, cls=cls, group_size=SIZE, **changes)

    async def collected(item):
        env.ledger.ask(SIZE)
        try:
            return await collect(), []
        except asyncio.CancelledError:
            env.ledger.settle(Ending("cancelled", SIZE))
            raise

    env.collect_trajectories = collected
    env._groups.start(ITEM, env.handle_env)
    await asyncio.sleep(0)
    try:
        yield env
    finally:
        await env.close()


def cancel_as_the_host(env):
    for worker in env.workers:
        worker.cancel()


def cancel_for_its_time(env):
    for running in env.running_items.values():
        running["start_time"] -= 10**6
    env._groups.cancel_timed_out(env.config.worker_timeout)


@pytest.mark.parametrize("cancel", [cancel_as_the_host, cancel_for_its_time])
def test_a_worker_that_is_cancelled_returns_its_item(cancel):
    async def run():
        async with working() as env:
            cancel(env)
            await until(lambda: not env.workers, "the worker has ended")
            return env.backlog, env.running_items, dict(env.ledger.fates)

    assert asyncio.run(run()) == ([ITEM], {}, {"cancelled": SIZE})


async def gives_group():
    return group()


class BadHook(ReasoningGymEnv):
    """A subclass whose hook fails, or drops the group."""

    fails = True

    async def postprocess_histories(self, trajectories):
        if self.fails:
            raise Ends


def after_bad_hook(fails):
    async def run():
        bad = type("Bad", (BadHook,), {"fails": fails})
        async with working(gives_group, bad) as env:
            await until(lambda: not env.workers, "the worker has ended")
            return env.backlog, dict(env.ledger.fates), env.ledger.in_flight

    return asyncio.run(run())


def test_a_group_that_is_lost_in_a_hook_is_counted_and_asked_again():
    assert after_bad_hook(fails=True) == ([ITEM], {"failed": SIZE}, 0)


def test_a_group_that_a_hook_drops_is_counted():
    assert after_bad_hook(fails=False) == ([], {"rejected": SIZE}, 0)


class BadTable(ReasoningGymEnv):
    """A subclass whose rows for W&B fail."""

    async def add_rollouts_for_wandb(self, scored_data, item=None):
        raise Ends


def test_rows_for_wandb_that_fail_cost_no_group(api):
    async def run():
        async with registered(api.url, cls=BadTable) as env:
            env.ledger.ask(SIZE)
            with pytest.raises(Ends):
                await env.handle_send_to_api(group())
            return api.batches(), dict(env.ledger.fates)

    got, fates = asyncio.run(run())
    assert len(got) == 1 and fates == {"sent": SIZE}


def fill_disk_of(writer):
    with Path("/dev/full").open("ab") as full:
        os.dup2(full.fileno(), writer._file.fileno())


def test_a_disk_that_takes_no_rows_costs_no_group(api, tmp_path, logged):
    async def run():
        path = tmp_path / "rows.jsonl"
        async with registered(api.url, data_path_to_save_groups=str(path)) as env:
            fill_disk_of(env.jsonl_writer)
            for _ in range(3):
                await env.handle_send_to_api(group())
            return api.batches(), env.jsonl_writer.rows_lost

    got, lost = asyncio.run(run())
    assert (len(got), lost) == (3, 3)
    said = [line for line in logged.messages if "data_path_to_save_groups" in line]
    assert len(said) == 2  # the first and the second, then the fourth


# -- bad bytes -------------------------------------------------------------------------

BAD_TEXTS = {
    "half a character": "a \ud800 b",
    "NUL": "a\x00b",
    "control characters": "\x1b[2J\x07\r\n\x85\u2028\ufeff\u202e",
    "megabytes": "on and on " * 300_000,
}


@pytest.mark.parametrize("name", BAD_TEXTS)
def test_a_batch_with_any_text_in_its_messages_reaches_the_trainer(api, name):
    text = BAD_TEXTS[name]

    async def run():
        async with registered(api.url, include_messages=True) as env:
            await in_time(env.handle_send_to_api(group(text)))
            return api.batches()

    (only,) = asyncio.run(run())
    found = only["messages"][0][0]["content"]
    assert found == text.replace("\ud800", "\ufffd")


def test_a_batch_with_half_a_character_would_be_lost_if_it_were_sent_as_it_is(api):
    body = group("\ud800") | {"env_id": None}
    api.ask("POST", "/scored_data", body)
    with pytest.raises(urllib.error.HTTPError, match="500"):
        api.ask("GET", "/batch")


# -- one bad rollout -------------------------------------------------------------------


def collected(script):
    """Collect a group from a faulty server; return it and the server."""

    async def run():
        async with (
            faulty_server(script) as server,
            ready_env(server.url, tasks=["gcd"], group_size=4) as env,
        ):
            env.config.ensure_scores_are_not_same = False
            item = await env.get_next_item()
            scored, again = await env.collect_trajectories(item)
            return scored, again, env, server

    return asyncio.run(run())


ONE_BAD = ("empty_one", "abort_one", "null_logprob", "nasty_text", "endless_text")


@pytest.mark.parametrize("fault", ONE_BAD)
def test_one_bad_rollout_does_not_cost_its_group(fault):
    scored, again, env, _ = collected(listed(fault))
    assert find_faults(scored, 4, 2049) == [] and again == []
    assert env.ledger.fates == {}


def test_a_completion_that_stays_empty_is_never_sent_and_its_item_is_asked_again():
    scored, again, env, server = collected(always("empty_one"))
    assert scored is None and len(again) == 1
    assert env.ledger.fates == {"unanswered": 4}
    assert server.requests > 1
