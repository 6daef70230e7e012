"""A model and a tokenizer that nobody has named."""

from __future__ import annotations

import contextlib
import http.server
import json
import socket
import threading
import time

import pytest

from reasoning_gym_environment import ReasoningGymEnv
from rg_env.atropos import unnamed_model
from rg_env.atropos.unnamed_model import ServedModel, served_models
from rg_env.cli import settings_command
from rg_env.errors import RunError, SettingError
from rg_env.settings.environment_settings import START_MODEL
from rg_env.settings.server_settings import CheckedServer

ALONE = [ServedModel("policy", "/models/policy")]
TWO = [*ALONE, ServedModel("other", "/models/other")]


@pytest.fixture
def followed(monkeypatch):
    """Return model and tokenizer of a command line beside a server."""

    def follow(*argv, name="serve", models=ALONE):
        monkeypatch.setattr(unnamed_model, "served_models", lambda *of: models)
        command = settings_command.serve(ReasoningGymEnv)
        values = command.make_context(name, list(argv)).params
        given = settings_command.read(command, values)
        both = given.build_env(command.start), given.build_servers(command.start)
        config, (first,) = settings_command._with_model(name, given, *both)
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


def test_a_server_that_does_not_say_leaves_those_of_config_init_with_a_warning(
    followed, logged
):
    assert followed(models=None) == (START_MODEL, START_MODEL)
    assert "openai.model_name is the default" in logged.text


@pytest.mark.parametrize(("models", "has"), [(TWO, "policy, other"), ([], "no model")])
def test_a_server_with_several_models_or_none_is_refused_with_their_names(
    followed, models, has
):
    with pytest.raises(SettingError, match=f"has {has}; name one with --openai.model"):
        followed("--env.tokenizer_name=other/one", models=models)


def test_of_several_models_the_named_one_and_the_default_are_taken(followed):
    named = followed("--openai.model_name=other", models=TWO)
    assert named == ("other", "/models/other")
    default = ServedModel(START_MODEL, "/models/it")
    assert followed(models=[*TWO, default]) == (START_MODEL, "/models/it")


def test_texts_of_a_model_with_a_bare_name_need_no_tokenizer(followed):
    argv = ["--openai.server_type=openai", "--openai.model_name=gpt-x"]
    assert followed(*argv, name="process") == ("gpt-x", "none")
    assert followed(*argv, name="serve") == ("gpt-x", "gpt-x")


# -- what a server says ---------------------------------------------------------------


@contextlib.contextmanager
def serving_at(port):
    """Run a server whose list of models a test writes; it keeps what it was asked."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            server.asked.append((self.path, self.headers["Authorization"]))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(server.says)

        def log_message(self, *args):
            pass

    server = http.server.HTTPServer(("127.0.0.1", port), Handler)
    server.asked, server.says = [], b"{}"
    server.url = f"http://127.0.0.1:{server.server_port}/v1"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def serving():
    with serving_at(0) as server:
        yield server


def found(serving, said):
    serving.says = said if isinstance(said, bytes) else json.dumps(said).encode()
    return served_models(CheckedServer(base_url=serving.url, api_key="k"))


def test_a_server_is_asked_once_for_its_models_with_its_key(serving):
    both = {"data": [{"id": "m"}, {"id": "n"}]}
    assert found(serving, both) == [ServedModel("m", "m"), ServedModel("n", "n")]
    assert serving.asked == [("/v1/models", "Bearer k")]
    assert found(serving, {"data": []}) == []


def test_the_folder_that_vllm_tells_is_the_tokenizer_if_it_is_here(serving, tmp_path):
    rows = [{"id": "policy", "root": str(tmp_path)}]
    assert found(serving, {"data": rows})[0].tokenizer == str(tmp_path)
    rows = [{"id": "policy", "root": str(tmp_path / "elsewhere")}]
    assert found(serving, {"data": rows})[0].tokenizer == "policy"


@pytest.mark.parametrize("said", [{"data": ["a"]}, [], {"data": 3}, b"<html>"])
def test_what_is_no_list_of_models_is_none(serving, said):
    assert found(serving, said) is None


def test_a_server_that_starts_later_is_waited_for_with_a_sentence(logged):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    at_port = CheckedServer(base_url=f"http://127.0.0.1:{port}/v1")
    waiting = threading.Thread(target=lambda: asked.append(served_models(at_port)))
    asked = []
    waiting.start()
    while "nothing listens there" not in logged.text:
        time.sleep(0.01)
    with serving_at(port) as server:
        server.says = json.dumps({"data": [{"id": "m"}]}).encode()
        waiting.join()
    assert asked == [[ServedModel("m", "m")]]


def test_a_server_that_never_starts_ends_the_command():
    nowhere = CheckedServer(base_url="http://127.0.0.1:9/v1")
    said = r"nothing listens there.*start the server.*env.give_up_after_s"
    with pytest.raises(RunError, match=said):
        served_models(nowhere, give_up_s=0.0)


def test_an_address_that_no_waiting_mends_is_refused():
    with pytest.raises(SettingError, match=r"openai.base_url: .*Name or service"):
        served_models(CheckedServer(base_url="http://nowhere.invalid/v1"))
