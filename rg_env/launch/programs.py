"""Starts, watches and ends the programs of a training run."""

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

from rg_env.errors import EXIT_REFUSED, RunError, SettingError
from rg_env.installation import PROJECT
from rg_env.line_file import try_lock
from rg_env.settings.program_settings import SIMULATED, LaunchSettings
from rg_env.settings.setting_checks import without_path
from rg_env.workers.sandbox import syscalls

logger = logging.getLogger(__name__)

SERVED_NAME = "policy"
"""The model's name at the inference server that is started."""

SERVE_SETTINGS = "serve.yaml"
"""The settings file of `serve` in the folder of a run; it also names the model."""

# The steps of `serve`, which no run reaches. The trainer ends the run, because it may
# skip a batch.
ENDLESS = 1_000_000_000

# The programs of our own trainer.
TRAINER = PROJECT / "examples" / "trainer"

# The readiness probe of a server.
PROBE_EVERY_S = 0.5
PROBE_TIMEOUT_S = 5.0

# The first back-off of a restart; it doubles with each.
RESTART_FIRST_PAUSE_S = 1.0

# A program that dies more often within this time ends the run.
MAX_RESTARTS = 5
RESTARTS_WITHIN_S = 600.0

LOG_END_BYTES = 1 << 16


def last_lines(log: Path, start: int = 0) -> list[str]:
    """Return the last non-empty lines of a file after byte `start`."""
    with contextlib.suppress(OSError), log.open("rb") as file:
        file.seek(max(start, file.seek(0, os.SEEK_END) - LOG_END_BYTES))
        lines = file.read().decode(errors="replace").split("\n")
        return [line for line in lines if line.strip()]
    return []


@dataclasses.dataclass(eq=False)
class Program:
    """A program of the run, in a process group of its own.

    Attributes:
        name: The name in messages, and of the log.
        argv: The command line.
        folder: The folder of the log.
        variables: Additional environment variables.
        may_finish: Whether the program is done when it ends with status 0.
    """

    name: str
    argv: Sequence[str]
    folder: Path
    variables: Mapping[str, str] = dataclasses.field(default_factory=dict)
    may_finish: bool = False
    _is_ending: bool = False
    _process: asyncio.subprocess.Process | None = None
    _log_start: int = 0

    def __post_init__(self) -> None:
        self.log = self.folder / f"{self.name}.log"

    async def run(self) -> None:
        """Run the program until it finishes or is ended; restart it if it dies.

        Raises:
            RunError: It refused to start, or died too often.
        """
        deaths_s: list[float] = []
        while True:
            status = await self._run_once()
            if self._is_ending or (status == 0 and self.may_finish):
                return
            reason = self._why_ended(status)
            now_s = time.monotonic()
            recent_s = [t for t in deaths_s if now_s - t < RESTARTS_WITHIN_S]
            deaths_s = [*recent_s, now_s]
            # If it refused to start, a restart would not help.
            if status == EXIT_REFUSED or len(recent_s) == MAX_RESTARTS:
                raise RunError(
                    f"{self.name} has ended ({reason}) and is not started again; its"
                    f" log is {self.log}"
                )
            pause_s = RESTART_FIRST_PAUSE_S * 2 ** len(recent_s)
            text = "%s has ended (%s); starting it again in %.0f s"
            logger.warning(text, self.name, reason, pause_s)
            await asyncio.sleep(pause_s)

    def _why_ended(self, status: int) -> str:
        """Return the exit status or the signal, and the last line of the log."""
        lines = last_lines(self.log, self._log_start) or ["its log is empty"]
        how = f"status {status}" if status >= 0 else signal.Signals(-status).name
        return f"{how}: {lines[-1].removeprefix('error: ')}"

    async def _run_once(self) -> int:
        """Run the program once, and return its exit status."""
        logger.info("starting %s, log %s", self.name, self.log)
        with self.log.open("ab") as log:
            self._log_start = log.tell()
            self._process = await asyncio.create_subprocess_exec(
                *self.argv,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # Unbuffered, so that the log is complete if the program dies.
                env={**os.environ, "PYTHONUNBUFFERED": "1", **self.variables},
                # Ctrl-C reaches only this process, which ends the programs in order.
                start_new_session=True,
                preexec_fn=syscalls.end_with_parent,
            )
        try:
            return await self._process.wait()
        finally:
            self.kill()  # its child processes may still run

    async def end(self, grace_s: float | None) -> None:
        """Terminate the program; kill it after `grace_s`, if that is not None."""
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
        """Kill all processes of the program's group."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)


async def wait_until_ready(url: str) -> None:
    """Return once a URL answers with status 200."""
    timeout = aiohttp.ClientTimeout(PROBE_TIMEOUT_S)
    async with aiohttp.ClientSession(timeout=timeout) as session:
        while True:
            with contextlib.suppress(aiohttp.ClientError, asyncio.TimeoutError):
                async with session.get(url) as reply:
                    if reply.status == 200:
                        logger.info("%s answers", without_path(url))
                        return
            await asyncio.sleep(PROBE_EVERY_S)


# -- the plan --------------------------------------------------------------------------


def _free_url() -> str:
    """Return a URL of this machine with a free port."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{unused.getsockname()[1]}"


