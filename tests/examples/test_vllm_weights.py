"""Weights that are handed over to a vLLM in its development mode."""

import asyncio
import contextlib

import httpx
import pytest
from aiohttp import web

from examples.trainer import vllm_weights
from examples.trainer.policy import TrainingError
from examples.trainer.vllm_weights import VllmWeights
from tests.examples.policies import WEIGHTS, AnswerPolicy
from tests.support.web_apps import serve_app

FILES = [WEIGHTS, "tokenizer.json"]
HAND_OVER = [
    "/pause?mode=wait",
    "/collective_rpc",
    *["/reset_prefix_cache"] * 3,
    "/resume",
]


class VllmCalls:
    """What a vLLM in its development mode was told, and what it answers."""

    def __init__(self, folder, root=None, **statuses):
        self.seen = []
        self.files = []
        self._model = {"id": "its-model", "root": str(root or folder)}
        self._folder = folder
        self._statuses = statuses
        self.busy_for = 2
        """So often is its cache in use."""

    async def answer(self, request):
        path = request.path_qs
        if request.method == "POST":
            self.seen.append(path)
        if path == "/collective_rpc":
            assert await request.json() == {"method": "reload_weights"}
            self.files = sorted(file.name for file in self._folder.iterdir())
        status = self._statuses.get(path.strip("/"), 200)
        if path == "/reset_prefix_cache":
            self.busy_for -= 1
        reply = {"success": self.busy_for < 0, "data": [self._model]}
        return web.json_response(reply | {"is_paused": False}, status=status)

    def app(self):
        app = web.Application()
        app.router.add_route("*", "/{any:.*}", self.answer)
        return app


def told(vllm, folder, match=None):
    """Hand weights over to a vLLM, in a thread; with a match it has to fail so."""
    may = contextlib.nullcontext()
    if match:
        may = pytest.raises(TrainingError, match=match)

    def hand_over(url):
        with may:
            VllmWeights(url, folder).hand_over(AnswerPolicy())

    async def run():
        async with serve_app(vllm.app()) as url:
            await asyncio.to_thread(hand_over, url)

    asyncio.run(run())


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "weights"
    folder.mkdir()
    (folder / "tokenizer.json").write_text("{}")
    return folder


def test_new_weights_take_the_place_of_all_others_while_vllm_is_paused(folder):
    half = folder.with_name("weights.new")  # of a run that was killed
    half.mkdir()
    (half / "another.npy").write_bytes(b"half")
    told(vllm := VllmCalls(folder), folder)
    assert (vllm.seen, vllm.files) == (HAND_OVER, FILES)
    assert [path.name for path in folder.parent.iterdir()] == ["weights"]


def test_a_vllm_that_fails_to_read_them_goes_on(folder):
    told(vllm := VllmCalls(folder, collective_rpc=500), folder, match="status 500")
    assert vllm.seen[-1] == "/resume"


@pytest.mark.parametrize(
    ("of_vllm", "reason"),
    [
        ({"is_paused": 404}, "with VLLM_SERVER_DEV_MODE=1 vllm serve .*weights"),
        ({"root": "/"}, "where no new weights .* vllm serve .*weights"),
    ],
)
def test_a_vllm_that_cannot_take_them_is_refused_before_anything(
    folder, of_vllm, reason
):
    told(vllm := VllmCalls(folder, **of_vllm), folder, match=reason)
    assert vllm.seen == []


@pytest.mark.slow
def test_a_vllm_that_ends_in_the_midst_gets_the_weights_when_it_is_back(
    folder, monkeypatch
):
    monkeypatch.setattr(vllm_weights, "POLL_S", 0)
    vllm = VllmCalls(folder)
    losses = iter([True])
    ask = httpx.request

    def ask_or_lose(*args, **how):
        reply = ask(*args, **how)
        if vllm.seen[-1:] == ["/collective_rpc"] and next(losses, False):
            raise httpx.ReadError("lost")
        return reply

    monkeypatch.setattr(httpx, "request", ask_or_lose)
    told(vllm, folder)
    assert vllm.seen == ["/pause?mode=wait", "/collective_rpc", "/resume", *HAND_OVER]
