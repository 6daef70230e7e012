"""The inference servers of a run: one or several, and those of a Slurm job."""

import stat

import pytest
from atroposlib.envs.server_handling.server_manager import APIServerConfig

from rg_env.atropos.server_list import server_list, slurm_urls
from rg_env.errors import SettingError
from tests.support.parts import NOWHERE, TOKENIZER, server_config


@pytest.fixture
def scontrol(tmp_path, monkeypatch):
    """A `scontrol` that knows three nodes."""
    program = tmp_path / "scontrol"
    program.write_text('#!/bin/sh\n[ "$*" = "show hostnames n[1-3]" ] || exit 1\n')
    with program.open("a") as file:
        file.write("printf 'n1\\nn2\\nn3\\n'\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(tmp_path))


JOB = {"SLURM_JOB_NODELIST": "n[1-3]", "NUM_TRAINING_NODES": "1"}


@pytest.mark.processes
def test_slurm_gives_eight_servers_for_each_inference_node(scontrol):
    urls = slurm_urls(JOB)
    assert urls[:2] == ["http://n2:9000/v1", "http://n2:9001/v1"]
    assert len(urls) == 16 and urls[-1] == "http://n3:9007/v1"


@pytest.mark.processes
def test_tensor_parallelism_divides_the_servers_of_a_node(scontrol):
    urls = slurm_urls({**JOB, "INFER_TP": "4"})
    assert urls == [f"http://n{n}:{p}/v1" for n in (2, 3) for p in (9000, 9001)]


@pytest.mark.processes
def test_every_slurm_server_is_like_the_one_that_was_configured(scontrol):
    servers = server_list(
        [server_config(kind="sglang", timeout=7)],
        tokenizer_name=TOKENIZER,
        slurm=True,
        environ=JOB,
    )
    assert len(servers) == 16
    assert {(s.server_type, s.timeout) for s in servers} == {("sglang", 7)}


@pytest.mark.processes
@pytest.mark.parametrize(
    ("environ", "named"),
    [
        ({}, "SLURM_JOB_NODELIST"),
        ({"SLURM_JOB_NODELIST": "n[1-3]"}, "NUM_TRAINING_NODES"),
        ({**JOB, "NUM_TRAINING_NODES": "one"}, "NUM_TRAINING_NODES"),
        ({**JOB, "INFER_TP": "0"}, "INFER_TP"),
        ({**JOB, "INFER_TP": "9"}, "INFER_TP"),
        ({**JOB, "SLURM_JOB_NODELIST": "other"}, "scontrol"),
        ({**JOB, "NUM_TRAINING_NODES": "3"}, "NUM_TRAINING_NODES"),
    ],
)
def test_a_slurm_variable_that_cannot_be_used_is_named(scontrol, environ, named):
    with pytest.raises(SettingError, match=named):
        slurm_urls(environ)


@pytest.mark.processes
def test_a_machine_without_slurm_is_told_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SettingError, match="--slurm false"):
        slurm_urls(JOB)


def listed(*configs, **how):
    return server_list(list(configs), tokenizer_name="t", slurm=False, **how)


def test_an_empty_key_and_a_missing_tokenizer_are_filled_in():
    (server,) = listed(
        APIServerConfig(base_url=NOWHERE, api_key="", server_type="vllm")
    )
    assert server.api_key and server.tokenizer_name == "t"


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"base_url": "localhost:9004"}, "expected an address"),
        ({"timeout": 0}, r"openai\.timeout: 0 is not allowed"),
        ({"num_max_requests_at_once": -1}, "num_max_requests_at_once"),
        ({"rolling_buffer_length": 10**30}, "rolling_buffer_length"),
        ({"model_name": " "}, "model_name"),
    ],
)
def test_a_config_of_the_framework_is_checked_as_well(changes, named):
    given = {"base_url": NOWHERE, "server_type": "vllm"}
    with pytest.raises(SettingError, match=named):
        listed(APIServerConfig(**(given | changes)))


def test_a_key_that_no_request_can_carry_is_refused_and_not_repeated():
    with pytest.raises(SettingError, match="api_key") as refused:
        listed(APIServerConfig(base_url=NOWHERE, api_key="secret\nline"))
    assert "secret" not in str(refused.value)


def test_no_server_is_refused():
    with pytest.raises(SettingError, match="at least one server"):
        listed()


def test_servers_of_two_types_are_refused_where_one_class_has_to_do_for_both():
    both = server_config(), server_config(kind="sglang")
    assert [server.server_type for server in listed(*both)] == ["vllm", "sglang"]
    with pytest.raises(SettingError, match="same type, not sglang and vllm"):
        listed(*both, of_one_type=True)


def test_a_server_without_a_url_is_refused():
    with pytest.raises(SettingError, match=r"openai\.base_url"):
        listed(APIServerConfig(base_url=None, server_type="vllm"))