@dataclasses.dataclass
class Plan:
    """The programs of a run and their command lines.

    The API and the inference server are started at free ports, unless the settings
    have their URLs.

    Attributes:
        settings: The settings of `launch`.
        env: The settings that were explicitly set for the environment.
        openai: The settings that were explicitly set for the inference server.
        config: All settings of the environment.
        command: The command line of this program, without arguments.
    """

    settings: LaunchSettings
    env: Mapping[str, Any]
    openai: Mapping[str, Any]
    config: Any
    command: Sequence[str]

    def __post_init__(self) -> None:
        self.starts_api = "rollout_server_url" not in self.env
        self.starts_server = not self.openai.get("base_url")
        api: str = _free_url() if self.starts_api else self.config.rollout_server_url
        server: str = self.openai.get("base_url") or _free_url()
        self.api = api.rstrip("/")
        self.server = server.rstrip("/").removesuffix("/v1")
        self.folder = Path(self.settings.folder)
        self.policy = Path(self.settings.policy or self.folder / "policy").absolute()
        self.checkpoints = self.folder.absolute() / "checkpoints"
        self.dumps = Path(self.env.get("data_dumps_dir", self.folder / "data_dumps"))
        # Not resolved, because the Python of a virtual environment is a link.
        self.python = Path(self.settings.python or sys.executable).absolute()

    def check(self) -> None:
        """Raise SettingError for settings with which a program could not start."""
        config = self.config
        if min(config.batch_size, config.total_steps) < 1:
            raise SettingError(
                "env.batch_size, env.total_steps: -1 is not allowed; expected a number"
                " above 0, which `launch` passes to the trainer"
            )
        if config.batch_size % config.group_size:
            raise SettingError(
                f"env.batch_size: {config.batch_size} is not a multiple of"
                f" env.group_size {config.group_size}, so the API would never make a"
                " batch"
            )
        self._check_programs()

    def _check_programs(self) -> None:
        settings = self.settings
        if self.openai.get("base_url") == SIMULATED:
            raise SettingError(
                "openai.base_url: `launch` cannot train simulated; `serve` can use it"
            )
        if not (settings.trainer or TRAINER.is_dir()):
            raise SettingError(
                "launch.trainer: our trainer is in a clone of the project, and this is"
                " an installed package; give the command line of a trainer"
            )
        if not (self.policy.is_dir() or settings.model or settings.trainer):
            raise SettingError(
                f"launch.model: {self.policy} has no model, and none is set; set the"
                " model that the training begins with"
            )
        if not self.python.is_file():
            raise SettingError(f"launch.python: {self.python} is not a file")
        if self.starts_server and not self.python.with_name("vllm").is_file():
            raise SettingError(
                f"launch.python: {self.python} has no vLLM; name the Python of an"
                " environment with vLLM, or set openai.base_url to a server that runs"
            )

    # -- the programs ------------------------------------------------------------------

    def prepare_program(self) -> Program | None:
        """Return the program that copies the model into its folder, if needed."""
        if self.policy.is_dir() or self.settings.model is None:
            return None
        argv = self._with_python("prepare.py", self.settings.model, str(self.policy))
        return Program("prepare", argv, self.folder, may_finish=True)

    def server_programs(self) -> list[Program]:
        """Return the API and the inference server, unless they run already."""
        servers = []
        if self.starts_api:
            api = [*self.command, "run-api", f"--port={urlsplit(self.api).port}"]
            servers.append(Program("api", api, self.folder))
        if self.starts_server:
            vllm = [
                str(self.python.with_name("vllm")),
                "serve",
                str(self.policy),
                "--host=127.0.0.1",
                f"--port={urlsplit(self.server).port}",
                f"--served-model-name={SERVED_NAME}",
                f"--max-model-len={self.config.max_token_length}",
                *shlex.split(self.settings.vllm_args),
            ]
            # This adds the routes by which the trainer reloads weights.
            variables = {"VLLM_SERVER_DEV_MODE": "1", **self.settings.vllm_variables}
            servers.append(Program("vllm", vllm, self.folder, variables))
        return servers

    def serve_program(self) -> Program:
        """Return `serve`."""
        argv = [*self.command, "serve", f"--config={self.folder / SERVE_SETTINGS}"]
        return Program("serve", argv, self.folder)

    def trainer_program(self) -> Program:
        """Return our trainer, or the one of `launch.trainer`."""
        config = self.config
        settings = self.settings
        if settings.trainer is None:
            argv = self._with_python(
                "train.py",
                f"--model={self.policy}",
                f"--checkpoints={self.checkpoints}",
                f"--api={self.api}",
                f"--server={self.server}",
                f"--groups={config.batch_size // config.group_size}",
                f"--group-size={config.group_size}",
                f"--steps={config.total_steps}",
                f"--max-token-length={config.max_token_length}",
                *shlex.split(settings.trainer_args),
            )
        else:
            fields = {
                **vars(config),
                "api": self.api,
                "server": self.server,
                "model": self.policy,
                "folder": self.folder,
            }
            argv = [word.format_map(fields) for word in shlex.split(settings.trainer)]
        variables = settings.trainer_variables
        return Program("trainer", argv, self.folder, variables, may_finish=True)

    def _with_python(self, file: str, *arguments: str) -> list[str]:
        return [str(self.python), str(TRAINER / file), *arguments]

    def serve_settings(self) -> dict[str, Any]:
        """Return the content of the settings file of `serve`."""
        env = {"data_dumps_dir": str(self.dumps)}
        openai = dict(self.openai)
        if self.starts_server:
            env["tokenizer_name"] = str(self.policy)
            openai |= {
                "base_url": f"{self.server}/v1",
                "server_type": "vllm",
                "model_name": SERVED_NAME,
            }
        overrides = {"rollout_server_url": self.api, "total_steps": ENDLESS}
        return {"env": {**env, **self.env, **overrides}, "openai": openai}


