"""The ends of real processes: signals at bad moments, servers that hang, a dead API."""

import asyncio
import contextlib
import json
import signal
import subprocess
import sys
import time

import pytest
from faulty import always, faulty_server, listed
from parts import ENTRY, GUARD_S, descendants, left_alive, options_of, until

from rg_env.demo.api import running_api
from rg_env.demo.trainer import StandInTrainer, TrainerConfig, TrainerError
from rg_env.rollouts.dumps import read_groups

END_WITHIN_S = 10.0


class World:
    """An API with a trainer, a faulty server, and the environment as a process."""

    def __init__(self, folder, api, server):
        self.folder, self.api, self.server = folder, api, server
        self.child = None

    @staticmethod
    @contextlib.asynccontextmanager
    async def of(folder, script):
        async with running_api() as api, faulty_server(script) as server:
            config = TrainerConfig(
                api_url=api,
                batch_size=16,
                group_size=4,
                max_token_len=2048,
                num_steps=10**6,
                checkpoint_dir=str(folder),
                save_checkpoint_interval=1,
            )
            training = asyncio.create_task(StandInTrainer(config).run(10**6))
            world = World(folder, api, server)
            try:
                yield world
            finally:
                training.cancel()
                with contextlib.suppress(asyncio.CancelledError, TrainerError):
                    await training
                if world.child is not None:
                    world.child.kill()
                    await asyncio.to_thread(world.child.wait)

    def start(self):
        options = options_of(
            self.server.url,
            rollout_server_url=self.api,
            total_steps=10**6,
            dump_rollouts="true",
            rollout_save_score_threshold=0.0,
            data_dumps_dir=self.folder / "dumps",
            min_batch_allocation=0.1,
            max_batches_offpolicy=0,
            tasks="gcd,chain_sum",
        )
        # A pipe that nobody reads would fill and hold it up.
        with (self.folder / "said").open("ab") as log:
            self.child = subprocess.Popen(
                [sys.executable, str(ENTRY), "serve", *options],
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        return self.child

    async def end(self, *signals, pause_s=0.5):
        """Send signals; return the status, the seconds it took and what was said."""
        began = time.monotonic()
        for number in signals:
            self.child.send_signal(number)
            await asyncio.sleep(pause_s)
        await asyncio.to_thread(self.child.wait, GUARD_S)
        seconds = time.monotonic() - began
        return self.child.returncode, seconds, (self.folder / "said").read_text()

    def checkpoints(self):
        return sorted(
            self.folder.rglob("step-*.json"), key=lambda path: path.stat().st_mtime_ns
        )

    def ledger(self):
        return json.loads(self.checkpoints()[-1].read_text())["metrics"]


def in_world(folder, script, work):
    async def run():
        async with World.of(folder, script) as world:
            return await work(world)

    return asyncio.run(run())


def dumped(folder, kind="rollouts"):
    pattern = f"dumps/reasoning_gym_environment_{kind}_*.jsonl"
    return [group for path in folder.glob(pattern) for group in read_groups(path)]


def test_a_server_that_hangs_does_not_hold_up_the_end(tmp_path):
    async def work(world):
        world.start()
        await until(lambda: world.server.requests, "requests hang")
        return await world.end(signal.SIGTERM)

    status, seconds, said = in_world(tmp_path, always("hang"), work)
    assert status == 143, said
    assert seconds < END_WITHIN_S
    assert "Traceback" not in said


def test_a_second_signal_ends_at_once_and_leaves_no_process(tmp_path):
    async def work(world):
        child = world.start()
        await until(lambda: world.server.requests, "requests hang")
        started = descendants(child.pid)
        status, seconds, _ = await world.end(signal.SIGTERM, signal.SIGTERM)
        return status, seconds, await asyncio.to_thread(left_alive, started)

    status, seconds, left = in_world(tmp_path, always("hang"), work)
    assert status == -signal.SIGTERM
    assert seconds < 2.0
    assert left == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_during_the_setup_ends_it(tmp_path, number):
    async def work(world):
        child = world.start()
        await until(lambda: len(descendants(child.pid)) > 0, "a worker is started")
        started = descendants(child.pid)
        ending = await world.end(number)
        return ending, await asyncio.to_thread(left_alive, started)

    (status, seconds, said), left = in_world(tmp_path, listed(), work)
    assert status == 128 + number, said
    assert seconds < END_WITHIN_S
    assert left == []
    assert "Traceback" not in said


def test_a_killed_process_leaves_no_other_and_its_rollouts_are_counted(tmp_path):
    async def work(world):
        child = world.start()
        await until(lambda: len(world.checkpoints()) > 2, "checkpoints are saved")
        started = descendants(child.pid)
        child.kill()
        await asyncio.to_thread(child.wait)
        left = await asyncio.to_thread(left_alive, started)
        ledger = json.loads(next(tmp_path.rglob("ledger.json")).read_text())
        before = len(world.checkpoints())
        world.start()
        await until(lambda: len(world.checkpoints()) > before + 2, "it goes on")
        status, _, said = await world.end(signal.SIGTERM)
        return left, ledger, status, said, world.ledger(), world.server.choices

    left, killed, status, said, ledger, served = in_world(tmp_path, listed(), work)
    assert left == []
    assert status == 143
    assert "continuing from" in said
    in_flight = killed["asked"] - sum(killed["fates"].values())
    assert ledger["fates"].get("killed", 0) == in_flight
    assert ledger["asked"] == sum(ledger["fates"].values())
    assert ledger["asked"] >= served
    assert list((tmp_path / "dumps").glob("*.part")) == []


def test_groups_that_reach_no_api_by_the_end_are_on_disk_and_counted(tmp_path):
    async def run():
        async with faulty_server(listed()) as server:
            async with running_api() as api:
                world = World(tmp_path, api, server)
                config = TrainerConfig(api, 16, 4, 2048, 10**6)
                training = asyncio.create_task(StandInTrainer(config).run(10**6))
                world.start()
                await until(lambda: server.requests > 40, "groups are sent")
            await asyncio.sleep(2.0)
            training.cancel()
            await asyncio.gather(training, return_exceptions=True)
            return await world.end(signal.SIGTERM)

    status, seconds, said = asyncio.run(run())
    assert status == 143
    assert seconds < END_WITHIN_S
    unsent = dumped(tmp_path, "UNSENT_rollouts")
    assert unsent and f"{4 * len(unsent)} unsent" in said
    for group in unsent:
        assert len(group["tokens"]) == len(group["scores"]) == 4
        assert group["unsent_because"]
