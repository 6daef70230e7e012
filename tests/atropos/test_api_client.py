"""The API over HTTP: errors and patience, what answers in its place, the trainer."""

import asyncio

import pytest

from rg_env.atropos import api_client
from rg_env.atropos.api_client import ApiError, ApiSession
from rg_env.errors import SettingError
from tests.support.odd_servers import HTML, Odd, serving, stock_vllm
from tests.support.real_api import RealApi, registered

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def hurried(monkeypatch):
    monkeypatch.setattr(api_client, "POLL_S", 0.02)
    monkeypatch.setattr(api_client, "FIRST_PAUSE_S", 0.02)


def with_session(odd, work):
    """Do work with a session at an odd server; an address in an error becomes U."""

    async def run():
        async with serving(odd) as url:
            session = ApiSession(url)
            try:
                return await work(session)
            except (ApiError, SettingError) as error:
                raise type(error)(str(error).replace(url, "U")) from error
            finally:
                await session.leave()

    return asyncio.run(run())


def replying(*replies, then=(200, {"a": 1})):
    """Return a server of replies in turn."""
    left = list(replies)
    return Odd({"GET /x": lambda body: left.pop(0) if left else then})


def x(session):
    return session.request("GET", "/x", needs=("a",))


@pytest.mark.parametrize(
    ("reply", "is_fault", "is_refusal"),
    [
        ((500, "why"), True, False),
        ((422, "why"), False, True),
        ((301, "https://t.example/"), False, True),
        ((200, "<html>"), False, False),
        ((200, {"b": 1}), False, False),
    ],
)
def test_what_an_error_says_of_a_request(reply, is_fault, is_refusal):
    async def work(session):
        with pytest.raises(ApiError, match="GET /x: ") as caught:
            await x(session)
        return caught.value

    error = with_session(replying(reply), work)
    assert (error.is_fault, error.is_refusal) == (is_fault, is_refusal)


def test_a_failing_api_is_queried_again_and_its_recovery_is_logged_once(logged):
    odd = replying((500, ""), (404, ""), (200, "<html>"))
    work = lambda session: session.retry(lambda: x(session))  # noqa: E731
    assert with_session(odd, work) == {"a": 1}
    down, again = logged.messages
    assert "status 500" in down and "again" in again


async def test_a_secret_in_the_address_is_not_repeated():
    session = ApiSession("http://127.0.0.1:9/s3cret-s3cret/")
    assert session.name == "http://127.0.0.1:9/..."
    words = str(session._error(f"no page {session.url}/batch"))
    assert words == "no page http://127.0.0.1:9/.../batch"
    await session.leave()


# -- what answers in the place of the API ----------------------------------------------


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (stock_vllm(), "status 404: Not Found"),
        (Odd({}, otherwise=(200, HTML)), "not a reply of the Atropos API: a web page"),
        (Odd({}, otherwise=(301, "/v1")), "status 301: /v1"),
    ],
)
def test_another_program_is_refused_in_its_own_words(other, words):
    with pytest.raises(SettingError) as refused:
        with_session(other, ApiSession.find)
    what = "env.rollout_server_url: what is at U is not the Atropos API"
    assert str(refused.value).startswith(f"{what} (GET /: {words})")


async def test_an_address_without_a_host_is_refused():
    session = ApiSession("http://nowhere.invalid")
    with pytest.raises(SettingError, match="rollout_server_url"):
        await session.find()
    await session.leave()


@pytest.mark.parametrize("before", [(429, ""), (503, HTML)])
def test_what_fails_now_or_finds_the_api_later_is_waited_for(before):
    left = [{"message": "AtroposLib API"}, before, before]
    with_session(Odd({"GET /": lambda body: left.pop()}), ApiSession.find)
    assert left == []


async def test_an_api_that_is_not_there_is_waited_for_and_said_once(logged):
    session = ApiSession("http://127.0.0.1:9")
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(session.find(), 0.3)
    await session.leave()
    assert session.retries > 1
    (line,) = logged.messages
    assert "http://127.0.0.1:9 does not answer" in line and "run-api" in line


# -- what the trainer asks for ---------------------------------------------------------


@pytest.mark.processes
async def test_the_trainers_batch_limit_and_steps_are_taken_over(api_url):
    RealApi(api_url).start_trainer(512, batch_size=16)
    async with registered(api_url, total_steps=-1, wandb_name=None) as env:
        assert (env.config.batch_size, env.max_token_len) == (16, 512)
        assert env.config.total_steps == 10**6
        assert env.wandb_prepend == "reasoning_gym_0"


@pytest.mark.processes
async def test_a_group_that_does_not_fit_the_batch_is_refused(api_url):
    RealApi(api_url).start_trainer(512, batch_size=4)
    with pytest.raises(SettingError, match=r"env\.group_size: 8 .* batch of 4"):
        await registered(api_url, group_size=8).__aenter__()
