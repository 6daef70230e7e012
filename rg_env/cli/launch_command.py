"""`launch`: a whole training run from one command and one settings file."""

from __future__ import annotations

import logging
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rg_env import ending, logs
from rg_env.cli.given_settings import GivenSettings
from rg_env.cli.setting_options import LAUNCH
from rg_env.cli.settings_command import SettingsCommand
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
EXAMPLE = "--config examples/launch.yaml --launch.model Qwen/Qwen3-0.6B"


def launch(env_cls: Any) -> SettingsCommand:
    """Return `launch`."""

    def run(given: GivenSettings) -> int:
        _launch(given, given.build_env(command.start))
        return 0

    command = SettingsCommand(LAUNCH, SUMMARY, env_cls, run, example=EXAMPLE)
    return command


def _note(number: signal.Signals) -> None:
    logger.warning(
        "%s: shutting down; a second signal ends everything at once", number.name
    )


def _launch(given: GivenSettings, config: Any) -> None:
    """Run a training; returns when the trainer has finished."""
    from rg_env.atropos import start_checks
    from rg_env.launch.launch_plan import Plan, taken
    from rg_env.launch.training_run import TrainingRun

    settings = setting_types.build(LAUNCH, LaunchSettings, given.launch)
    if not isinstance(given.openai, Mapping):
        raise SettingError("openai: `launch` works with one server, not with a list")
    program = Path(sys.argv[0])
    own = [sys.executable, str(program if program.is_file() else PROJECT / PROGRAM)]
    plan = Plan(settings, given.env, given.openai, config, own)
    plan.check()
    start_checks.check_wandb(config)
    logs.set_levels(debug=config.debug_logging, quiet_framework=True)
    with taken(plan):
        try:
            # Without a limit: the trainer gets all the time that it needs to end.
            ending.run(TrainingRun(plan).run(), _note, end_within_s=None)
        finally:
            if plan.policy.is_dir():
                print(f"weights: {plan.policy}", flush=True)
            if plan.dumps.is_dir():
                is_inside = plan.folder in plan.dumps.parents
                print(f"report: {COMMAND} report", end=" ")
                print(plan.folder if is_inside else plan.dumps, flush=True)
