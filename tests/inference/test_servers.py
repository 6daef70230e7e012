"""An error that a retry cannot fix ends a command; an outage is logged once."""

import asyncio
import logging
import socket

import pytest

from reasoning_gym_environment import ReasoningGymEnv
from rg_env.errors import SettingError
from rg_env.inference.client import Client
from rg_env.inference.completions import Completion, Sampling
from rg_env.inference.prompts import Prompt
from rg_env.inference.servers import Servers
from tests.support.odd_servers import (
    MODEL,
    Odd,
    chat,
    openai_endpoint,
    refusal,
    serving,
    with_changes,
)
from tests.support.parts import (
    ENTRY_OF_FOUR,
    NOWHERE,
    Exact,
    env_config,
    server_config,
    until,
)

pytestmark = pytest.mark.slow


SETTINGS = {"ensure_scores_are_not_same": False}
SAMPLING = Sampling(8, temperature=1.0, top_p=1.0, split="train")


@pytest.fixture(autouse=True)
def hurried(monkeypatch, tmp_path):
    rows = str(tmp_path / "rows.jsonl")
    monkeypatch.setitem(SETTINGS, "data_path_to_save_groups", rows)
    monkeypatch.setattr("rg_env.inference.server_health.PAUSE_S", 0.01)
    monkeypatch.setattr("rg_env.inference.server_health.MAX_PAUSE_S", 0.05)
    monkeypatch.setattr("rg_env.inference.servers.OUTAGE_CHECK_EVERY_S", 0.05)
    monkeypatch.setattr("rg_env.inference.servers.OUTAGE_AFTER_S", 0.1)


class Bare(ReasoningGymEnv):
    """An environment that always has the same question and starts no worker."""

    async def setup(self):
        """Watch, and do nothing else."""
        give_up = self.config.give_up_after_s if self.process_mode else None
        request = self._prompts.probe_request(self._kind)
        self._servers.start(request, give_up_after_s=give_up)

    async def get_next_item(self):
        return self._prompts.messages("2 + 2"), ENTRY_OF_FOUR, Exact()


def bare(url, kind="vllm", cls=Bare, **changes):
    server = server_config(url, kind, model_name=MODEL)
    env = cls(env_config(**SETTINGS | changes), [server])
    env.n_groups_to_process, env.group_size_to_process = 2, 4
    return env


async def ended(env, command="process_manager"):
    """Run a command; return the refusal or the exit status."""
    try:
        await getattr(env, command)()
    except SettingError as error:
        return str(error)
    except SystemExit as end:
        return end.code
    return 0


def end_at(odd, *, command="process_manager", **settings):
    """Run a command at an odd server; return its end, with U for the address."""

    async def run():
        async with serving(odd) as url:
            end = await ended(bare(url, **settings), command)
            return end.replace(url, "U") if isinstance(end, str) else end

    return asyncio.run(run())


# -- what the probe finds --------------------------------------------------------------


def test_serve_ends_at_a_server_that_cannot_train_and_names_its_routes():
    how = {"command": "env_manager", "rollout_server_url": NOWHERE.removesuffix("/v1")}
    end = end_at(with_changes("neither"), **how)
    assert end.startswith("openai.base_url: U/v1: cannot train: ")
    assert "/v1/completions: the reply has no token ids" in end
    assert "/generate: 404 Not Found" in end and end.endswith("; see docs/servers.md")


# -- what a server says ----------------------------------------------------------------


