"""Who may write how much to the log."""

import asyncio
import io
import logging
import sys

import pytest

from rg_env import logs
from tests.support.parts import (
    build_env,
)


@pytest.mark.parametrize(("quiet", "level"), [(True, "WARNING"), (False, "DEBUG")])
def test_the_hosts_lines_are_hidden_where_the_setting_says_so(quiet, level):
    env = build_env(suppress_base_env_logs=quiet)
    host = logging.getLogger("atroposlib.envs.base")
    assert logging.getLevelName(host.getEffectiveLevel()) == level
    asyncio.run(env.close())
    build_and_close()


def build_and_close():
    asyncio.run(build_env().close())


def test_a_program_that_sets_up_no_logging_sees_the_log(monkeypatch, capsys):
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    env = build_env(debug_logging=True)
    env.logger.debug("a detail")
    asyncio.run(env.close())
    assert " DEBUG   env: a detail\n" in capsys.readouterr().err


def test_a_program_with_logging_of_its_own_sees_each_line_once(monkeypatch, capsys):
    own = logging.StreamHandler(sys.stderr)
    monkeypatch.setattr(logging.getLogger(), "handlers", [own])
    env = build_env()
    asyncio.run(env.close())
    env.logger.info("a line")
    assert capsys.readouterr().err.count("a line") == 1


def test_two_environments_write_each_line_once(monkeypatch, capsys):
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    for _ in range(2):
        env = build_env()
        asyncio.run(env.close())
    env.logger.info("a line")
    assert capsys.readouterr().err.count("a line") == 1


class Terminal(io.StringIO):
    def __init__(self, is_terminal):
        super().__init__()
        self._is_terminal = is_terminal

    def isatty(self):
        return self._is_terminal


@pytest.mark.parametrize("is_terminal", [True, False])
def test_lines_go_above_a_live_view_while_it_lasts(monkeypatch, is_terminal):
    stderr, view = Terminal(is_terminal), io.StringIO()
    monkeypatch.setattr(sys, "__stderr__", stderr)
    handler = logging.StreamHandler(stderr)
    logging.getLogger().addHandler(handler)
    try:
        monkeypatch.setattr(sys, "stderr", view)
        with logs.above_live_view():
            logging.getLogger().warning("during")
        logging.getLogger().warning("after")
    finally:
        logging.getLogger().removeHandler(handler)
    expected = ("during\n", "after\n") if is_terminal else ("", "during\nafter\n")
    assert (view.getvalue(), stderr.getvalue()) == expected


def test_lines_for_people_name_no_module_and_details_do(capsys, monkeypatch):
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    env = build_env(debug_logging=True)
    env.logger.info("a line")
    asyncio.run(env.close())
    assert " INFO    a line\n" in capsys.readouterr().err
