"""Who may write how much to the log."""

import asyncio
import logging

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
