"""The ends of real processes: signals at bad moments, servers that hang, a dead API.

All of them live and end at the same time, once for the whole module: most of an end is
spent in waiting.
"""

import asyncio
import json
import signal
from pathlib import Path

import pytest
from faulty import always, faulty_server, listed
from parts import NOWHERE, run_main, until
from world import World

END_WITHIN_S = 10.0
AT_ONCE_S = 1.5
LIBRARY_OF_THE_HOST = "multidict"
"""It is loaded early in an import of the host, which takes another second then."""


# -- lives and ends --------------------------------------------------------------------


async def hanging(folder):
    """End one instance by one signal and another by two while their server hangs."""
    async with (
        World(folder) as world,
        world.with_api(),
        faulty_server(always("hang")) as first,
        faulty_server(always("hang")) as second,
    ):
        lives = {
            server: world.start(server.url, server.url[-5:])
            for server in (first, second)
        }
        for server in lives:
            await until(lambda server=server: server.requests, "requests hang")
        one = await lives[first].end(signal.SIGTERM)
        two = await lives[second].end(signal.SIGTERM, signal.SIGTERM)
        return one, two, lives[first].said


async def in_setup(folder, number):
    """Send a signal when the first worker is started, before there is an API."""
    async with World(folder) as world:
        life = world.start(NOWHERE)
        await until(life.has_workers, "a worker is started")
        return *await life.end(number), life.said


async def in_imports(folder, number):
    """Send a signal while the libraries are loaded."""
    async with World(folder) as world:
        life = world.start(NOWHERE)
        maps = Path(f"/proc/{life.pid}/maps")
        await until(lambda: LIBRARY_OF_THE_HOST in maps.read_text(), "it imports")
        status, _, left = await life.end(number)
        return status, left, [path.name for path in folder.rglob("*")]


async def killed(folder):
    """Kill an instance, start it again, and end that one when its API has died."""
    saving = {"checkpoint_dir": str(folder), "save_checkpoint_interval": 1}
    async with (
        faulty_server(listed(), latency_s=0.2) as server,
        World(folder) as world,
    ):
        async with world.with_api(**saving):
            life = world.start(server.url)
            await until(lambda: len(world.checkpoints()) > 2, "checkpoints are saved")
            _, _, left = await life.end(signal.SIGKILL)
            ledger = json.loads(next(folder.rglob("ledger.json")).read_text())
            before = len(world.checkpoints())
            life = world.start(server.url)
            await until(lambda: len(world.checkpoints()) > before + 2, "it goes on")
        await asyncio.sleep(2.0)
        status, seconds, _ = await life.end(signal.SIGTERM)
        return {
            "left": left,
            "status": status,
            "seconds": seconds,
            "said": life.said,
            "killed": ledger,
            "state": world.last_state(),
            "served": server.choices,
            "dumped": len(world.dumped()),
            "unsent": world.dumped("UNSENT_rollouts"),
            "unfinished": list((folder / "dumps").glob("*.part")),
        }


@pytest.fixture(scope="module")
def ends(tmp_path_factory):
    """Return what each of the lives above came to, or its error, by name."""
    folder = tmp_path_factory.mktemp("ends")
    lives = {
        "killed": killed(folder / "killed"),
        "hanging": hanging(folder / "hanging"),
    }
    for number in (signal.SIGTERM, signal.SIGINT):
        for when in (in_setup, in_imports):
            name = f"{when.__name__} {number.name}"
            lives[name] = when(folder / name, number)

    async def all_at_once():
        return await asyncio.gather(*lives.values(), return_exceptions=True)

    return dict(zip(lives, asyncio.run(all_at_once()), strict=True))


def end_of(ends, name):
    if isinstance(ends[name], BaseException):
        raise ends[name]
    return ends[name]


# -- claims ----------------------------------------------------------------------------


def test_a_server_that_hangs_does_not_hold_up_the_end(ends):
    (status, seconds, left), _, said = end_of(ends, "hanging")
    assert status == 143, said
    assert seconds < END_WITHIN_S
    assert left == []
    assert "Traceback" not in said


def test_a_second_signal_ends_at_once_and_leaves_no_process(ends):
    _, (status, seconds, left), _ = end_of(ends, "hanging")
    assert status == -signal.SIGTERM
    assert seconds < AT_ONCE_S
    assert left == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_during_the_setup_ends_it(ends, number):
    status, seconds, left, said = end_of(ends, f"in_setup {number.name}")
    assert status == 128 + number, said
    assert seconds < END_WITHIN_S
    assert left == []
    assert "Traceback" not in said


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_during_the_imports_ends_it_as_a_shell_expects(ends, number):
    status, left, files = end_of(ends, f"in_imports {number.name}")
    # Ended by the signal itself, which a shell reports as 128 + n.
    assert status == -number
    assert left == []
    assert sorted(files) == ["env", "said"]


def test_a_keyboard_interrupt_of_any_command_is_no_traceback(monkeypatch):
    def interrupted(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr("rg_env.cli.atropos_commands.evaluate", interrupted)
    assert run_main(["evaluate"]) == 128 + signal.SIGINT


def test_a_killed_process_leaves_no_other_and_its_rollouts_are_counted(ends):
    end = end_of(ends, "killed")
    assert end["left"] == []
    assert "continuing from" in end["said"]
    ledger = end["state"]["metrics"]
    in_flight = end["killed"]["asked"] - sum(end["killed"]["fates"].values())
    assert ledger["fates"].get("killed", 0) == in_flight
    assert ledger["asked"] == sum(ledger["fates"].values())
    assert ledger["asked"] >= end["served"]


def test_a_killed_process_leaves_counters_and_files_that_agree(ends):
    end = end_of(ends, "killed")
    assert end["unfinished"] == []
    assert end["state"]["saved"]["groups_total"] == end["dumped"]


def test_groups_that_reach_no_api_by_the_end_are_on_disk_and_counted(ends):
    end = end_of(ends, "killed")
    assert end["status"] == 143
    assert end["seconds"] < END_WITHIN_S
    unsent = end["unsent"]
    assert unsent and f"{4 * len(unsent)} unsent" in end["said"]
    for group in unsent:
        assert len(group["tokens"]) == len(group["scores"]) == 4
        assert group["unsent_because"]
