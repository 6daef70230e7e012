"""Who may write how much to the log."""

import asyncio
import logging
import sys

import pytest
from parts import (
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
    assert " DEBUG   rg_env.env: a detail\n" in capsys.readouterr().err


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
