"""The servers of a run."""

import pytest
from atroposlib.envs.server_handling.server_manager import APIServerConfig

from rg_env.atropos.config import server_list
from rg_env.errors import SettingError
from rg_env.settings.server_and_launch_settings import SIMULATED
from tests.support.parts import NOWHERE, server_config

# -- the list of servers ---------------------------------------------------------------


def listed(**changes):
    fields = {"base_url": NOWHERE, "server_type": "vllm"} | changes
    return server_list([APIServerConfig(**fields)], tokenizer_name="t", slurm=False)


def test_an_empty_key_and_a_missing_tokenizer_are_filled_in():
    (server,) = listed(api_key="")
    assert server.api_key and server.tokenizer_name == "t"


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"base_url": "localhost:9004"}, "expected an address"),
        ({"timeout": 0}, r"openai\.timeout: 0 is not allowed"),
        ({"api_key": "secret\nline"}, "api_key(?!.*secret)"),
        ({"base_url": None}, r"openai\.base_url"),
    ],
)
def test_a_config_of_the_framework_is_checked_as_well(changes, named):
    with pytest.raises(SettingError, match=named):
        listed(**changes)


@pytest.mark.parametrize(
    ("urls", "slurm", "why"),
    [
        ([], False, "at least one server"),
        ([SIMULATED, NOWHERE], False, "simulated cannot be combined"),
        ([SIMULATED], True, "simulated cannot be combined"),
        ([NOWHERE], True, "slurm: SLURM_JOB_NODELIST and"),
    ],
)
def test_servers_that_no_run_can_use_are_refused(urls, slurm, why, monkeypatch):
    monkeypatch.delenv("SLURM_JOB_NODELIST", raising=False)
    with pytest.raises(SettingError, match=why):
        server_list([*map(server_config, urls)], tokenizer_name="t", slurm=slurm)
