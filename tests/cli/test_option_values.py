"""Every option of every command, given what nobody should give it.

A value is taken within its range, or refused in one sentence that begins with the
option. Nothing else comes of a command line.
"""

from __future__ import annotations

import contextlib
import math
import os
import tempfile
from pathlib import Path

import click
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from reasoning_gym_environment import ReasoningGymEnv, ReasoningGymEnvConfig
from rg_env.atropos.server_list import ServerSettings
from rg_env.cli import settings_command
from rg_env.cli.main import COMMANDS, PROGRAM, WITH_SETTINGS
from rg_env.cli.setting_options import SettingOption
from rg_env.cli.settings_command import GivenSettings
from rg_env.errors import SettingError
from tests.support.parts import run_main

MODELS = {"env": ReasoningGymEnvConfig, "openai": ServerSettings}
FIELDS = [
    (section, name) for section in MODELS for name in MODELS[section].model_fields
]
SMALL = [name for name in COMMANDS if name not in WITH_SETTINGS]
LONGEST_SENTENCE = 1000

ODD = [
    *("", " ", "\t", "\n", "nan", "NaN", "-nan", "inf", "-inf", "Infinity", "1e30"),
    *("-1", "0", "-0.0", "1.5", "1e400", "1e-400", str(10**30), "9" * 5000, "0x10"),
    *("None", "true", "yes", "abc", "None ", "[", "[]", "[1, 2]", "[nan]", "{}", "{"),
    *("{a: {b: c}}", "{gcd: .nan}", "{gcd: .inf}", "{gcd: -1}", "{gcd: true}", "- a"),
    *("{1: 2}", "[[a]]", "[null]", "{a: 1, a: 2}", "&a [*a]", "!!python/name:os", "@"),
    *("/", "/dev/null", "/proc/nope", "~", "..", "a\nb", "a\0b", "\udcff", "ünï", ","),
    *("localhost:9004", "http://", "ftp://x", "http://x:99999", "http://u:p@x", "a,,b"),
    *("[0.9, 0.1]", "[0, .nan]", "curriculum", "a" * 300, "--", "-", "=", "%s"),
    "\x1b[2J",
]
"""What is easily written by mistake, or breaks programs that do not look."""


