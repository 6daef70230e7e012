"""The levels and handlers of the log, and the format of its lines."""

import asyncio
import io
import logging
import sys

import pytest
from rich.console import Console
from rich.live import Live

from rg_env import logs
from tests.support.parts import build_env


def without_logging(monkeypatch):
    """Make this a program that has not set up logging."""
    for name in (None, "rg_env", "huggingface_hub"):
        monkeypatch.setattr(logging.getLogger(name), "handlers", [])


def build_and_close(**changes):
    env = build_env(**changes)
    asyncio.run(env.close())
    return env.logger


@pytest.mark.parametrize(("quiet", "level"), [(True, "WARNING"), (False, "DEBUG")])
def test_the_hosts_lines_are_hidden_where_the_setting_says_so(quiet, level):
    build_and_close(suppress_base_env_logs=quiet)
    host = logging.getLogger("atroposlib.envs.base")
    assert logging.getLevelName(host.getEffectiveLevel()) == level
    build_and_close()


def test_a_program_that_sets_up_no_logging_sees_each_line_once(monkeypatch, capsys):
    without_logging(monkeypatch)
    build_and_close()
    logger = build_and_close(debug_logging=True)
    logger.debug("a detail")
    logger.info("a line")
    said = capsys.readouterr().err
    assert said.count(" DEBUG   env: a detail\n") == 1
    assert said.count(" INFO    a line\n") == 1  # names no module


def test_lines_go_above_a_live_view_while_it_lasts(monkeypatch, capsys):
    without_logging(monkeypatch)
    logs.start()
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True)
    with Live(console=console, auto_refresh=False):
        logging.getLogger("rg_env.x").warning("during")
    logging.getLogger("rg_env.x").warning("after")
    assert "during" in screen.getvalue() and "after" not in screen.getvalue()
    assert "after" in (said := capsys.readouterr().err) and "during" not in said


def test_a_warning_of_a_library_is_one_line(monkeypatch, capsys):
    without_logging(monkeypatch)
    hub = logging.getLogger("huggingface_hub")
    hub.addHandler(logging.StreamHandler(sys.stderr))  # as it does itself
    logs.start()
    logs.set_levels(False, quiet_framework=True)
    logging.getLogger("huggingface_hub.file_download").warning("no\nsymlinks")
    said = capsys.readouterr().err
    assert said.endswith(" WARNING huggingface_hub: no symlinks\n")
    assert said.count("symlinks") == 1


def test_a_line_of_the_log_is_one_line_whatever_it_quotes(monkeypatch, capsys):
    without_logging(monkeypatch)
    logs.start()
    foreign = "gcd\x1b[31m\n12:00:00 ERROR   forged"
    try:
        raise ValueError(foreign)
    except ValueError:
        logging.getLogger("rg_env.x").exception("task %s", foreign)
    said = capsys.readouterr().err
    assert r" ERROR   task gcd\x1b[31m\n12:00:00 ERROR   forged" in said
    assert said.startswith(said.splitlines()[0]) and "\x1b" not in said
