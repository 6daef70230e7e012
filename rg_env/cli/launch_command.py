"""`launch`: a whole training run from one command and one settings file."""

from __future__ import annotations

import logging
import signal
import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rg_env import ending, logs
from rg_env.cli.setting_options import LAUNCH, SettingsCommand
from rg_env.cli.settings_command import GivenSettings, checked, start_of
from rg_env.errors import SettingError
from rg_env.installation import COMMAND, PROGRAM, PROJECT
from rg_env.settings import setting_types
from rg_env.settings.launch_settings import LaunchSettings

logger = logging.getLogger(__name__)

SUMMARY = (
    "Start a whole training run: the API, vLLM, serve and the trainer. What has a URL"
    " in the settings (openai.base_url, env.rollout_server_url) is running already and"
    " is not started. Ctrl-C ends all of it, and the same command goes on."
)


def launch(env_cls: Any) -> SettingsCommand:
    """Return `launch`."""
    start = start_of(env_cls, {})

    def run(**values: Any) -> int:
        given = checked(command, values, env_cls)
        _launch(given, given.build_env(start))
        return 0

    command = SettingsCommand(LAUNCH, SUMMARY, start, run)
    return command


def _free_url() -> str:
    """Return a URL of this machine at a port that nobody uses just now."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{unused.getsockname()[1]}"


def _own_program() -> list[str]:
    """Return what begins a command line of the program that this is."""
    program = Path(sys.argv[0])
    return [sys.executable, str(program if program.is_file() else PROJECT / PROGRAM)]


def _launch(given: GivenSettings, config: Any) -> None:
    """Run a training; returns when the trainer has finished."""
    from rg_env.atropos import start_checks
    from rg_env.launch.launch_plan import Numbers, Plan, taken
    from rg_env.launch.training_run import TrainingRun

    settings = setting_types.build(LAUNCH, LaunchSettings, given.launch)
    if not isinstance(given.openai, Mapping):
        raise SettingError("openai: `launch` works with one server, not with a list")
    api, server = config.rollout_server_url, given.openai.get("base_url")
    starts_api = "rollout_server_url" not in given.env
    plan = Plan(
        settings=settings,
        env=given.env,
        openai=given.openai,
        numbers=Numbers(
            group_size=config.group_size,
            batch_size=config.batch_size,
            max_token_length=config.max_token_length,
            total_steps=config.total_steps,
        ),
        own=_own_program(),
        api=(_free_url() if starts_api else api).rstrip("/"),
        server=(server or _free_url()).rstrip("/").removesuffix("/v1"),
        starts_api=starts_api,
        starts_server=not server,
    )
    plan.check()
    start_checks.check_wandb(config)
    logs.set_levels(debug=config.debug_logging, quiet_framework=True)

    def note(number: signal.Signals) -> None:
        logger.warning(
            "%s: shutting down; a second signal ends everything at once", number.name
        )

    with taken(plan):
        try:
            # Without a limit: the trainer gets all the time that it needs to end.
            ending.run(TrainingRun(plan).run(), note, end_within_s=None)
        finally:
            if plan.policy.is_dir():
                print(f"weights: {plan.policy}", flush=True)
            if plan.dumps.is_dir():
                is_inside = plan.folder in plan.dumps.parents
                shown = plan.folder if is_inside else plan.dumps
                print(f"report: {COMMAND} report {shown}", flush=True)
