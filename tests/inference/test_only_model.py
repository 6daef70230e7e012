"""The model of a server that has exactly one."""

from __future__ import annotations

import http.server
import json
import threading

import pytest

from rg_env.inference.only_model import OnlyModel, only_model
from rg_env.settings.server_settings import CheckedServer


@pytest.fixture
def serving():
    """A server whose list of models a test writes; what it was asked."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            server.asked.append((self.path, self.headers["Authorization"]))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(server.says)

        def log_message(self, *args):
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    server.asked, server.says = [], b"{}"
    server.url = f"http://127.0.0.1:{server.server_port}/v1"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def found(serving, said):
    serving.says = said if isinstance(said, bytes) else json.dumps(said).encode()
    return only_model(CheckedServer(base_url=serving.url, api_key="k"))


def test_a_server_with_one_model_is_asked_once_with_its_key(serving):
    assert found(serving, {"data": [{"id": "m"}]}) == OnlyModel("m", "m")
    assert serving.asked == [("/v1/models", "Bearer k")]


def test_the_folder_that_vllm_tells_is_the_tokenizer_if_it_is_here(serving, tmp_path):
    rows = [{"id": "policy", "root": str(tmp_path)}]
    assert found(serving, {"data": rows}).tokenizer == str(tmp_path)
    rows = [{"id": "policy", "root": str(tmp_path / "elsewhere")}]
    assert found(serving, {"data": rows}).tokenizer == "policy"


@pytest.mark.parametrize(
    "said",
    [
        {"data": [{"id": "a"}, {"id": "b"}]},
        {"data": []},
        {"data": ["a"]},
        {"data": [{"id": 3}]},
        [],
        b"<html>",
    ],
)
def test_several_models_and_no_list_are_none(serving, said):
    assert found(serving, said) is None


def test_a_server_that_is_down_has_none():
    assert only_model(CheckedServer(base_url="http://127.0.0.1:9/v1")) is None
