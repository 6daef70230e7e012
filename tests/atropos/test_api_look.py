"""What answers in the place of the Atropos API is told from an API that may come."""

import asyncio
import re

import pytest
from odd_servers import (
    Odd,
    atropos_api,
    hanging,
    moved,
    openai_endpoint,
    serving,
    sglang,
    stock_vllm,
    web_page,
)
from parts import NOWHERE

from rg_env import patience
from rg_env.atropos.api_client import ApiClient
from rg_env.atropos.api_look import refuse_another_program
from rg_env.atropos.api_session import ApiSession
from rg_env.errors import SettingError

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def hurried(monkeypatch):
    monkeypatch.setattr(patience, "API_POLL_S", 0.02)
    monkeypatch.setattr(patience, "API_FIRST_PAUSE_S", 0.02)
    monkeypatch.setattr(patience, "LOOK_TIMEOUT_S", 0.3)


async def register(url):
    client = ApiClient(url)
    try:
        return await ApiSession(client).register(
            name="n",
            weight=1.0,
            group_size=4,
            max_token_length=9,
            min_batch_allocation=None,
        )
    finally:
        await client.close()


def refused(odd, path="", asking=register):
    """Ask what is at an odd server; return the sentence, the address as U."""

    async def run():
        async with serving(odd) as url:
            with pytest.raises(SettingError) as error:
                await asking(url + path)
            return str(error.value).replace(url, "U")

    return asyncio.run(run())


OTHERS = {
    "stock vLLM 0.32.0": stock_vllm,
    "SGLang": sglang,
    "an endpoint of the OpenAI kind": openai_endpoint,
    "an ordinary web page": web_page,
}


@pytest.mark.parametrize("words", OTHERS)
def test_another_program_is_refused_by_its_name(words):
    said = refused(OTHERS[words]())
    begin = f"env.rollout_server_url: what is at U is {words}, not the Atropos API;"
    assert said.startswith(begin)


def test_a_program_that_is_not_known_is_refused_with_its_status():
    assert "answers with 404 at /, not the Atropos API" in refused(Odd({}))


def test_an_address_that_leads_elsewhere_is_refused_with_where():
    assert "leads elsewhere (301, to https://t.example/)" in refused(
        moved("https://t.example/"), asking=refuse_another_program
    )


def test_a_wrong_path_is_refused_with_the_right_address():
    assert refused(atropos_api(), "/v1").endswith("is not at U/v1; write U")


@pytest.mark.parametrize("status", [429, 500, 502, 503])
def test_what_fails_now_is_waited_for(status):
    async def run():
        async with serving(Odd({}, otherwise=(status, "later"))) as url:
            await refuse_another_program(url)

    asyncio.run(run())


def test_what_is_not_there_is_waited_for():
    asyncio.run(refuse_another_program(NOWHERE.removesuffix("/v1")))


def test_a_proxy_that_finds_the_api_later_is_waited_for():
    odd = atropos_api()
    right, left = odd.replies["GET /"], [404]

    async def run():
        async with serving(odd) as url:
            odd.replies["GET /"] = lambda body: (left.pop(), "") if left else right
            await refuse_another_program(url)

    asyncio.run(run())
    assert left == []


def test_an_api_that_hangs_is_said_to(logged):
    async def run():
        async with hanging() as url:
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(register(url), 1.0)

    asyncio.run(run())
    (line,) = [r.getMessage() for r in logged.records]
    assert re.search(r"Atropos API at \S+ does not answer \(it takes the conn", line)
