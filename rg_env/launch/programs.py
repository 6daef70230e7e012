"""The programs of a training run: how each is started, watched and ended."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
import os
import shlex
import signal
import socket
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import yaml

from rg_env.errors import EXIT_REFUSED, RunError, SettingError, counted
from rg_env.installation import PROJECT
from rg_env.line_file import try_lock
from rg_env.settings.program_settings import SIMULATED, LaunchSettings
from rg_env.settings.setting_types import without_path
from rg_env.workers.sandbox import syscalls

logger = logging.getLogger(__name__)

SERVED_NAME = "policy"
"""The model's name at the inference server that is started."""

# Steps of `serve`. The trainer knows when it is enough: it may leave out a batch.
ENDLESS = 1_000_000_000

TRAINER = PROJECT / "examples" / "trainer"
AGREED = ("group_size", "batch_size", "max_token_length", "total_steps")
"""Settings of the environment that several programs have to agree on."""

# Between two requests that find out whether a program is ready, and for one.
ASK_EVERY_S, ASK_TIMEOUT_S = 0.5, 5.0

# Before a program that has died is started again; doubled each time.
RESTART_FIRST_PAUSE_S = 1.0

# A program that dies more often in this time ends the run.
MOST_RESTARTS, RESTARTS_WITHIN_S = 5, 600.0

LOG_END_BYTES = 1 << 16


class ProgramError(RunError):
    """A program of the run refused to go on, or died too often."""


def last_lines(log: Path, start: int = 0) -> list[str]:
    """Return lines at the end of a file, from a byte of it on, without empty ones."""
    with contextlib.suppress(OSError), log.open("rb") as file:
        file.seek(max(start, file.seek(0, os.SEEK_END) - LOG_END_BYTES))
        lines = file.read().decode(errors="replace").split("\n")
        return [line for line in lines if line.strip()]
    return []


class Program:
    """A program of the run, in a process group of its own.

    If it `may_finish`, its end with status 0 is the end of its work.
    """

    def __init__(
        self,
        name: str,
        argv: Sequence[str],
        log: Path,
        *,
        variables: Mapping[str, str] | None = None,
        may_finish: bool = False,
    ) -> None:
        self.name, self.argv, self.log = name, list(argv), log
        self._variables = variables or {}
        self._may_finish, self._is_ending = may_finish, False
        self._process: asyncio.subprocess.Process | None = None
        self._deaths: list[float] = []
        self._log_start = 0

    async def run(self) -> None:
        """Run it until it has finished or was ended, starting it again when it dies."""
        while True:
            status = await self._run_once()
            if self._is_ending or (status == 0 and self._may_finish):
                return
            how = f"status {status}" if status >= 0 else signal.Signals(-status).name
            last = (last_lines(self.log, self._log_start) or ["no words"])[-1]
            reason = f"{how}: {last.removeprefix('error: ')}"
            now = time.monotonic()
            recent = [t for t in self._deaths if now - t < RESTARTS_WITHIN_S]
            self._deaths = [*recent, now]
            # Where it has refused to start, trying again would not help.
            if status == EXIT_REFUSED or len(self._deaths) > MOST_RESTARTS:
                times = counted(len(self._deaths), "time")
                raise ProgramError(
                    f"{self.name} has ended {times} ({reason}); its log is {self.log}"
                )
            pause_s = RESTART_FIRST_PAUSE_S * 2 ** len(recent)
            logger.warning(
                "%s has ended (%s); starting it again in %.0f s",
                *(self.name, reason, pause_s),
            )
            await asyncio.sleep(pause_s)

    async def _run_once(self) -> int:
        """Run it from a start to its end; return its exit status."""
        logger.info("starting %s, log %s", self.name, self.log)
        with self.log.open("ab") as log:
            self._log_start = log.tell()
            self._process = await asyncio.create_subprocess_exec(
                *self.argv,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # When it dies, its log has to hold its last words.
                env={**os.environ, "PYTHONUNBUFFERED": "1", **self._variables},
                # Ctrl-C at the terminal is for us; we end it when its turn comes.
                start_new_session=True,
                preexec_fn=syscalls.end_with_parent,
            )
        try:
            return await self._process.wait()
        finally:
            self.kill()  # what it has started and left behind

    async def end(self, grace_s: float | None) -> None:
        """Ask it to end, and wait; force it when the time is over, if there is one."""
        self._is_ending = True
        process = self._process
        if process is None or process.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(process.wait(), grace_s)
        self.kill()
        await process.wait()

    def kill(self) -> None:
        """End all processes of its group at once."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)


async def wait_until_well(url: str) -> None:
    """Return once a URL answers with status 200."""
    timeout = aiohttp.ClientTimeout(ASK_TIMEOUT_S)
    async with aiohttp.ClientSession(timeout=timeout) as session:
        while True:
            with contextlib.suppress(aiohttp.ClientError, asyncio.TimeoutError):
                async with session.get(url) as reply:
                    if reply.status == 200:
                        return logger.info("%s answers", without_path(url))
            await asyncio.sleep(ASK_EVERY_S)


# -- the plan --------------------------------------------------------------------------


def _free_url() -> str:
    """Return a URL of this machine at a port that nobody uses just now."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{unused.getsockname()[1]}"


