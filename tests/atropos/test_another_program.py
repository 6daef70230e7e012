"""What answers in the place of the Atropos API is told from an API that may come."""

import asyncio
import re

import pytest

from rg_env import patience
from rg_env.atropos.api_client import ApiClient
from rg_env.atropos.api_session import ApiSession, refuse_another_program
from rg_env.errors import SettingError
from tests.support.odd_servers import (
    Odd,
    atropos_api,
    hanging,
    moved,
    serving,
    stock_vllm,
    web_page,
)
from tests.support.parts import NOWHERE, until

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def hurried(monkeypatch):
    monkeypatch.setattr(patience, "API_POLL_S", 0.02)
    monkeypatch.setattr(patience, "API_FIRST_PAUSE_S", 0.02)
    monkeypatch.setattr(patience, "PROBE_SILENT_AFTER_S", 0.3)


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


def refused(odd):
    """Register at an odd server; return the sentence, the address as U."""

    async def run():
        async with serving(odd) as url:
            with pytest.raises(SettingError) as error:
                await register(url)
            return str(error.value).replace(url, "U")

    return asyncio.run(run())


OTHERS = {
    "a stock vLLM": (stock_vllm, "404 Not Found"),
    "a web page": (web_page, "200 Welcome"),
    "what is not known": (lambda: Odd({}), "404 Not Found"),
    "a place that leads elsewhere": (
        lambda: moved("https://t.example/"),
        "301 leads to https://t.example/",
    ),
}


@pytest.mark.parametrize("case", OTHERS)
def test_another_program_is_refused_in_its_own_words(case):
    odd, words = OTHERS[case]
    begin = f"env.rollout_server_url: what is at U/ answers {words}: not the Atropos"
    assert refused(odd()).startswith(begin)


@pytest.mark.parametrize("status", [429, 500, 502, 503])
def test_what_fails_now_is_waited_for(status):
    async def run():
        async with serving(Odd({}, otherwise=(status, "later"))) as url:
            await refuse_another_program(ApiClient(url))

    asyncio.run(run())


def test_what_is_not_there_is_waited_for():
    asyncio.run(refuse_another_program(ApiClient(NOWHERE.removesuffix("/v1"))))


def test_a_proxy_that_finds_the_api_later_is_waited_for():
    odd = atropos_api()
    right, left = odd.replies["GET /"], [404]

    async def run():
        async with serving(odd) as url:
            odd.replies["GET /"] = lambda body: (left.pop(), "") if left else right
            await refuse_another_program(ApiClient(url))

    asyncio.run(run())
    assert left == []


def test_an_api_that_hangs_is_said_to(logged):
    async def run():
        async with hanging() as url:
            registering = asyncio.create_task(register(url))
            await until(lambda: logged.records, "it is said")
            registering.cancel()
            await asyncio.wait([registering])

    asyncio.run(run())
    (line,) = [r.getMessage() for r in logged.records]
    assert re.search(r"Atropos API at \S+ does not answer \(it accepts the conn", line)
