"""The model and the tokenizer of a run, where no setting names them."""

import asyncio
import itertools
from types import SimpleNamespace

import pytest

from reasoning_gym_environment import ReasoningGymEnv
from rg_env.atropos import served_models
from rg_env.cli import run_commands
from rg_env.errors import RunError, SettingError
from rg_env.installation import TOKENIZER_FOLDER
from rg_env.settings.environment_settings import DEFAULT_MODEL
from rg_env.settings.server_and_launch_settings import SIMULATED, CheckedServer
from tests.support.odd_servers import HTML, Odd, serving
from tests.support.parts import NOWHERE

ALONE = {"policy": "/models/policy"}
TWO = {**ALONE, "other": "/models/other"}


@pytest.fixture
def chosen(monkeypatch):
    """Return model and tokenizer of a command line beside a server."""

    def choose(*argv, name="serve", models=ALONE):
        if models is not None:
            monkeypatch.setattr(served_models, "list_models", lambda *of, **how: models)
        command = run_commands.serve(ReasoningGymEnv)
        values = command.make_context(name, list(argv)).params
        given = command.read(values)
        env, servers = given.merged_with(command.defaults)
        env, (first,) = served_models.with_model(
            env,
            servers,
            sets_model=["model_name" in s for s in given.server_sections(servers)],
            sets_tokenizer="tokenizer_name" in given.env,
            trains=name == "serve",
        )
        return first.model_name, env.tokenizer_name

    return choose


MODEL = "--openai.model_name"
KIND = "--openai.server_type"
URL = f"--openai.base_url={SIMULATED}"


@pytest.mark.parametrize(
    ("argv", "how", "expected"),
    [
        ([], {}, ("policy", "/models/policy")),
        ([f"{MODEL}=Qwen/Qwen3-8B"], {}, ("Qwen/Qwen3-8B",) * 2),
        ([f"{MODEL}=policy", "--env.tokenizer_name=o/one"], {}, ("policy", "o/one")),
        ([f"{MODEL}={DEFAULT_MODEL}"], {}, (DEFAULT_MODEL,) * 2),
        ([f"{MODEL}=other"], {"models": TWO}, ("other", "/models/other")),
        ([], {"models": {**TWO, DEFAULT_MODEL: "/m"}}, (DEFAULT_MODEL, "/m")),
        ([f"{KIND}=openai", f"{MODEL}=g"], {"name": "process"}, ("g", "none")),
        ([f"{KIND}=openai", f"{MODEL}=g"], {"name": "serve"}, ("g", "g")),
        ([URL, f"{MODEL}=g"], {"models": None}, (SIMULATED, str(TOKENIZER_FOLDER))),
        (
            [URL, f"{KIND}=openai", "--env.tokenizer_name=o/one"],
            {"models": None, "name": "process"},
            (SIMULATED, "o/one"),
        ),
    ],
)
def test_the_model_is_the_only_one_of_the_server_and_the_tokenizer_its(
    chosen, argv, how, expected
):
    assert chosen(*argv, **how) == expected


@pytest.mark.parametrize(("models", "has"), [(TWO, "policy, other"), ({}, "no model")])
def test_a_server_with_several_models_or_none_is_refused_with_their_names(
    chosen, models, has
):
    with pytest.raises(SettingError, match=f"has {has}, not .*; name one with --op"):
        chosen("--env.tokenizer_name=other/one", models=models)


async def models_of(says):
    async with serving(Odd({"GET /v1/models": says})) as url:
        server = CheckedServer(base_url=f"{url}/v1")
        return await asyncio.to_thread(
            served_models.list_models, server, 0.0, is_needed=True
        )


@pytest.mark.parametrize(
    ("says", "models"),
    [
        ({"data": [{"id": "m"}, {"id": "n"}]}, {"m": "m", "n": "n"}),
        ({"data": [{"id": "m", "root": "/"}]}, {"m": "/"}),
        ({"data": [{"id": "m", "root": "/no/such"}]}, {"m": "m"}),
        ({"data": []}, {}),
        ({"data": ["a"]}, {}),
    ],
)
async def test_a_server_lists_its_models_and_vllm_the_folders_of_their_tokenizers(
    says, models, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "None").mkdir()
    assert await models_of((200, says)) == models


def test_a_server_that_does_not_answer_is_waited_for(chosen, logged, monkeypatch):
    clock = itertools.count()
    passing = SimpleNamespace(monotonic=lambda: next(clock), sleep=lambda s: None)
    monkeypatch.setattr(served_models, "time", passing)
    argv = [f"--openai.base_url={NOWHERE}", "--env.give_up_after_s=1.5"]
    with pytest.raises(RunError, match=f"{NOWHERE} does not answer .nothing listens"):
        chosen(*argv, name="process", models=None)
    assert "which is waited for" in logged.text
    with pytest.raises(SettingError, match=r"openai\.base_url: http://no\.invalid"):
        chosen("--openai.base_url=http://no.invalid/v1", models=None)


@pytest.mark.parametrize("reply", [(404, HTML), (500, "boom"), (200, HTML)])
async def test_what_is_no_inference_server_is_named_by_its_url(reply):
    with pytest.raises(RunError, match=r"at http://127.*; set --openai.base_url"):
        await models_of(reply)


async def test_a_model_that_the_server_has_not_is_refused_with_those_that_it_has(
    chosen,
):
    says = {"error": {"message": "The model `Y` does not exist."}}
    replies = {"GET /v1/models": (200, {"data": [{"id": "X"}]})}

    async def run(status):
        reply = {"POST /v1/chat/completions": (status, says)}
        async with serving(Odd(replies | reply)) as url:
            argv = (f"--openai.base_url={url}/v1", f"{MODEL}=Y")
            return await asyncio.to_thread(chosen, *argv, models=None)

    with pytest.raises(SettingError, match=r"openai\.model_name: .* has X, not 'Y'"):
        await run(404)
    assert await run(200) == ("Y", "Y")
