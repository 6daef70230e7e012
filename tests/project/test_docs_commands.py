"""The commands in the documents exist, with the options that they are shown with."""

import re
import shlex

import click
from atroposlib.envs.server_handling.server_manager import APIServerConfig

from rg_env.atropos.config import ReasoningGymEnvConfig
from rg_env.cli.main import COMMANDS, PROGRAM
from tests.support.documents import (
    DOCUMENTS,
    PAGES,
    ROOT,
    blocks,
    codes,
    command_lines,
    table,
    text_of,
)

ENTRY = "python reasoning_gym_environment.py"
ENTRY_CALL = re.compile(r"python reasoning_gym_environment\.py +([a-z][a-z-]*)")
OPTION = re.compile(r"--(env|openai)\.([a-z]\w*)(?![\w.])")


def words_after(start):
    """Return the words of the command lines that hold `start`, after it."""
    ends = (")", "&", ";", "|", ">")
    of_examples = re.findall(r"^# +(python .*)$", text_of(*DOCUMENTS), re.M)
    for line in [*command_lines(), *of_examples]:
        if start in line:
            after = line.split(start, 1)[1].split(" ...")[0]
            yield [w for w in shlex.split(after) if not w.startswith(ends)]


def known_options(command):
    context = click.Context(PROGRAM)
    found = PROGRAM.get_command(context, command) if command in COMMANDS else PROGRAM
    whole = [found, *getattr(found, "commands", {}).values()]
    options = [option for part in whole for option in part.get_params(context)]
    return {name for option in options for name in option.opts}


def test_every_documented_command_exists():
    assert set(ENTRY_CALL.findall(text_of(*DOCUMENTS))) <= set(COMMANDS)


def test_every_command_is_documented_with_a_sample_and_in_the_table():
    samples = "\n".join(blocks("bash"))
    assert set(COMMANDS) <= set(ENTRY_CALL.findall(samples))
    rows = table("Command", [ROOT / "docs" / "commands.md"])
    assert {name for row in rows for name in codes(row[0])} == set(COMMANDS)


def test_every_documented_option_is_a_field():
    fields = {
        "env": ReasoningGymEnvConfig.model_fields,
        "openai": APIServerConfig.model_fields,
    }
    used = OPTION.findall(text_of(*DOCUMENTS))
    assert used
    assert [name for kind, name in used if name not in fields[kind]] == []


def test_every_option_of_a_sample_is_one_of_its_command():
    calls = [words for words in words_after(ENTRY) if words]
    assert len(calls) > 20
    unknown = [
        (command, word)
        for command, *rest in calls
        for word in rest
        if word.startswith("--") and word.split("=")[0] not in known_options(command)
    ]
    assert unknown == []


def test_every_settings_file_of_a_sample_exists():
    named = [word for words in words_after("--config ") for word in words[:1]]
    assert named
    assert [n for n in named if n != "FILE" and not (ROOT / n).is_file()] == []


def test_every_make_word_is_a_target():
    makefile = text_of(ROOT / "Makefile")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.M))
    used = re.findall(r"^make ([\w-]+)", "\n".join(blocks("bash")), re.M)
    used += re.findall(r"`make ([\w-]+)", text_of(*PAGES))
    assert {"demo", "test"} <= set(used) <= targets


def test_every_symptom_of_the_troubleshooting_is_said_by_the_code():
    sources = text_of(*(ROOT / "rg_env").rglob("*.py"))
    said = re.sub(r'"\s*\n\s*f?"', "", sources)
    quoted = [code for row in table("Symptom") for code in codes(row[0])]
    parts = [part for code in quoted for part in code.split(" ... ")]
    assert quoted
    assert [p for p in set(parts) if p.removesuffix(" ...") not in said] == []
