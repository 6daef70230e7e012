"""Every option of every command, given what nobody should give it.

A value is taken within its range, or refused in one sentence that begins with the
option. Nothing else comes of a command line.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from reasoning_gym_environment import ReasoningGymEnv, ReasoningGymEnvConfig
from rg_env.atropos.server_settings import ServerSettings
from rg_env.cli import (
    demo_options,
    doctor_command,
    options,
    run_api_command,
    show_command,
    simulated_server_command,
    tasks_command,
)
from rg_env.cli.option_table import describe
from rg_env.errors import SettingError

MODELS = {"env": ReasoningGymEnvConfig, "openai": ServerSettings}
FIELDS = [
    (section, name) for section in MODELS for name in MODELS[section].model_fields
]
SMALL = {
    "demo": demo_options,
    "doctor": doctor_command,
    "run-api": run_api_command,
    "show": show_command,
    "simulated-server": simulated_server_command,
    "tasks": tasks_command,
}
LONGEST_SENTENCE = 1000

ODD = [
    *("", " ", "\t", "\n", "nan", "NaN", "-nan", "inf", "-inf", "Infinity", "1e30"),
    *("-1", "0", "-0.0", "1.5", "1e400", "1e-400", str(10**30), "9" * 5000, "0x10"),
    *("None", "true", "yes", "abc", "None ", "[", "[]", "[1, 2]", "[nan]", "{}", "{"),
    *("{a: {b: c}}", "{gcd: .nan}", "{gcd: .inf}", "{gcd: -1}", "{gcd: true}", "- a"),
    *("{1: 2}", "[[a]]", "[null]", "{a: 1, a: 2}", "&a [*a]", "!!python/name:os", "@"),
    *("/", "/dev/null", "/proc/nope", "~", "..", "a\nb", "a\0b", "\udcff", "ünï", ","),
    *("localhost:9004", "http://", "ftp://x", "http://x:99999", "http://u:p@x", "a,,b"),
    *(
        "[0.9, 0.1]",
        "[0, .nan]",
        "curriculum",
        "a" * 300,
        "--",
        "-",
        "=",
        "%s",
        "\x1b[2J",
    ),
]
"""What is easily written by mistake, or breaks programs that do not look."""

junk = st.one_of(
    st.sampled_from(ODD),
    st.integers().map(str),
    st.floats().map(str),
    st.text(max_size=20),
)


@contextlib.contextmanager
def in_an_empty_folder() -> Iterator[None]:
    """Work in a folder where nothing may be left."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            yield
            assert list(Path(folder).iterdir()) == []
        finally:
            os.chdir(before)


def said_by(error: SettingError, *names: str) -> str:
    """Return a sentence that begins with one of these names, and is one."""
    said = str(error)
    assert said.startswith(names), said
    assert len(said) < LONGEST_SENTENCE
    assert "\n" not in said
    return said


def is_sound(value: Any) -> bool:
    """Say whether no number in a value is NaN or infinite, and no text is blank."""
    if isinstance(value, dict):
        return all(is_sound(part) for pair in value.items() for part in pair)
    if isinstance(value, (list, tuple)):
        return all(map(is_sound, value))
    if isinstance(value, str):
        return bool(value.strip()) and "\0" not in value
    return not isinstance(value, float) or math.isfinite(value)


def is_in_range(value: Any, rules: list[Any]) -> bool:
    """Say whether a value keeps to the rules of its field."""
    if value is None or isinstance(value, (str, bool)):
        return True
    return all(
        (not hasattr(rule, "ge") or value >= rule.ge)
        and (not hasattr(rule, "gt") or value > rule.gt)
        and (not hasattr(rule, "le") or value <= rule.le)
        for rule in rules
    )


class Start:
    """What `serve` starts from, and its parser."""

    def __init__(self) -> None:
        self.env, (self.server,) = ReasoningGymEnv.config_init()
        self.values = self.env.model_dump()
        self.table = describe(self.env, self.server)
        self.parser = options.build_parser("serve", "", self.table, {})


