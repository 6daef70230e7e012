"""A model and a tokenizer that nobody has named."""

from __future__ import annotations

import pytest

from reasoning_gym_environment import ReasoningGymEnv
from rg_env.atropos import unnamed_model
from rg_env.cli import settings_command
from rg_env.inference.only_model import OnlyModel
from rg_env.settings.environment_settings import START_MODEL

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