NO_MODEL = {"object": "error", "message": "The model `m` does not exist.", "code": 404}
REFUSED = {
    "no model": (404, NO_MODEL, "openai.model_name: "),
    "no reason": (400, "computer says no", "openai.base_url: "),
    "redirect": (
        301,
        "/there",
        "openai.base_url: U/v1 says 301, it redirects to /there",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_refusal_that_a_retry_cannot_fix_ends_the_command(case, logged):
    status, body, begin = REFUSED[case]
    odd = Odd({"GET /v1/models": {"data": [{"id": "other"}]}}, otherwise=(status, body))
    end = end_at(odd)
    assert end.startswith(begin) and "U/v1" in end and str(status) in end
    assert "does not answer" not in logged.text


@pytest.mark.parametrize("headers", [{}, {"Retry-After": "3600"}])
def test_a_temporary_error_is_retried_until_the_time_limit(headers, logged):
    odd = Odd({}, otherwise=(429, refusal("no quota left"), headers))
    assert end_at(odd, kind="openai", give_up_after_s=0.3) == 1
    assert "answers with an error" in logged.text and "no quota left" in logged.text


def test_a_refusal_after_the_probe_ends_the_command():
    def reply(body):
        is_probe = body["max_tokens"] < 100
        return chat(body) if is_probe else (400, refusal("maximum context length"))

    end = end_at(openai_endpoint(reply), kind="openai")
    assert end.startswith("env.max_token_length: U/v1 says 400 maximum con")


def test_after_the_first_completion_a_refusal_is_counted_and_logged(logged):
    left = [chat, chat]  # to the probe, and to a group

    def reply(body):
        return left.pop()(body) if left else (404, NO_MODEL)

    odd = openai_endpoint(reply, "another")
    env = None

    class Scored(Bare):
        async def score(self, rollouts):
            return None

    async def run():
        nonlocal env
        async with serving(odd) as url:
            settings = {"kind": "openai", "give_up_after_s": 0.3, "cls": Scored}
            env = bare(url, max_num_workers=1, **settings)
            return await ended(env)

    assert asyncio.run(run()) == 1
    assert env._servers.failures_by_kind["status_404"] > 0
    assert "does not exist" in logged.text


# -- servers that come later -----------------------------------------------------------


def test_a_missing_server_is_logged_once_with_the_time_limit(logged):
    end = asyncio.run(ended(bare(NOWHERE, give_up_after_s=0.4)))
    lines = [r for r in logged.records if NOWHERE in r.getMessage()]
    assert end == 1 and lines[0].levelno == logging.WARNING
    assert "nothing listens there" in lines[0].getMessage()
    assert "env.give_up_after_s" in lines[0].getMessage()
    assert logged.text.count("start the server or set") == 1


async def test_a_server_that_hangs_is_given_up_in_time(logged):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = "http://{}:{}".format(*silent.getsockname())
        env = bare(url, kind="openai", give_up_after_s=0.4)
        assert await asyncio.wait_for(ended(env), 30) == 1
    assert "accepts the connection but does not reply" in logged.text


async def test_a_request_waits_for_a_server_that_is_ejected(monkeypatch):
    client, checks = Client(server_config(NOWHERE)), iter([False, False, True])

    async def complete(*_):
        return [Completion("", [1], None, "stop")]

    monkeypatch.setattr(Client, "server_healthy", property(lambda _: next(checks)))
    monkeypatch.setattr(client, "complete", complete)
    assert await Servers([client], None).generate([], 1, SAMPLING)
    assert next(checks, None) is None


# -- outages ---------------------------------------------------------------------------


async def test_an_outage_is_logged_once_and_an_answer_ends_it(logged):
    odd = openai_endpoint(lambda body: (500, "out of memory"))
    prompt = Prompt([{"role": "user", "content": "2 + 2"}], [5], False)
    async with serving(odd) as url:
        env = bare(url, kind="openai", give_up_after_s=60)
        servers = env._servers
        await env.setup()
        asking = [servers.generate(prompt, 1, SAMPLING) for _ in range(3)]
        answers = asyncio.gather(*asking)
        await until(lambda: "3 requests wait" in logged.text, "it is told")
        assert servers.is_down
        odd.replies["POST /v1/chat/completions"] = chat
        await answers
        assert not servers.is_down
        await env.close()
    assert logged.text.count("answers with an error (500 out of memory)") == 1
    assert logged.text.count("inference answers after") == 1
