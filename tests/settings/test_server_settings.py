"""Headers and fields of the body that the settings add to requests."""

import asyncio

import pytest

from reasoning_gym_environment import ReasoningGymEnv
from rg_env.atropos.config import ServerSettings, server_list
from rg_env.errors import SettingError
from rg_env.inference import servers
from rg_env.inference.completions import Sampling
from rg_env.inference.connection import RequestFailedError
from rg_env.inference.prompts import render_prompt
from rg_env.results.result_file import settings_text
from rg_env.settings import setting_checks
from tests.support.odd_servers import MODEL, Odd, refusal, serving, stock_vllm
from tests.support.parts import NOWHERE, build_env, env_config, server_config

SECRET = "sk-very-secret"


def settings_of(url=NOWHERE, kind="openai", **changes):
    given = vars(server_config(url, kind, model_name=MODEL))
    return setting_checks.build("openai", ServerSettings, given | changes)


def test_servers_that_sample_differently_are_refused():
    two = [settings_of(extra_body={"top_k": k}) for k in (5, 6)]
    with pytest.raises(SettingError, match=r"openai\.extra_body: all servers"):
        server_list(two, tokenizer_name="t", slurm=False)


def generated(odd, kind="openai", trains=False, **changes):
    """Generate two completions with an odd server; return them."""

    async def run():
        async with serving(odd) as url:
            env = ReasoningGymEnv(env_config(), [settings_of(url, kind, **changes)])
            if trains:
                env._servers.require_tokens()
            prompt = await env._prompts.prompts.render(env._prompts.messages("2 + 2"))
            try:
                sampling = Sampling(9, 1.0, 1.0, "train")
                return await env._servers.generate(prompt, 2, sampling)
            finally:
                await env.close()

    return asyncio.run(run())


@pytest.mark.slow
def test_a_secret_in_a_servers_error_is_not_repeated(logged, monkeypatch):
    monkeypatch.setattr(servers, "MAX_WAIT_FOR_SERVER_S", 0.5)
    odd = Odd({}, otherwise=(401, refusal(f"no such team: {SECRET}")))
    with pytest.raises(RequestFailedError, match="no such team") as failed:
        generated(odd, headers={"Authorization": f"Bearer {SECRET}"})
    assert SECRET not in str(failed.value) + logged.text


# -- what is sent ----------------------------------------------------------------------


class Heard(Odd):
    """An odd server that remembers headers."""

    headers = None

    async def answer(self, request):
        self.headers = request.headers
        return await super().answer(request)


EXTRA = {"top_k": 5, "stop": ["a"], "chat_template_kwargs": {"thinking": False}}


@pytest.mark.parametrize(
    ("kind", "trains"), [("openai", False), ("openai", True), ("vllm", True)]
)
def test_a_request_has_the_headers_and_fields_of_the_settings(kind, trains):
    heard = Heard(stock_vllm().replies)
    generated(heard, kind, trains, headers={"X-Team": "blue"}, extra_body=EXTRA)
    body = heard.bodies[-1]
    assert (heard.headers["Authorization"], heard.headers["X-Team"]) == (
        "Bearer x",
        "blue",
    )
    assert (body["top_k"], body["stop"]) == (5, ["a"])
    of_chat = None if trains else EXTRA["chat_template_kwargs"]
    assert body.get("chat_template_kwargs") == of_chat
    assert ("prompt" if trains else "messages") in body


async def test_the_chat_template_gets_its_arguments():
    env = build_env()
    env.tokenizer.chat_template = "{{ thinking }}{% for m in messages %}|{% endfor %}"
    prompt = render_prompt(
        env.tokenizer, [{"role": "user", "content": "a"}], EXTRA["chat_template_kwargs"]
    )
    assert env.tokenizer.decode(list(prompt.tokens)) == "False|"
    await env.close()


async def test_the_trainer_gets_the_sampling_settings():
    env = ReasoningGymEnv(env_config(temperature=0.6), [settings_of(extra_body=EXTRA)])
    sampled = env._trainer_data.generation_params
    await env.close()
    assert sampled == {"temperature": 0.6, "top_p": 1.0, "top_k": 5, "stop": ["a"]}


async def test_the_settings_beside_results_hold_no_secret():
    config = env_config(rollout_server_url=f"http://api:8000/{SECRET}")
    env = ReasoningGymEnv(config, [settings_of(headers={"X-Key": SECRET})])
    written = settings_text(env.config, env.server.servers, {})
    await env.close()
    assert "X-Key" in written and "http://api:8000/..." in written
    assert SECRET not in written
