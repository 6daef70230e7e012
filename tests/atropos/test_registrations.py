"""Registrations of killed processes are ended by whoever starts next, and no others."""

import asyncio
import os
import signal

import pytest

from rg_env.atropos import registrations
from tests.support.parts import GUARD_S
from tests.support.real_api import RealApi, group
from tests.support.registered_process import other_process, registered

pytestmark = pytest.mark.processes


@pytest.fixture
def api(api_url, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    api = RealApi(api_url, tmp_path)
    api.start_trainer()
    return api


def notes(tmp_path):
    return list(tmp_path.rglob("registrations/*/*/*"))


def start_next(api):
    """Register; return how many the API counts in then, and its number of batches."""

    async def run():
        async with registered(api.url) as session:
            me = {"env_id": session.env_id}
            await asyncio.to_thread(api.query, "POST", "/scored_data", group() | me)
            connected = await asyncio.to_thread(api.connected)
            return connected, len(await asyncio.to_thread(api.batches))

    return asyncio.run(asyncio.wait_for(run(), GUARD_S))


@pytest.mark.parametrize(("least", "how"), [(0.0, []), (0.5, []), (0.5, ["forks"])])
def test_all_that_were_killed_are_ended_before_the_next_sends(
    api, tmp_path, logged, least, how
):
    with other_process(api.url, least, *how), other_process(api.url, least):
        pass
    assert start_next(api) == (1, 1)
    (line,) = [line for line in logged.messages if "removed registrations" in line]
    assert line.endswith("from the API: environments 0, 1")
    assert notes(tmp_path) == []


def test_a_process_that_lives_is_not_ended(api):
    with other_process(api.url) as other:
        os.kill(other.pid, signal.SIGSTOP)
        assert start_next(api) == (2, 0)
    assert start_next(api) == (1, 1)


def test_two_environments_of_one_process_do_not_end_each_other(api):
    async def run():
        async with registered(api.url), registered(api.url):
            return await asyncio.to_thread(api.connected)

    assert asyncio.run(run()) == 2


def test_a_process_from_before_a_reboot_is_not_proved_dead(api, tmp_path, monkeypatch):
    with other_process(api.url):
        pass
    (tmp_path / "boot_id").write_text("another")
    monkeypatch.setattr(registrations, "_BOOT_ID", tmp_path / "boot_id")
    assert start_next(api) == (2, 0)


def test_a_number_that_a_new_api_gave_to_the_next_is_its_own(api, tmp_path):
    with other_process(api.url):
        pass
    api.forget()
    api.start_trainer()
    assert start_next(api) == (1, 1)
    assert notes(tmp_path) == []


def test_one_that_registers_again_ends_no_number_of_the_former_api(api, tmp_path):
    others = {"max_token_length": 2048, "desired_name": "env", "group_size": 2}
    limits = {"max_token_length": 2048, "min_batch_allocation": None, "group_size": 2}

    async def run():
        async with registered(api.url) as session:
            with other_process(api.url):
                pass
            api.forget()
            api.start_trainer()
            for _ in range(2):
                api.query("POST", "/register-env", others | {"weight": 1.0})
            await session.register(name="env", weight=1.0, **limits)
            return await asyncio.to_thread(api.connected)

    assert asyncio.run(asyncio.wait_for(run(), GUARD_S)) == 3
    assert notes(tmp_path) == []


def test_what_is_no_note_is_left_alone(api, tmp_path):
    folder = registrations._folder(api.url)
    folder.mkdir(parents=True)
    (folder / "x").touch()
    os.mkfifo(folder / "7")
    assert start_next(api) == (1, 1)
    assert len(notes(tmp_path)) == 2


def test_a_folder_that_takes_no_note_is_named_and_costs_nothing_else(
    api, tmp_path, monkeypatch, logged
):
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    assert start_next(api) == (1, 1)
    assert "XDG_STATE_HOME" in logged.text
