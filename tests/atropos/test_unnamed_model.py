"""A model and a tokenizer that nobody has named."""

from __future__ import annotations

import http.server
import json
import threading

import pytest

from reasoning_gym_environment import ReasoningGymEnv
from rg_env.atropos import unnamed_model
from rg_env.atropos.unnamed_model import OnlyModel, only_model
from rg_env.cli import settings_command
from rg_env.settings.environment_settings import START_MODEL
from rg_env.settings.server_settings import CheckedServer

ALONE = OnlyModel("policy", "/models/policy")


@pytest.fixture
def followed(monkeypatch):
    """Return model and tokenizer of a command line beside a server."""

    def follow(*argv, name="serve", server=ALONE):
        monkeypatch.setattr(unnamed_model, "only_model", lambda config: server)
        command = settings_command.serve(ReasoningGymEnv)
        values = command.make_context(name, list(argv)).params
        given = settings_command.read(command, values)
        config, (first,) = settings_command._with_model(name, given, command.start)
        return first.model_name, config.tokenizer_name

    return follow


def test_model_and_tokenizer_are_those_of_a_server_with_exactly_one(followed):
    assert followed() == ("policy", "/models/policy")


def test_the_tokenizer_follows_a_model_that_is_given(followed):
    argv = ["--openai.model_name", "Qwen/Qwen3-8B"]
    assert followed(*argv) == ("Qwen/Qwen3-8B", "Qwen/Qwen3-8B")


def test_what_is_given_stays(followed):
    argv = ["--openai.model_name=policy", "--env.tokenizer_name=other/one"]
    assert followed(*argv) == ("policy", "other/one")
    assert followed(f"--openai.model_name={START_MODEL}")[0] == START_MODEL


def test_without_a_server_both_are_those_of_config_init(followed):
    assert followed(server=None) == (START_MODEL, START_MODEL)


def test_texts_of_a_model_with_a_bare_name_need_no_tokenizer(followed):
    argv = ["--openai.server_type=openai", "--openai.model_name=gpt-x"]
    assert followed(*argv, name="process") == ("gpt-x", "none")
    assert followed(*argv, name="serve") == ("gpt-x", "gpt-x")


# -- what a server says ---------------------------------------------------------------


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