@dataclasses.dataclass
class Plan:
    """What is started, and how: what has no URL in the settings, at a free port."""

    settings: LaunchSettings
    env: Mapping[str, Any]  # what the user has set for `serve`
    openai: Mapping[str, Any]
    config: Any  # the settings of the environment, whoever has set them
    own: Sequence[str]  # what begins a command line of ours

    def __post_init__(self) -> None:
        self.starts_api = "rollout_server_url" not in self.env
        self.starts_server = not self.openai.get("base_url")
        api: str = _free_url() if self.starts_api else self.config.rollout_server_url
        server: str = self.openai.get("base_url") or _free_url()
        self.api, self.server = api.rstrip("/"), server.rstrip("/").removesuffix("/v1")
        self.folder = Path(self.settings.folder)
        self.policy = Path(self.settings.policy or self.folder / "policy").absolute()
        self.checkpoints = self.folder.absolute() / "checkpoints"
        self.dumps = Path(self.env.get("data_dumps_dir", self.folder / "data_dumps"))
        # A link in an environment stays one.
        self.python = Path(self.settings.python or sys.executable).absolute()

    def check(self) -> None:
        """Refuse what cannot be started, before anything is."""
        config, settings = self.config, self.settings
        if min(config.batch_size, config.total_steps) < 1:
            raise SettingError(
                "env.batch_size, env.total_steps: -1 is not allowed; expected a number"
                " above 0, which `launch` passes to the trainer"
            )
        if self.openai.get("base_url") == SIMULATED:
            raise SettingError(
                "openai.base_url: `launch` cannot train simulated; `serve` can use it"
            )
        if config.batch_size % config.group_size:
            raise SettingError(
                f"env.batch_size: {config.batch_size} is no multiple of env.group_size"
                f" {config.group_size}, so the API would make no batch"
            )
        if not (settings.trainer or TRAINER.is_dir()):
            raise SettingError(
                "launch.trainer: our trainer is in a clone of the project, and this is"
                " an installed package; give the command line of a trainer"
            )
        if not (self.policy.is_dir() or settings.model or settings.trainer):
            raise SettingError(
                f"launch.model: {self.policy} holds no model, and none is named; name"
                " the model that the training begins with"
            )
        if not self.python.is_file():
            raise SettingError(f"launch.python: {self.python} is no file")
        if self.starts_server and not self.python.with_name("vllm").is_file():
            raise SettingError(
                f"launch.python: {self.python} has no vLLM; name the Python of an"
                " environment with vLLM, or set openai.base_url to a server that runs"
            )

    # -- the programs ------------------------------------------------------------------

    def preparing(self) -> Program | None:
        """Return what puts the model into its folder; None if it is there."""
        if self.policy.is_dir() or self.settings.model is None:
            return None
        argv = self._with_python("prepare.py", self.settings.model, self.policy)
        return self._program("prepare", argv, may_finish=True)

    def servers(self) -> list[Program]:
        """Return the servers that are started."""
        servers = []
        if self.starts_api:
            argv = [*self.own, "run-api", "--port", str(urlsplit(self.api).port)]
            servers.append(self._program("api", argv))
        if self.starts_server:
            # Without it, vLLM lacks the routes by which the trainer reloads weights.
            variables = {"VLLM_SERVER_DEV_MODE": "1", **self.settings.vllm_variables}
            servers.append(self._program("vllm", self._vllm(), variables=variables))
        return servers

    def serve(self) -> Program:
        """Return `serve`."""
        config = str(self.folder / "serve.yaml")
        return self._program("serve", [*self.own, "serve", "--config", config])

    def trainer(self) -> Program:
        """Return the trainer."""
        how = {"variables": self.settings.trainer_variables, "may_finish": True}
        return self._program("trainer", self._trainer(), **how)

    def _program(self, name: str, argv: Sequence[str], **how: Any) -> Program:
        return Program(name, argv, self.folder / f"{name}.log", **how)

    def _with_python(self, program: str, *words: object) -> list[str]:
        return [str(self.python), str(TRAINER / program), *map(str, words)]

    def _vllm(self) -> list[str]:
        port, longest = urlsplit(self.server).port, self.config.max_token_length
        return [
            *(str(self.python.with_name("vllm")), "serve", str(self.policy)),
            *("--host", "127.0.0.1", "--port", str(port)),
            *("--served-model-name", SERVED_NAME, "--max-model-len", str(longest)),
            *shlex.split(self.settings.vllm_args),
        ]

    def _trainer(self) -> list[str]:
        config = self.config
        if self.settings.trainer is not None:
            places: dict[str, object]
            places = {"api": self.api, "server": self.server, "model": self.policy}
            places |= {name: getattr(config, name) for name in AGREED}
            words = shlex.split(self.settings.trainer)
            return [word.format(**places, folder=self.folder) for word in words]
        return self._with_python(
            "train.py",
            *("--model", self.policy, "--checkpoints", self.checkpoints),
            *("--api", self.api, "--server", self.server),
            *("--groups", config.batch_size // config.group_size),
            *("--group-size", config.group_size, "--steps", config.total_steps),
            *("--max-token-length", config.max_token_length),
            *shlex.split(self.settings.trainer_args),
        )

    def serve_settings(self) -> dict[str, Any]:
        """Return the settings file of `serve`."""
        env = {"data_dumps_dir": str(self.dumps)}
        openai = dict(self.openai)
        if self.starts_server:
            env["tokenizer_name"] = str(self.policy)
            openai |= {"base_url": f"{self.server}/v1", "server_type": "vllm"}
            openai |= {"model_name": SERVED_NAME}
        fixed = {"rollout_server_url": self.api, "total_steps": ENDLESS}
        return {"env": {**env, **self.env, **fixed}, "openai": openai}


@contextlib.contextmanager
def taken(plan: Plan) -> Iterator[None]:
    """Keep the folder of a run from others, and write down what it begins with."""
    folder, model = plan.folder, plan.settings.model
    folder.mkdir(parents=True, exist_ok=True)
    # The mode `w` would empty the file of another launch before the lock is tried.
    with (folder / "launch.yaml").open("a+b") as file:
        if try_lock(file) is False:
            raise SettingError(f"launch.folder: {folder} has another launch that runs")
        file.seek(0)
        before = (yaml.safe_load(file.read()) or {}).get("model")
        # A model that could not be loaded has begun nothing.
        has_begun = plan.policy.is_dir() or plan.checkpoints.is_dir()
        if has_begun and None not in (before, model) and before != model:
            raise SettingError(
                f"launch.model: {folder} has a run of {before!r}, not of {model!r};"
                " set launch.folder to another folder to begin anew"
            )
        if model is not None:
            file.truncate(0)
            file.write(yaml.safe_dump({"model": model}).encode())
            file.flush()
        settings = folder / "serve.yaml"
        settings.touch(mode=0o600)  # it may hold the keys of servers
        settings.write_text(yaml.safe_dump(plan.serve_settings()), encoding="utf-8")
        yield
