"""Inference servers that are started and ended, and the environment of vLLM."""

import json
import os
import urllib.request

import pytest

from examples.train_small.recipe import MODEL_NAME
from examples.train_small.servers import start_small
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
