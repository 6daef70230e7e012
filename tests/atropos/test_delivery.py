"""Groups on their way to the API: the same values on the wire, off the event loop."""

import asyncio
import contextlib
import threading

import pytest
from aiohttp import web

from rg_env.atropos import delivery
from rg_env.group_encoding import encode_groups
from tests.support.groups import group
from tests.support.parts import build_env
from tests.support.web_apps import serve_app

pytestmark = pytest.mark.slow


class Api:
    """A simulated API that forgets its environments when it is told to."""

    def __init__(self):
        self.paths = []
        self.groups = []
        self.env_id = 0

    def app(self):
        app = web.Application(client_max_size=2**26)
        app.router.add_route("*", "/{path:.*}", self.answer)
        return app

    async def answer(self, request):
        self.paths.append(request.path)
        body = await request.json() if request.can_read_body else {}
        if request.path == "/scored_data":
            self.groups.append(body)
        return web.json_response(
            {
                "env_weight": 1,
                "current_step": 0,
                "queue_size": 0,
                "unallocated_fraction": 1.0,
            }
        )


@contextlib.asynccontextmanager
async def connected(**changes):
    """Yield an API and an environment that is registered there."""
    api = Api()
    async with serve_app(api.app()) as url:
        env = build_env(rollout_server_url=url, **changes)
        env.env_id = 0
        try:
            yield api, env
        finally:
            await env.close()


async def sent(scored, meanwhile=lambda env: None):
    """Send a group; return what the API saw."""
    async with connected() as (api, env):
        meanwhile(env)
        await env._send_scored_data_to_api(scored)
        return api


async def test_a_group_is_sent_with_the_fields_the_api_knows_and_our_id():
    api = await sent({**group(text="x"), "task": "gcd", "answers": ["4"]})
    assert api.groups == [{**group(text="x"), "env_id": 0}]
    assert api.paths[:2] == ["/status-env", "/scored_data"]


async def test_a_group_encoded_before_we_were_registered_anew_is_sent_with_the_new_id():
    def registers_anew(env):
        read_status = env._session.read_status

        async def read_status_of_7():
            env.env_id = 7
            return await read_status()

        env._session.read_status = read_status_of_7

    api = await sent(group(text="x"), registers_anew)
    assert [g["env_id"] for g in api.groups] == [7]


@pytest.mark.parametrize(("tokens", "is_off"), [(10, False), (50_000, True)])
async def test_a_long_group_is_encoded_off_the_event_loop(tokens, is_off, monkeypatch):
    threads = []

    def watched(*args, **kwargs):
        threads.append(threading.current_thread())
        return encode_groups(*args, **kwargs)

    monkeypatch.setattr(delivery, "encode_groups", watched)
    api = await sent(group(tokens, text="x"))
    assert [t is not threading.main_thread() for t in threads] == [is_off]
    assert api.groups == [{**group(tokens, text="x"), "env_id": 0}]


def handled(scored):
    """Handle a group as a worker does; return what the API got and the environment."""

    async def run():
        async with connected(group_size=2) as (api, env):
            env.max_token_len = 100
            await env.handle_send_to_api(scored)
            return api, env

    return asyncio.run(run())


REJECTED = {
    "of another size": {**group(), "tokens": [[1]]},
    "of equal scores": {**group(), "scores": [1.0, 1.0]},
    "too long": group(tokens=100),
    "with a completion of no token": {**group(), "masks": [[-100, 1, 2], [-100] * 3]},
    "without tokens": {"scores": [0.0, 1.0], "masks": []},
}


@pytest.mark.parametrize("case", REJECTED)
def test_a_group_that_the_trainer_cannot_use_is_not_sent(case, logged):
    scored = {"tokens": [], **REJECTED[case]}
    api, env = handled(scored)
    assert api.groups == [] and env.items_sent_this_step == 0
    assert "a group is not sent" in logged.text


def test_overrides_of_none_do_not_lose_a_group():
    api, _ = handled({**group(text="x"), "group_overrides": None})
    assert len(api.groups) == 1


def test_a_group_with_a_size_of_its_own_is_measured_by_it():
    three = {**group(text="x", rows=3), "group_overrides": {"group_size": 3}}
    api, _ = handled(three)
    assert [len(g["tokens"]) for g in api.groups] == [3]


def test_of_several_groups_those_that_pass_are_sent_together():
    api, _ = handled([group(text="x"), None, REJECTED["too long"], group(text="y")])
    assert api.paths.count("/scored_data_list") == 1
