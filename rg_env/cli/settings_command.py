"""Commands with settings, options over YAML; and the framework's three commands.

`--config FILE` names YAML with the sections `env` and `openai`. `--help` shows ten of
the settings, `--help_all` all.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from rg_env import yaml_text
from rg_env.cli.command import Command, at_once, loaded
from rg_env.cli.given_settings import GivenSettings, start_of
from rg_env.cli.setting_options import (
    ENV,
    FIRST,
    LAUNCH,
    OPENAI,
    SECTIONS,
    SWITCH,
    SettingOption,
    given_values,
    section_options,
)
from rg_env.errors import SettingError, nearest, shown, unknown_name
from rg_env.settings import setting_types
from rg_env.settings.environment_settings import choosing_tasks
from rg_env.settings.launch_settings import LaunchSettings
from rg_env.settings.setting_types import ChoosesTasks
from rg_env.tasks.library_import import is_release_of_list
from rg_env.tasks.selection import refuse_unlisted
from rg_env.yaml_text import YamlError

logger = logging.getLogger(__name__)

FLAGS = {
    "slurm": "Find the inference servers from Slurm's environment variables",
    "testing": "Only for the tests of Atropos; must be false",
}
"""Options, and keys of a file, that are in no section."""

IGNORED = ("max_n_completions", "proxy_url")
"""Options that the framework accepts and hands to nobody; accepted here as well."""


class SettingsCommand(Command):
    """A command with settings, for a class of environments or what imports it later.

    Args:
        name: A key of `FIRST`.
        summary: The first paragraph of the help.
        env_cls: The class.
        run: Called with what was set and with the values of `own`.
        example: Its options in an example.
        starts: What it starts from, where that differs from `serve`.
        own: The options that no other command has, which the help shows first.
        fields: The fields of `env` that it has, without other sections; None for all.
    """

    def __init__(
        self,
        name: str,
        summary: str,
        env_cls: Any,
        run: Callable[..., int],
        *,
        example: str,
        starts: Mapping[str, Any] = {},
        own: Sequence[click.Option] = (),
        fields: Collection[str] | None = None,
    ) -> None:
        self.start, self.env_cls = start_of(env_cls, starts), env_cls
        models = {OPENAI: self.start.servers[0], ENV: self.start.env}
        if name == LAUNCH:
            models[LAUNCH] = LaunchSettings.model_validate({})
        self.settings = [
            option
            for section, model in models.items()
            for option in section_options(section, model)
            if fields is None or (section == ENV and option.field in fields)
        ]
        params: list[click.Parameter] = [
            *own,
            click.Option(["--config"], metavar="FILE", help="YAML file with settings"),
            *self.settings,
            *(
                click.Option([f"--{flag}"], type=bool, help=text, **SWITCH)
                for flag, text in FLAGS.items()
            ),
            *(click.Option([f"--{ignored}"], hidden=True) for ignored in IGNORED),
            at_once(["--help_all"], "Show all options", self._print_all),
        ]
        names = [str(option.name) for option in own]
        super().__init__(
            name,
            params=params,
            help=f"{summary}\n\nOptions take precedence over the YAML file, and the"
            " file over the defaults in brackets. `None` is a valid value.",
            callback=lambda **values: run(
                checked(self, values), **{name: values[name] for name in names}
            ),
            example=f"{name} {example}",
        )

    def _print_all(self, ctx: click.Context, is_on: bool) -> None:
        ctx.meta["all"] = True
        click.echo(self.get_help(ctx))
        ctx.exit()

    def format_options(
        self, ctx: click.Context, formatter: click.HelpFormatter
    ) -> None:
        shows_all = ctx.meta.get("all")
        others = [o for o in self.get_params(ctx) if not isinstance(o, SettingOption)]
        # The flags are what the framework has for its own machines.
        others = [o for o in others if shows_all or o.name not in FLAGS]
        groups: dict[str, list[click.Parameter]] = {"Options": others}
        if shows_all:
            for option in self.settings:
                groups.setdefault(option.group, []).append(option)
        else:
            by_name = {f"{o.section}.{o.field}": o for o in self.settings}
            more = f"Settings (10 of {len(by_name)}; --help_all shows all)"
            first = FIRST[str(self.name)]
            groups[more] = [by_name[name] for name in first if name in by_name]
        for title, options in groups.items():
            with formatter.section(title):
                records = [option.get_help_record(ctx) for option in options]
                formatter.write_dl([r for r in records if r], col_max=34)


# -- what was set ----------------------------------------------------------------------


def _read_file(path: str | None) -> dict[str, Any]:
    """Return the sections of a file, in which a trainer may have its own."""
    if path is None:
        return {}
    try:
        content = yaml_text.read(path)
    except YamlError as error:
        raise SettingError(f"--config: {shown(path)}: {error}") from error
    known = (*SECTIONS, *FLAGS, *IGNORED)
    if not isinstance(content, dict) or not {*content} & {*known}:
        raise SettingError(
            f"--config: {shown(path)} has none of the sections `env` and `openai`"
        )
    for name in [name for name in content if name not in known]:
        # What was perhaps meant for us is no section of another program.
        if not isinstance(content[name], dict) or nearest(str(name), known):
            raise unknown_name("--config", str(name), known, "section")
        logger.info("--config: section %s is ignored", shown(name))
    return content


def read(command: SettingsCommand, values: Mapping[str, Any]) -> GivenSettings:
    """Return what the options of a command line and the file that they name say.

    Raises:
        SettingError: An option, key or file is wrong.
    """
    content = _read_file(values["config"])
    for name in IGNORED:
        if values[name] is not None or name in content:
            logger.warning("--%s has no effect: Atropos does not use it", name)
    sections = {
        name: content[name]
        for name in (*SECTIONS, *FLAGS)
        if content.get(name) is not None
    }
    sections |= {name: values[name] for name in FLAGS if values[name] is not None}
    servers = sections.get(OPENAI)
    if isinstance(servers, list) and len(servers) == 1:
        (sections[OPENAI],) = servers
    given: GivenSettings = setting_types.build("--config", GivenSettings, sections)
    typed: dict[str, dict[str, Any]] = {
        name: given_values([o for o in command.settings if o.section == name], values)
        for name in SECTIONS
    }
    if typed[OPENAI] and not isinstance(given.openai, dict):
        raise SettingError(
            f"command line: --openai.{min(typed[OPENAI])} cannot be combined with a"
            " list of servers in --config"
        )
    both = {name: getattr(given, name) | typed[name] for name in typed if typed[name]}
    return given.model_copy(update=both)


def checked(command: SettingsCommand, values: Mapping[str, Any]) -> GivenSettings:
    """Return what was set, checked as far as it can be without the framework."""
    given = read(command, values)
    settings = given.build_env(command.start)
    others = isinstance(command.env_cls, type) or settings.task_modules
    if not others and is_release_of_list():
        fields = choosing_tasks(ChoosesTasks.BY_NAME)
        refuse_unlisted({name: getattr(settings, name) or () for name in fields})
    given.build_servers(command.start)
    return given


# -- the commands ----------------------------------------------------------------------


def serve(env_cls: Any) -> SettingsCommand:
    """Return `serve` for a class of environments, or what imports it later."""

    def run(given: GivenSettings) -> int:
        asyncio.run(build("serve", env_cls, given).env_manager())
        return 0

    summary = "Feed a trainer through the Atropos API."
    example = "--config settings.yaml --env.tasks 'gcd,*_sorting'"
    return SettingsCommand("serve", summary, env_cls, run, example=example)


def process(env_cls: Any) -> SettingsCommand:
    """Return `process`."""
    name = getattr(env_cls, "name", None) or "reasoning_gym"
    starts = {
        "ensure_scores_are_not_same": False,
        "include_messages": True,
        "data_path_to_save_groups": f"data/{name}.jsonl",
    }

    def run(given: GivenSettings) -> int:
        write_rows(build("process", env_cls, given, starts))
        return 0

    summary = "Write total_steps groups as JSONL rows and a report, without a trainer."
    example = "--openai.server_type openai --env.total_steps 100"
    return SettingsCommand(
        "process", summary, env_cls, run, example=example, starts=starts
    )


def evaluate(env_cls: Any) -> SettingsCommand:
    """Return `evaluate`."""
    folder = f"data/evaluate_{datetime.now().astimezone():%Y%m%d_%H%M%S}"
    starts = {"data_dir_to_save_evals": folder}

    def run(given: GivenSettings, json: bool, tasks: bool) -> int:
        env = build("evaluate", env_cls, given, starts)
        env.shows_json, env.shows_tasks = json, tasks
        asyncio.run(env._run_evaluate())
        if (folder := env.evaluation_folder) is not None:
            title, paths = f"Evaluation {folder.name}", [folder / "samples.jsonl"]
            page = _report(env, paths, folder / "report", title)
            if page is not None:
                logger.info("report: %s", page)
        return 0

    texts = {
        "--json": "Print the results as one JSON document instead of a table",
        "--tasks": "Show a row for each task in the table",
    }
    return SettingsCommand(
        "evaluate",
        "Measure a model on the fixed evaluation items.",
        env_cls,
        run,
        example="--config settings.yaml --env.eval_completions 4",
        starts=starts,
        own=[click.Option([name], is_flag=True, help=texts[name]) for name in texts],
    )


def write_rows(env: Any) -> None:
    """Run `process`; the report is made of whatever was written."""
    from rg_env.evaluation.sources import metrics_beside

    env.n_groups_to_process = env.config.total_steps
    env.group_size_to_process = env.config.group_size
    try:
        asyncio.run(env.process_manager())
    finally:
        path = Path(env.config.data_path_to_save_groups)
        folder = path.with_name(f"{path.name.removesuffix('.jsonl')}_report")
        paths = [path, metrics_beside(path)]
        page = _report(env, paths, folder, f"Groups in {path.name}")
        if page is not None:
            print(f"rows: {path}\nreport: {page}")


def _report(env: Any, paths: list[Path], folder: Path, title: str) -> Path | None:
    """Write the report of a run from what is on disk; None if that is nothing."""
    from rg_env.demo.chat_tokenizer import TOKENIZER_FOLDER
    from rg_env.pages.report import report_of

    # This tokenizer fits no model but the simulated one.
    is_simulated = Path(env.config.tokenizer_name).resolve() == TOKENIZER_FOLDER
    return report_of(paths, folder, title=title, is_simulated=is_simulated)


# -- the environment -------------------------------------------------------------------


def build(
    name: str,
    env_cls: Any,
    given: GivenSettings,
    starts: Mapping[str, Any] = {},
    change: Callable[[Any], Any] = lambda config: config,
) -> Any:
    """Build the environment of a command; from here on the framework is imported.

    `change` takes the settings of the environment and returns those that are used.
    """
    env_cls = loaded(env_cls)
    from rg_env.atropos import start_checks

    start = start_of(env_cls, starts)
    config, servers = change(given.build_env(start)), given.build_servers(start)
    if given.testing:  # a mock server answers only what a test has put into it
        raise SettingError("--testing: true is not allowed; use `simulated-server`")
    start_checks.check_command(name, config, servers)
    # Elsewhere the default is no wish of the user: without a login, W&B is off.
    if name == "serve" or given.env.get("use_wandb") is not None:
        start_checks.check_wandb(config)
    elif config.use_wandb and not start_checks.has_wandb_login():
        logger.warning(
            "W&B has no login and is off (--env.use_wandb true insists on it)"
        )
        config = config.model_copy(update={"use_wandb": False})
    # Last, since a server may have to be waited for.
    config, servers = _with_model(name, given, config, servers)
    env = env_cls(config, servers, slurm=given.slurm, testing=False)
    model, kind = servers[0].model_name, servers[0].server_type
    urls = ", ".join(str(server.config.base_url) for server in env.server.servers)
    own = config.tokenizer_name
    tokenizer = f", tokenizer {own}" if own != model else ""
    logger.info("%s: model %s (%s) at %s%s", name, model, kind, urls, tokenizer)
    return env


def _with_model(
    name: str, given: GivenSettings, config: Any, servers: list[Any]
) -> tuple[Any, list[Any]]:
    """Return settings with a model and a tokenizer where nobody has named them."""
    from rg_env.atropos.config import with_model

    if given.slurm:
        return config, servers
    return with_model(
        config,
        servers,
        named=["model_name" in part for part in given.parts(servers)],
        names_tokenizer="tokenizer_name" in given.env,
        trains=name == "serve",
    )
