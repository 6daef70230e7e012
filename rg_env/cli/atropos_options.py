"""The options of the framework's three commands: serve, process and evaluate."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from pydantic import BaseModel

from rg_env.atropos import setting_sentences
from rg_env.atropos.checked_server import CheckedServer
from rg_env.atropos.checked_settings import CheckedSettings
from rg_env.cli import options
from rg_env.cli.option_table import ENV, OPENAI, OptionTable, read_table
from rg_env.tasks import written_tasks


@dataclasses.dataclass(frozen=True)
class Command:
    """One of the framework's commands.

    Attributes:
        summary: What it does, for `--help`.
        starts: Fields of the environment that it starts from otherwise.
        wandb_needs_login: Whether W&B without a login stops the start even where the
            user did not ask for W&B.
    """

    summary: str
    starts: Mapping[str, Any]
    wandb_needs_login: bool


def _evaluation_folder() -> str:
    return f"data/evaluate_{datetime.now().astimezone():%Y%m%d_%H%M%S}"


COMMANDS = {
    "serve": Command("Feed a trainer through the Atropos API.", {}, True),
    "process": Command(
        "Write total_steps groups as JSONL rows and a page, without a trainer.",
        {
            "ensure_scores_are_not_same": False,
            "include_messages": True,
            "data_path_to_save_groups": "data/reasoning_gym.jsonl",
        },
        False,
    ),
    "evaluate": Command(
        "Measure a model on the fixed evaluation items.",
        {"data_dir_to_save_evals": _evaluation_folder()},
        False,
    ),
}


def parse(name: str, argv: Sequence[str], table: OptionTable) -> options.Options:
    """Parse the command line of a command, and the YAML file it names.

    Raises:
        SettingError: An option, key or file is wrong.
        SystemExit: It asked for help, which is printed.
    """
    command = COMMANDS[name]
    parser = options.build_parser(name, command.summary, table, command.starts)
    return options.parse(parser, argv, table)


def glance(name: str, argv: Sequence[str]) -> None:
    """Refuse a command line, or print its help, before the framework is imported.

    What the framework or the library has to be asked for is left to the command.

    Does nothing with a framework whose options are not written down.

    Raises:
        SettingError: An option, key, file or value is wrong.
        SystemExit: It asked for help, which is printed.
    """
    table = read_table()
    if table is None:
        return
    given = parse(name, argv, table)
    servers = [given.openai] if isinstance(given.openai, Mapping) else given.openai
    checked = _look_at(ENV, CheckedSettings, given.env)
    if written_tasks.is_library_of_list():
        written_tasks.refuse_unknown(checked)
    for server in servers:
        _look_at(OPENAI, CheckedServer, server)


def _look_at(
    section: str, model: type[BaseModel], given: Mapping[str, Any]
) -> dict[str, Any]:
    """Refuse values that the model knows to be wrong; leave its other names alone.

    Returns:
        The values that were given, as the model reads them.
    """
    known = {name: value for name, value in given.items() if name in model.model_fields}
    built: BaseModel = setting_sentences.build(section, model, known)
    return {name: getattr(built, name) for name in known}