@contextlib.contextmanager
def locked_folder(plan: Plan) -> Iterator[None]:
    """Lock the folder of a run, and write the settings file of `serve`.

    The file also names the model, so that a run is not continued with another one.
    """
    folder = plan.folder
    model = plan.settings.model
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / SERVE_SETTINGS
    path.touch(mode=0o600)  # it may contain the keys of servers
    with path.open("r+", encoding="utf-8") as file:
        if try_lock(file.fileno()) is False:
            raise SettingError(f"launch.folder: {folder} has another launch that runs")
        try:
            earlier = (yaml.safe_load(file) or {}).get("launch", {}).get("model")
        except (yaml.YAMLError, AttributeError) as error:
            raise SettingError(
                f"launch.folder: {path} is damaged; remove it"
            ) from error
        # If the model could not be loaded, no run has begun.
        has_begun = plan.policy.is_dir() or plan.checkpoints.is_dir()
        if has_begun and earlier and model and earlier != model:
            raise SettingError(
                f"launch.model: {folder} has a run of {earlier!r}, not of {model!r};"
                " set launch.folder to another folder to begin again"
            )
        file.seek(0)
        file.truncate()
        settings = plan.serve_settings() | {"launch": {"model": model or earlier}}
        yaml.safe_dump(settings, file)
        file.flush()
        yield
