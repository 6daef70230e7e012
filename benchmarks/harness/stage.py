"""The stage of one run: API, trainer and inference server, and the environments."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import os
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import psutil

from benchmarks.harness.children import Watched, own_cpu_s, start_watched
from benchmarks.harness.setting import Contestant, Setting, command_line
from rg_env.demo.api_process import WITHOUT_END, trained_api
from rg_env.demo.child_process import running_program
from rg_env.demo.stand_in_trainer import StandInTrainer, TrainerConfig
from tests.support import group_counter

SAMPLE_EVERY_S = 1.0
POLL_S = 0.05


@dataclasses.dataclass
class Stage:
    """Everything around the environments of one run.

    Attributes:
        around: Process ids of the API, the inference server and the harness itself.
        reports: Files of the probes.
    """

    setting: Setting
    session: aiohttp.ClientSession
    api: str
    server: str
    trainer: StandInTrainer
    envs: list[Watched]
    around: dict[str, int]
    reports: list[Path]

    async def query_api(self) -> dict[str, Any]:
        return await self._query(self.api + group_counter.COUNTS_PATH)

    async def query_server(self) -> dict[str, Any]:
        return await self._query(f"{self.server}/stats")

    async def _query(self, url: str) -> dict[str, Any]:
        async with self.session.get(url) as reply:
            counts: dict[str, Any] = await reply.json()
            return counts

    def sample(self) -> None:
        """Sample what all processes use; raise if an environment has ended."""
        for env in self.envs:
            env.tree.sample()
            env.check()

    async def snapshot(self) -> Snapshot:
        self.sample()
        machine = psutil.cpu_times()
        return Snapshot(
            api=await self.query_api(),
            server=await self.query_server(),
            cpu_s={
                "main": sum(env.tree.cpu_s[0] for env in self.envs),
                "children": sum(env.tree.cpu_s[1] for env in self.envs),
                **{name: own_cpu_s(pid) for name, pid in self.around.items()},
            },
            machine_s=sum(machine) - machine.idle - machine.iowait,
        )


@dataclasses.dataclass(frozen=True)
class Snapshot:
    """All counters at one moment; CPU in seconds since the processes began."""

    api: dict[str, Any]
    server: dict[str, Any]
    cpu_s: dict[str, float]
    machine_s: float


def _trainer_config(setting: Setting) -> TrainerConfig:
    return TrainerConfig(
        api_url="",
        batch_size=setting.batch_size,
        group_size=setting.group_size,
        max_token_len=setting.max_token_length + 1,
        num_steps=WITHOUT_END,
        longest_wait_s=POLL_S,
        # Checking all of them would take CPU from what is measured.
        checked_groups=1,
    )


@contextlib.asynccontextmanager
async def set_up(
    contestant: Contestant, setting: Setting, folder: Path
) -> AsyncIterator[tuple[Stage, float]]:
    """Put up everything, the environments last; yield when those were started."""
    async with contextlib.AsyncExitStack() as stack:
        start = stack.enter_async_context
        # A short path: that of a Unix socket has at most 107 characters.
        scratch = stack.enter_context(tempfile.TemporaryDirectory())
        tell = Path(scratch) / "tell"
        api, trainer = await start(
            trained_api(
                _trainer_config(setting),
                log_path=folder / "api.log",
                program=group_counter.PROGRAM,
                is_quick=contestant.is_api_quick,
            )
        )
        server = await start(
            running_program(
                "tests.support.inference_server",
                *(f"--tell={tell}", f"--latency_ms={setting.latency_ms}"),
                f"--tokens={setting.tokens}",
                log_path=folder / "server.log",
            )
        )
        session = await start(aiohttp.ClientSession())
        stage = Stage(setting, session, api, server, trainer, [], {}, [])
        stage.around = {
            "api": (await stage.query_api())["pid"],
            "server": (await stage.query_server())["pid"],
            "harness": os.getpid(),
        }
        began = time.monotonic()
        try:
            for i in range(setting.instances):
                report = folder / f"probe_{i}.jsonl"
                report.write_text("")  # a kept folder may be used again
                stage.reports.append(report)
                argv = command_line(setting, contestant, api, server, i)
                log = folder / f"env_{i}.log"
                stage.envs.append(
                    await start_watched(
                        contestant.file, argv, folder, log, tell, report
                    )
                )
            watching = asyncio.create_task(_watch(stage))
            try:
                yield stage, began
            finally:
                watching.cancel()
                await asyncio.gather(watching, return_exceptions=True)
        finally:
            ends = [env.stop() for env in stage.envs]
            await asyncio.shield(asyncio.gather(*ends, return_exceptions=True))


async def _watch(stage: Stage) -> None:
    while True:
        stage.sample()
        await asyncio.sleep(SAMPLE_EVERY_S)