@contextlib.contextmanager
def in_an_empty_folder():
    """Work in a folder where nothing may be left."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            yield
            assert list(Path(folder).iterdir()) == []
        finally:
            os.chdir(before)


def said_by(error, *names):
    """Return a sentence that begins with one of these names, and is one."""
    said = str(error)
    assert said.startswith(names), said
    assert len(said) < LONGEST_SENTENCE
    assert "\n" not in said
    return said


def is_sound(value):
    """Say whether no number in a value is NaN or infinite, and no text is blank."""
    if isinstance(value, dict):
        return all(is_sound(part) for pair in value.items() for part in pair)
    if isinstance(value, (list, tuple)):
        return all(map(is_sound, value))
    if isinstance(value, str):
        return bool(value.strip()) and "\0" not in value
    return not isinstance(value, float) or math.isfinite(value)


def is_in_range(value, rules):
    """Say whether a value keeps to the rules of its field."""
    if value is None or isinstance(value, (str, bool)):
        return True
    return all(
        (not hasattr(rule, "ge") or value >= rule.ge)
        and (not hasattr(rule, "gt") or value > rule.gt)
        and (not hasattr(rule, "le") or value <= rule.le)
        for rule in rules
    )


@pytest.fixture(scope="module")
def serve():
    return settings_command.serve(ReasoningGymEnv)


def built(command, section, given):
    """Return the model of a section."""
    if section == "openai":
        return given.build_servers(command.start)[0]
    return given.build_env(command.start)


def check_field(serve, section, name, text):
    field = MODELS[section].model_fields[name]
    try:
        with serve.make_context("serve", [f"--{section}.{name}={text}"]) as context:
            values = context.params
        model = built(serve, section, settings_command.read(serve, values))
    except SettingError as error:
        said_by(error, f"{section}.{name}")
        return
    except click.NoSuchOption:  # a switch takes what begins with a dash for one
        assert text.startswith("-")
        return
    value = getattr(model, name)
    # Parameters of a dataset are the library's to judge, and a blank key is none.
    if name not in ("task_params", "extra_body") and not is_none(name, value):
        assert is_sound(value), value
    assert is_in_range(value, field.metadata), value


def is_none(name, value):
    """Say whether a text is one that the framework takes for none."""
    return name in ("api_key", "base_url") and value == ""


@pytest.mark.slow
@pytest.mark.parametrize(("section", "name"), FIELDS, ids=map(".".join, FIELDS))
def test_a_field_takes_what_is_in_its_range_or_says_why_not(serve, section, name):
    for text in ODD:
        check_field(serve, section, name, text)


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


@pytest.mark.slow
@settings(max_examples=600, deadline=None)
@given(field=st.sampled_from(FIELDS), value=ANYTHING)
@example(field=("env", "task_weights"), value={"": 1})
@example(field=("env", "task_levels"), value={" ": 0.5})
def test_no_value_of_yaml_gets_a_field_out_of_its_range(serve, field, value):
    section, name = field
    one = {name: value}
    chosen = GivenSettings(one, {}) if section == "env" else GivenSettings({}, one)
    try:
        taken = getattr(built(serve, section, chosen), name)
    except SettingError as error:
        said_by(error, f"{section}.{name}")
        return
    # A server may stop at a line's end; tests of its own say what is refused in it.
    is_others = name in ("task_params", "extra_body")
    assert is_others or is_none(name, taken) or is_sound(taken), taken
    assert is_in_range(taken, MODELS[section].model_fields[name].metadata)


@pytest.mark.parametrize(
    "name", ["group_size", "seed", "temperature", "num_workers", "task_weights"]
)
def test_a_flag_is_no_number(serve, name):
    value = {"gcd": True} if name == "task_weights" else True
    with pytest.raises(SettingError, match=f"env.{name}"):
        GivenSettings({name: value}, {}).build_env(serve.start)


# -- the small commands ----------------------------------------------------------------


def command_of(name):
    command = PROGRAM.get_command(click.Context(PROGRAM), name)
    assert command is not None
    return command


NEEDED = {"show": ["gcd"], "rescore": ["data_dumps"], "compare": ["data_dumps"]}
NEEDED["report"] = ["data_dumps"]


def parse(command, argv):
    words = [*NEEDED.get(command, ()), *argv]
    with command_of(command).make_context(command, words) as context:
        return context.params


def parsed_or_said(command, argv):
    try:
        return parse(command, argv), ""
    except click.UsageError as error:
        return {}, error.format_message()


VALUED = [
    (name, option.opts[-1])
    for name in SMALL
    for option in command_of(name).params
    if isinstance(option, click.Option) and not option.is_flag
    if not isinstance(option.type, click.Path)  # of which there may be any
    if not isinstance(option, SettingOption)  # a field, see above
]


TEXTS = ("--title", "--answer", "--param", "--category", "--host", "--ray")


def check_option(command, option, text):
    with in_an_empty_folder():
        found, said = parsed_or_said(command, [f"{option}={text}"])
    assert found or option in said
    if not found:
        return
    # Where nothing can be written or listened on is found out when it is tried, and an
    # answer may be any text, as may what a parameter is called.
    if option not in (*TEXTS, "--dumps"):
        assert is_sound(found[option.removeprefix("--")])


@pytest.mark.slow
@pytest.mark.parametrize(("command", "option"), VALUED, ids=map(" ".join, VALUED))
def test_an_option_takes_what_is_in_its_range_or_says_why_not(command, option):
    for text in ODD:
        check_option(command, option, text)


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (["demo", "--group_size", "1"], "'--group_size': 1 is not in the range"),
        (["demo", "--latency_ms", "-inf"], "-inf is not in the range"),
        (["demo", "--steps", "abc"], "'abc' is not a valid integer"),
        (["demo", "--step", "3"], "Did you mean '--steps'?"),
        (["demo", "--batch_size=9"], "is no multiple of"),
        (["simulated-server", "--model=x"], "No such option '--model'.\n"),
        (["demo", "gcd"], "unexpected extra argument (gcd)"),
        (["demo", "--dumps", "/proc/self/x"], "'/proc/self/x' cannot be written"),
        (["doctor", "--no_fixes=1"], "'--no_fixes' does not take a value"),
        (["doctor", "--tasks", "a,,b"], "'a,,b' is not names separated by commas"),
        (["show"], "Missing argument 'TASK'"),
        (["show", "gcd", "--level=1.5"], "1.5 is not in the range"),
        (["show", "gcd", "--seed=4294967296"], "4294967296 is not in the range"),
        (["show", "gcd", "--param", "x"], "NAME=VALUE"),
        (["show", "gcd", "--param", "x=["], "no YAML value"),
        (["show", "gcd", "--param", "\x1b[2J"], "\\x1b[2J"),
        (["simulated-server", "--port", "99999"], "99999 is not in the range"),
        (
            ["simulated-server", "--complexity_mode", "hard"],
            "'hard' is not allowed; expected None",
        ),
    ],
)
def test_a_wrong_command_line_is_one_sentence_and_status_2(argv, expected, capsys):
    assert run_main(argv) == 2
    said = capsys.readouterr().err
    assert expected in said
    assert said.count("\n") == 1


def test_of_an_option_that_is_given_twice_the_last_one_wins():
    assert parse("demo", ["--steps", "3", "--steps=4"])["steps"] == 4
    assert parse("tasks", ["--category=a", "--category=b"])["category"] == ("a", "b")


def test_hyphens_in_an_option_mean_underscores():
    assert parse("demo", ["--group-size=4"])["group_size"] == 4
    assert parse("show", ["--no-fixes"])["no_fixes"]
    assert PROGRAM.get_command(click.Context(PROGRAM), "run_api").name == "run-api"
