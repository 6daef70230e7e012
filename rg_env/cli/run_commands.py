"""The commands of a run: serve, process, evaluate, screen and launch."""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rg_env import logs, shutdown
from rg_env.cli.main import Number, flag, json_option, load_class, option
from rg_env.cli.options import ExplicitSettings, SettingsCommand, options
from rg_env.errors import RunError, SettingError, not_allowed
from rg_env.installation import COMMAND, PROGRAM, PROJECT
from rg_env.places import check_writable
from rg_env.settings import setting_checks
from rg_env.settings.server_and_launch_settings import LaunchSettings
from rg_env.settings.setting_checks import SECRET

if TYPE_CHECKING:
    from rg_env.results.screening import ScreenRun

logger = logging.getLogger(__name__)


def build_env(
    command: SettingsCommand,
    explicit: ExplicitSettings,
    make_screen: Callable[[Any], ScreenRun] | None = None,
) -> Any:
    """Build the environment of a command.

    The settings are checked first, then those that need the library. Then the framework
    is imported. The server is queried last, because it may not be ready yet.
    """
    from rg_env.atropos import start_checks

    name = str(command.name)
    is_serve = name == "serve"
    config, servers = explicit.merged_with(command.defaults)
    start_checks.check_command(name, config, servers)
    pool = start_checks.checked_workers(config)
    env_cls = load_class(command.env_cls)
    from rg_env.atropos.served_models import with_model

    config, servers = explicit.merged_with(command.defaults_of(env_cls))
    screen_run = make_screen and make_screen(config)
    if screen_run:
        config = screen_run.config
    is_explicit = explicit.env.get("use_wandb") is not None
    config = _with_checked_wandb(config, is_required=is_serve or is_explicit)
    if not explicit.slurm:
        config, servers = with_model(
            config,
            servers,
            sets_model=[
                "model_name" in each for each in explicit.server_sections(servers)
            ],
            sets_tokenizer="tokenizer_name" in explicit.env,
            trains=is_serve,
        )
    env = env_cls(config, servers, slurm=explicit.slurm, testing=False)
    env._pool = pool
    if screen_run:
        env.screen = screen_run
        env.jsonl_writer.with_tokens = False
    used = [server.config for server in env.server.servers]
    models = [f"model {s.model_name} ({s.server_type}) at {s.base_url}" for s in used]
    logger.info("%s: %s, tokenizer %s", name, ", ".join(models), config.tokenizer_name)
    return env


def _with_checked_wandb(config: Any, *, is_required: bool) -> Any:
    """Check the settings of W&B; without a login, turn it off if it is not required."""
    from rg_env.atropos import start_checks

    if is_required:
        start_checks.check_wandb(config)
    elif config.use_wandb and not start_checks.has_wandb_login():
        text = "W&B has no login and is off (--env.use_wandb true insists on it)"
        logger.warning(text)
        return config.model_copy(update={"use_wandb": False})
    return config


# -- serve, process, evaluate ----------------------------------------------------------


@options("serve --config settings.yaml --env.tasks 'gcd,*_sorting'")
def serve(command: SettingsCommand, explicit: ExplicitSettings) -> int:
    """Feed a trainer through the Atropos API."""
    asyncio.run(build_env(command, explicit).env_manager())
    return 0


@options(
    "process --openai.server_type openai --env.total_steps 100",
    defaults=lambda name: {
        "ensure_scores_are_not_same": False,
        "include_messages": True,
        "data_path_to_save_groups": f"data/{name}.jsonl",
    },
)
def process(command: SettingsCommand, explicit: ExplicitSettings) -> int:
    """Write total_steps groups as JSONL rows and a report, without a trainer."""
    _write_rows(build_env(command, explicit))
    return 0


def _write_rows(env: Any) -> None:
    """Run `process`, and write a report, also after a failure but not a signal."""
    from rg_env.results.report import write_final_report
    from rg_env.results.run_metrics import metrics_path

    try:
        asyncio.run(env.process_manager())
    finally:
        path = Path(env.config.data_path_to_save_groups)
        folder = path.with_name(f"{path.name.removesuffix('.jsonl')}_report")
        # Without rows, the metrics say why.
        files = [path] if path.exists() else [metrics_path(path)]
        if page := write_final_report(files, folder, title=f"Groups in {path.name}"):
            print(f"rows: {path}\nreport: {page}")


@options(
    "evaluate --config settings.yaml --env.eval_completions 4",
    defaults=lambda name: {
        "data_dir_to_save_evals": time.strftime("data/evaluate_%Y%m%d_%H%M%S")
    },
)
@json_option
@flag("--tasks", text="Show a row for each task in the table")
def evaluate(
    command: SettingsCommand, explicit: ExplicitSettings, as_json: bool, tasks: bool
) -> int:
    """Measure a model on the fixed evaluation items."""
    env = build_env(command, explicit)
    evaluation = env._evaluation
    evaluation.shows_json = as_json
    evaluation.shows_tasks = tasks
    asyncio.run(env._run_evaluate())
    folder = evaluation.folder
    if folder is not None:
        from rg_env.results.report import write_final_report

        title = f"Evaluation {folder.name}"
        page = write_final_report(
            [folder / "samples.jsonl"], folder / "report", title=title
        )
        if page:
            logger.info("report: %s", page)
    return 0


