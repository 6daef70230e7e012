"""Weights that are handed over to a vLLM in its development mode."""

import httpx
import pytest

from examples.trainer import vllm_weights
from examples.trainer.policy import TrainingError
from tests.examples.policies import WEIGHTS, AnswerPolicy

URL = "http://localhost:9004"
FILES = [WEIGHTS, "tokenizer.json"]
HAND_OVER = [
    "/pause?mode=wait",
    "/collective_rpc",
    *["/reset_prefix_cache"] * 3,
    "/resume",
]


class Vllm:
    """What a vLLM in its development mode was told, and what it answers."""

    def __init__(self, folder):
        self.seen = []
        self.files = []
        self.folder = folder
        self.root = folder
        self.statuses = {}
        self.lost = []
        """Errors in the place of its next replies to `/collective_rpc`."""
        self.busy_for = 2
        """So often is its cache in use."""

    def request(self, method, url, *, json, timeout):
        path = url.removeprefix(URL)
        if method == "POST":
            self.seen.append(path)
        if path == "/collective_rpc":
            assert json == {"method": "reload_weights"}
            self.files = sorted(file.name for file in self.folder.iterdir())
            if self.lost:
                raise self.lost.pop()
        if path == "/reset_prefix_cache":
            self.busy_for -= 1
        reply = {"success": self.busy_for < 0, "data": [{"root": str(self.root)}]}
        return httpx.Response(self.statuses.get(path, 200), json=reply)


@pytest.fixture
def vllm(tmp_path, monkeypatch):
    folder = tmp_path / "weights"
    folder.mkdir()
    (folder / "tokenizer.json").write_text("{}")
    vllm = Vllm(folder)
    monkeypatch.setattr(httpx, "request", vllm.request)
    monkeypatch.setattr(vllm_weights, "POLL_S", 0)
    return vllm


def hand_over(vllm):
    vllm_weights.VllmWeights(URL, vllm.folder).hand_over(AnswerPolicy())


def test_new_weights_take_the_place_of_all_others_while_vllm_is_paused(vllm):
    half = vllm.folder.with_name("weights.new")  # of a run that was killed
    half.mkdir()
    (half / "another.npy").write_bytes(b"half")
    hand_over(vllm)
    assert (vllm.seen, vllm.files) == (HAND_OVER, FILES)
    assert [path.name for path in vllm.folder.parent.iterdir()] == ["weights"]


def test_a_vllm_that_fails_to_read_them_goes_on(vllm):
    vllm.statuses["/collective_rpc"] = 500
    with pytest.raises(TrainingError, match="status 500"):
        hand_over(vllm)
    assert vllm.seen[-1] == "/resume"


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("statuses", {"/is_paused": 404}, "with VLLM_SERVER_DEV_MODE=1 vllm serve"),
        ("root", "/", "where no new weights .* vllm serve .*weights"),
    ],
)
def test_a_vllm_that_cannot_take_them_is_refused_before_anything(
    vllm, name, value, reason
):
    setattr(vllm, name, value)
    with pytest.raises(TrainingError, match=reason):
        hand_over(vllm)
    assert vllm.seen == []


def test_a_vllm_that_ends_in_the_midst_gets_the_weights_when_it_is_back(vllm):
    vllm.lost.append(httpx.ReadError("lost"))
    hand_over(vllm)
    assert vllm.seen == ["/pause?mode=wait", "/collective_rpc", "/resume", *HAND_OVER]
