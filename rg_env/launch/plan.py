"""The plan of a training run: its programs, their command lines, and its folder."""

from __future__ import annotations

import contextlib
import dataclasses
import shlex
import socket
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from rg_env.errors import SettingError
from rg_env.installation import PROJECT
from rg_env.launch.program import Program
from rg_env.line_file import try_lock
from rg_env.settings.server_and_launch_settings import SIMULATED, LaunchSettings

SERVED_NAME = "policy"
"""The model's name at the inference server that is started."""

SERVE_SETTINGS = "serve.yaml"
"""The settings file of `serve` in the folder of a run; it also names the model."""

# The steps of `serve`, which no run reaches. The trainer ends the run, because it may
# skip a batch.
ENDLESS = 1_000_000_000

# The programs of our own trainer.
TRAINER = PROJECT / "examples" / "trainer"


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
