"""The ends of real processes: in order, by signals at bad moments, with a dead API.

All of them run and end at the same time, once for the whole module: most of an end is
spent in waiting.
"""

import asyncio
import json
import signal
from pathlib import Path

import pytest

from tests.support import faults
from tests.support.faults import always, listed
from tests.support.inference_server import inference_server
from tests.support.parts import NOWHERE, end_of, until
from tests.support.real_api import RealApi
from tests.support.world import World

pytestmark = pytest.mark.processes

END_WITHIN_S = faults.LONGEST_HANG_S
"""A server that hangs is not waited for; a busy machine may take its time."""
LIBRARY_OF_THE_HOST = "multidict"
"""It is loaded early in an import of the host, which takes another second then."""


# -- runs and ends --------------------------------------------------------------------


async def hanging(folder):
    """End one instance by one signal and another by two while their server hangs."""
    async with (
        World(folder) as world,
        world.with_api(),
        inference_server(always("hang")) as first,
        inference_server(always("hang")) as second,
    ):
        runs = {
            first: world.start(first.url, "one", inference_weight=1.0),
            # A busy machine may send the second signal late.
            second: world.start(
                second.url, "two", has_slow_end=True, inference_weight=1.0
            ),
        }
        for server in runs:
            await until(lambda server=server: server.faults.requests, "requests hang")
        api = RealApi(world.api, "")
        await until(lambda: api.connected() == 2, "both are registered")
        one = await runs[first].end(signal.SIGTERM)
        registered = api.connected()
        two = await runs[second].end(signal.SIGTERM, signal.SIGTERM)
        return one, two, runs[first].said, registered


async def in_imports(folder):
    async with World(folder) as world:
        run = world.start(NOWHERE)
        maps = Path(f"/proc/{run.pid}/maps")
        await until(lambda: LIBRARY_OF_THE_HOST in maps.read_text(), "it imports")
        status, _, left = await run.end(signal.SIGINT)
        return status, left, [path.name for path in folder.rglob("*")]


async def killed(folder):
    """Kill an instance, start it again, and end that one when its API has died."""
    saving = {"checkpoint_dir": str(folder), "save_checkpoint_interval": 1}
    async with (
        inference_server(listed(), latency_ms=200) as server,
        World(folder) as world,
    ):
        async with world.with_api(**saving):
            run = world.start(server.url, min_batch_allocation="None")
            await until(lambda: len(world.checkpoints()) > 2, "checkpoints are saved")
            _, _, left = await run.end(signal.SIGKILL)
            ledger = json.loads(next(folder.rglob("ledger.json")).read_text())
            before = len(world.checkpoints())
            run = world.start(server.url, min_batch_allocation="None")
            await until(lambda: len(world.checkpoints()) > before + 2, "it goes on")
        await asyncio.sleep(2.0)
        status, seconds, _ = await run.end(signal.SIGTERM)
        return {
            "left": left,
            "status": status,
            "seconds": seconds,
            "said": run.said,
            "killed": ledger,
            "state": json.loads(world.checkpoints()[-1].read_text()),
            # Each of the two runs has probed the server with two.
            "served": server.completions - 2 * 2,
            "dumped": len(world.dumped()),
            "unsent": world.dumped("UNSENT_rollouts"),
            "unfinished": list((folder / "dumps").glob("*.part")),
        }


@pytest.fixture(scope="module")
def ends(tmp_path_factory):
    """Return what each of the runs above came to, or its error, by name."""
    folder = tmp_path_factory.mktemp("ends")
    runs = {
        "killed": killed(folder / "killed"),
        "hanging": hanging(folder / "hanging"),
        "in_imports": in_imports(folder / "in_imports"),
    }

    async def all_at_once():
        return await asyncio.gather(*runs.values(), return_exceptions=True)

    return dict(zip(runs, asyncio.run(all_at_once()), strict=True))


# -- claims ----------------------------------------------------------------------------


def test_the_exit_status_says_how_it_ended(ends):
    (status, _, left), _, said, _ = end_of(ends, "hanging")
    assert status == 143, said
    assert left == [] and "Traceback" not in said


def test_the_api_is_told_of_an_end(ends):
    *_, registered = end_of(ends, "hanging")
    assert registered == 1  # of two


def test_a_server_that_hangs_holds_up_no_end_and_a_second_signal_ends_at_once(ends):
    (_, seconds, _), (status, _, left), *_ = end_of(ends, "hanging")
    assert seconds < END_WITHIN_S
    # Of the signal itself: an end in order has the status 143.
    assert (status, left) == (-signal.SIGTERM, [])


def test_a_signal_during_the_imports_ends_it_as_a_shell_expects(ends):
    status, left, files = end_of(ends, "in_imports")
    # Ended by the signal itself, which a shell reports as 128 + n.
    assert status == -signal.SIGINT
    assert left == []
    assert sorted(files) == ["env", "said"]


def test_a_killed_process_leaves_no_other_and_its_rollouts_are_counted(ends):
    end = end_of(ends, "killed")
    assert end["left"] == end["unfinished"] == []
    # Those dumped after the newest checkpoint before the kill are on disk alone.
    assert 0 < end["state"]["saved"]["groups_total"] <= end["dumped"]
    assert "continuing from" in end["said"]
    ledger = end["state"]["metrics"]
    in_flight = end["killed"]["queried"] - sum(end["killed"]["outcomes"].values())
    assert ledger["outcomes"].get("killed", 0) == in_flight
    assert ledger["queried"] == sum(ledger["outcomes"].values())
    assert ledger["queried"] >= end["served"]


def test_groups_that_reach_no_api_by_the_end_are_on_disk_and_counted(ends):
    end = end_of(ends, "killed")
    assert end["status"] == 143
    assert end["seconds"] < END_WITHIN_S
    unsent = end["unsent"]
    assert unsent and f"{4 * len(unsent)} unsent" in end["said"]
    for group in unsent:
        assert len(group["tokens"]) == len(group["scores"]) == 4
        assert group["unsent_because"]