@pytest.fixture(scope="module")
def start() -> Start:
    return Start()


def built(start: Start, section: str, argv: list[str]) -> Any:
    """Return the model of a section, as a command line of `serve` makes it."""
    chosen = options.parse(start.parser, argv, start.table)
    if section == "openai":
        return options.build_servers(start.server, chosen.openai)[0]
    return options.build_model("env", ReasoningGymEnvConfig, start.values, chosen.env)


def check_field(start: Start, section: str, name: str, text: str) -> None:
    field = MODELS[section].model_fields[name]
    try:
        model = built(start, section, [f"--{section}.{name}={text}"])
    except SettingError as error:
        said_by(error, f"{section}.{name}")
        return
    value = getattr(model, name)
    # Parameters of a dataset are the library's to judge.
    assert name == "task_params" or is_sound(value), value
    assert is_in_range(value, field.metadata), value


@pytest.mark.parametrize(("section", "name"), FIELDS, ids=map(".".join, FIELDS))
def test_a_field_takes_what_is_in_its_range_or_says_why_not(
    start: Start, section: str, name: str
) -> None:
    for text in ODD:
        check_field(start, section, name, text)


@settings(max_examples=200, deadline=None)
@given(field=st.sampled_from(FIELDS), text=junk)
def test_no_text_at_all_gets_a_field_out_of_its_range(
    start: Start, field: tuple[str, str], text: str
) -> None:
    check_field(start, *field, text)


ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from([10**30, -(10**30), 10**400, "\0", "\udcff", math.nan]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.text(max_size=3) | st.integers(), inner, max_size=2)
    ),
    max_leaves=4,
)
"""What YAML may hold."""


@settings(max_examples=600, deadline=None)
@given(field=st.sampled_from(FIELDS), value=ANYTHING)
@example(field=("env", "task_weights"), value={"": 1})
@example(field=("env", "task_levels"), value={" ": 0.5})
def test_no_value_of_yaml_gets_a_field_out_of_its_range(
    start: Start, field: tuple[str, str], value: Any
) -> None:
    section, name = field
    try:
        if section == "env":
            model = options.build_model(
                "env", ReasoningGymEnvConfig, start.values, {name: value}
            )
        else:
            (model,) = options.build_servers(start.server, {name: value})
    except SettingError as error:
        said_by(error, f"{section}.{name}")
        return
    taken = getattr(model, name)
    blank_means_none = taken == "" and name in ("api_key", "base_url")
    # A server may stop at a line's end; tests of its own say what is refused in it.
    is_others = name in ("task_params", "extra_body")
    assert is_others or blank_means_none or is_sound(taken), taken
    assert is_in_range(taken, MODELS[section].model_fields[name].metadata)


@pytest.mark.parametrize(
    "name", ["group_size", "seed", "temperature", "num_workers", "task_weights"]
)
def test_a_flag_is_no_number(start: Start, name: str) -> None:
    value = {"gcd": True} if name == "task_weights" else True
    with pytest.raises(SettingError, match=f"env.{name}"):
        options.build_model("env", ReasoningGymEnvConfig, start.values, {name: value})


# -- the small commands ----------------------------------------------------------------


def options_of(command: str) -> list[argparse.Action]:
    """Return what a command takes a value for."""
    actions = SMALL[command].build_parser()._actions
    return [a for a in actions if a.option_strings and a.nargs != 0]


VALUED = [(c, a.option_strings[0]) for c in SMALL for a in options_of(c)]
FLAGS = [
    (command, action.option_strings[-1])
    for command, module in SMALL.items()
    for action in module.build_parser()._actions
    if action.nargs == 0 and action.dest != "help"
]