# -- screen ----------------------------------------------------------------------------


LEAST_SHARE_HELP = "Leave out tasks with a smaller share of groups that have variance"
OUT_HELP = "Settings file to write (.yaml); the groups go beside it (.jsonl)"


@options("screen --config settings.yaml --groups 20")
@click.option(
    "--groups",
    type=click.IntRange(1, 100_000),
    help="Number of groups for each task; by default 2 % of the run, at least 5",
)
@option("--least_share", Number(0.01, 1.0), 0.1, LEAST_SHARE_HELP)
@option(
    "--out", click.Path(dir_okay=False, path_type=Path), "data/screen.yaml", OUT_HELP
)
def screen(
    command: SettingsCommand,
    explicit: ExplicitSettings,
    groups: int | None,
    least_share: float,
    out: Path,
) -> int:
    """Find the tasks and levels that a model can learn from.

    Samples a few groups of each task with the settings for serve, and writes a settings
    file that selects the tasks and levels with reward variance in their groups.
    """
    from rg_env.line_file import read_groups
    from rg_env.results.screening import (
        ScreenRun,
        check_screen_file,
        screen_table,
        screen_tasks,
        screen_text,
    )
    from rg_env.results.terminal import rendered

    if out.suffix != ".yaml":
        raise not_allowed("--out", str(out), "*.yaml")
    check_screen_file(out)
    rows_path = str(out.with_suffix(".jsonl"))
    env = build_env(command, explicit, lambda c: ScreenRun(c, groups, rows_path))
    _write_rows(env)
    rows = Path(env.config.data_path_to_save_groups)
    tasks = screen_tasks(read_groups(rows), env.screen.bounds, least_share)
    print(rendered(screen_table(tasks)))
    if all(task.left_out for task in tasks):
        raise RunError(
            f"no task has variance in {least_share:.0%} of its groups, so no"
            " settings are written: take a smaller --least_share, other tasks or levels"
        )
    sections = env.screen.settings(_settings_file(command, explicit), tasks)
    path = rows.with_suffix(".yaml")
    check_screen_file(path)
    path.write_text(screen_text(sections), encoding="utf-8")
    print(f"settings: {path}\nrun: {COMMAND} serve --config {path}")
    return 0


def _settings_file(
    command: SettingsCommand, explicit: ExplicitSettings
) -> dict[str, Any]:
    """Return the explicit settings for a file for `--config`, without secrets."""
    config, servers = explicit.merged_with(command.defaults)
    sections = explicit.server_sections(servers)
    openai = [
        server.model_dump(mode="json", include={*section} - {*SECRET})
        for server, section in zip(servers, sections, strict=True)
    ]
    content = {
        "env": config.model_dump(mode="json", include={*explicit.env}),
        "openai": openai if isinstance(explicit.openai, list) else openai[0],
    }
    if explicit.slurm:
        content["slurm"] = True
    return content


# -- launch ----------------------------------------------------------------------------


@options("launch --config examples/launch.yaml --launch.model Qwen/Qwen3-0.6B")
def launch(command: SettingsCommand, explicit: ExplicitSettings) -> int:
    """Start a whole training run: the API, vLLM, serve and the trainer.

    A server with a URL in the settings (openai.base_url, env.rollout_server_url) runs
    already and is not started. Ctrl-C ends all programs, and the same command goes on.
    """
    from rg_env.atropos import start_checks
    from rg_env.launch.plan import Plan, locked_folder
    from rg_env.launch.training_run import TrainingRun

    config, _ = explicit.merged_with(command.defaults)
    settings = setting_checks.build("launch", LaunchSettings, explicit.launch)
    if not isinstance(explicit.openai, Mapping):
        raise SettingError("openai: `launch` works with one server, not with a list")
    program = Path(sys.argv[0])
    if not program.is_file():
        program = PROJECT / PROGRAM
    plan = Plan(
        settings=settings,
        env=explicit.env,
        openai=explicit.openai,
        config=config,
        command=[sys.executable, str(program)],
    )
    plan.check()
    check_writable("launch.folder", plan.folder, is_folder=True)
    check_writable("launch.policy", plan.policy, is_folder=True)
    check_writable("env.data_dumps_dir", plan.dumps, is_folder=True)
    start_checks.check_command("launch", config, [])
    start_checks.check_wandb(config)
    start_checks.checked_workers(config).close()
    logs.set_levels(debug=config.debug_logging, quiet_framework=True)
    with locked_folder(plan):
        try:
            run = TrainingRun(plan)
            # The trainer gets all the time that it needs to end.
            lifetime = shutdown.Lifetime(
                on_second_signal=run.kill_all, is_limited=False
            )
            asyncio.run(lifetime.run(run.run()))
        finally:
            if plan.policy.is_dir():
                print(f"weights: {plan.policy}", flush=True)
            if plan.dumps.is_dir():
                is_inside = plan.folder in plan.dumps.parents
                folder = plan.folder if is_inside else plan.dumps
                print(f"report: {COMMAND} report {folder}", flush=True)
    return 0
