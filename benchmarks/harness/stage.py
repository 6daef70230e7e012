"""The stage of one run: API, trainer and inference server, and the environments."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import os
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import psutil

from benchmarks.harness.children import Watched, own_cpu_s, service, start_watched
from benchmarks.harness.setting import Contestant, Setting, command_line
from benchmarks.harness.trainer import CountingTrainer

LOOK_EVERY_S = 1.0


@dataclasses.dataclass(frozen=True)
class Server:
    """The inference server, which outlives the runs.

    Attributes:
        url: Where it is.
        pid: Its process.
        tell: Its socket for the answers.
    """

    url: str
    pid: int
    tell: Path


@dataclasses.dataclass
class Stage:
    """Everything around the environments of one run.

    Attributes:
        setting: What is measured under.
        session: For the harness's own requests.
        api: URL of the API.
        server: URL of the inference server.
        trainer: The stand-in.
        envs: The environments.
        around: Process ids of the API, the inference server and the harness itself.
        reports: Files of the probes.
        control: File of the process that has nothing else to do.
    """

    setting: Setting
    session: aiohttp.ClientSession
    api: str
    server: str
    trainer: CountingTrainer
    envs: list[Watched]
    around: dict[str, int]
    reports: list[Path]
    control: Path

    async def counts(self, url: str) -> dict[str, Any]:
        """Return the counts of the API or of the inference server."""
        async with self.session.get(f"{url}/bench/counts") as reply:
            counts: dict[str, Any] = await reply.json()
            return counts

    def look(self) -> None:
        """Sample what all processes use; raise if an environment has ended."""
        for env in self.envs:
            env.tree.look()
            env.check()

    async def snapshot(self) -> Snapshot:
        """Read every counter."""
        self.look()
        machine = psutil.cpu_times()
        return Snapshot(
            api=await self.counts(self.api),
            server=await self.counts(self.server),
            main_s=sum(env.tree.cpu_s[0] for env in self.envs),
            children_s=sum(env.tree.cpu_s[1] for env in self.envs),
            around_s={name: own_cpu_s(pid) for name, pid in self.around.items()},
            machine_s=sum(machine) - machine.idle - machine.iowait,
            tokens=self.trainer.received.tokens,
            rollouts=self.trainer.received.rollouts,
        )


@dataclasses.dataclass(frozen=True)
class Snapshot:
    """All counters at one moment; CPU in seconds since the processes began."""

    api: dict[str, Any]
    server: dict[str, Any]
    main_s: float
    children_s: float
    around_s: dict[str, float]
    machine_s: float
    tokens: int
    rollouts: int


@contextlib.asynccontextmanager
async def set_up(
    contestant: Contestant,
    setting: Setting,
    server: Server,
    folder: Path,
) -> AsyncIterator[tuple[Stage, float]]:
    """Put up API and trainer, then the environments; yield when they were started."""
    async with contextlib.AsyncExitStack() as stack:
        log = folder / "api.log"
        api, api_pid = await stack.enter_async_context(
            service("benchmarks.harness.api", log=log)
        )
        session = await stack.enter_async_context(aiohttp.ClientSession())
        behaviour = {
            "latency_ms": setting.latency_ms,
            "jitter": setting.jitter,
            "tokens": setting.tokens,
        }
        async with session.post(f"{server.url}/bench/begin", json=behaviour) as reply:
            reply.raise_for_status()
        trainer = CountingTrainer(
            api,
            setting.batch_size,
            setting.group_size,
            setting.max_token_length + 1,
            setting.step_s,
        )
        await trainer.register(session)
        control = folder / "control.jsonl"
        await stack.enter_async_context(
            service(
                "benchmarks.harness.control", str(control), log=folder / "control.log"
            )
        )
        around = {"api": api_pid, "server": server.pid, "harness": os.getpid()}
        stage = Stage(
            setting, session, api, server.url, trainer, [], around, [], control
        )
        began = time.monotonic()
        try:
            for i in range(setting.instances):
                report = folder / f"probe_{i}.jsonl"
                report.write_text("")  # a kept folder may be used again
                stage.reports.append(report)
                argv = command_line(setting, contestant, api, server.url, i)
                log = folder / f"env_{i}.log"
                stage.envs.append(
                    await start_watched(
                        contestant.file, argv, folder, log, server.tell, report
                    )
                )
            training = asyncio.create_task(trainer.run(session))
            watching = asyncio.create_task(_watch(stage))
            try:
                yield stage, began
            finally:
                for task in (training, watching):
                    task.cancel()
                await asyncio.gather(training, watching, return_exceptions=True)
        finally:
            ends = [env.stop() for env in stage.envs]
            await asyncio.shield(asyncio.gather(*ends, return_exceptions=True))


async def _watch(stage: Stage) -> None:
    while True:
        stage.look()
        await asyncio.sleep(LOOK_EVERY_S)