def check_option(command: str, option: str, text: str) -> None:
    argv = ["gcd"] if command == "show" else []
    try:
        with in_an_empty_folder():
            found = SMALL[command].build_parser().parse([*argv, f"{option}={text}"])
    except SettingError as error:
        said_by(error, f"{option}:", "command line:")
        return
    # An answer may be any text, and so may what a parameter is called.
    value = getattr(found, option.removeprefix("--"))
    assert option in ("--answer", "--param", "--category") or is_sound(value), value


@pytest.mark.parametrize(("command", "option"), VALUED, ids=map(" ".join, VALUED))
def test_an_option_takes_what_is_in_its_range_or_says_why_not(
    command: str, option: str
) -> None:
    for text in ODD:
        check_option(command, option, text)


@settings(max_examples=100, deadline=None)
@given(which=st.sampled_from(VALUED), text=junk.filter(lambda text: "/" not in text))
def test_no_text_at_all_gets_an_option_out_of_its_range(
    which: tuple[str, str], text: str
) -> None:
    check_option(*which, text)


@pytest.mark.parametrize(("command", "option"), VALUED, ids=map(" ".join, VALUED))
def test_an_option_without_its_value_says_that_it_needs_one(
    command: str, option: str
) -> None:
    argv = ["gcd", option] if command == "show" else [option]
    with pytest.raises(SettingError, match=f"^{option}: a value is needed$"):
        SMALL[command].build_parser().parse(argv)


@pytest.mark.parametrize(("command", "option"), [*VALUED, *FLAGS])
def test_the_beginning_of_an_option_is_refused_with_the_whole(
    command: str, option: str
) -> None:
    argv = ["gcd"] if command == "show" else []
    with pytest.raises(SettingError, match=f"unknown option.*{option}'"):
        SMALL[command].build_parser().parse([*argv, option[:-1]])


@pytest.mark.parametrize(("command", "option"), FLAGS, ids=map(" ".join, FLAGS))
def test_a_switch_takes_no_value(command: str, option: str) -> None:
    with pytest.raises(SettingError, match=f"^{option}: it takes no value, found '1'"):
        SMALL[command].build_parser().parse([f"{option}=1"])


@pytest.mark.parametrize(
    ("command", "option"),
    [row for row in VALUED if row[1] not in ("--param", "--category", "--json")],
)
def test_an_option_that_is_given_twice_is_refused(command: str, option: str) -> None:
    argv = [option, "1", f"{option}=2"]
    with pytest.raises(SettingError, match=f"^{option}: it is given twice"):
        SMALL[command].build_parser().parse(argv)


@pytest.mark.parametrize(
    ("command", "argv", "expected"),
    [
        ("demo", ["--group_size", "1"], "compared within a group"),
        ("demo", ["--latency_ms", "-1e5"], "--latency_ms: found '-1e5'"),
        ("demo", ["--latency_ms", "-inf"], "--latency_ms: found '-inf'"),
        ("demo", ["--steps", "abc"], "--steps: found 'abc'; allowed is a whole number"),
        ("demo", ["gcd"], "unexpected 'gcd'"),
        ("demo", ["--", "gcd"], "unexpected 'gcd'"),
        ("demo", ["--dumps", "/proc/self/x"], "--dumps: '/proc/self/x' cannot be"),
        ("doctor", ["--json", "/proc/self/x"], "--json: '/proc/self/x' cannot be"),
        ("doctor", ["--json", "/"], "it is a folder"),
        ("doctor", ["--items", "-1"], "--items: found '-1'"),
        ("show", [], "TASK is needed"),
        ("show", ["gcd", "--param", "x"], "NAME=VALUE"),
        ("show", ["gcd", "--param", "x=["], "no YAML value"),
        ("simulated-server", ["--port", "99999"], "from 0 to 65535"),
        ("run-api", ["--port", "99999"], "from 0 to 65535"),
        ("run-api", ["--host", " "], "--host"),
    ],
)
def test_a_wrong_command_line_says(
    command: str, argv: list[str], expected: str
) -> None:
    with pytest.raises(SettingError) as refused:
        SMALL[command].build_parser().parse(argv)
    assert expected in str(refused.value)
