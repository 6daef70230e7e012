"""A look at a server tells what it is, and generates nothing."""

import asyncio
import json

import pytest
from odd_servers import (
    MODEL,
    Odd,
    atropos_api,
    atropos_vllm,
    chat,
    hanging,
    moved,
    openai_endpoint,
    refusal,
    serving,
    serving_tls,
    sglang,
    stock_vllm,
    trl,
    web_page,
)
from parts import NOWHERE

from rg_env import patience
from rg_env.errors import SettingError
from rg_env.inference.connection_faults import REFUSED, SILENT
from rg_env.inference.reply_reasons import read_refusal
from rg_env.inference.server_look import (
    KIND_PAGES,
    NotThere,
    Page,
    ServerLook,
    kind_of_server,
)
from rg_env.simulation.inference_server import VERSION

pytestmark = pytest.mark.slow

KEY = "sk-right-key"


@pytest.fixture(autouse=True)
def hurried(monkeypatch):
    monkeypatch.setattr(patience, "LOOK_TIMEOUT_S", 1.0)


def look_of(url, kind="vllm", *, key=KEY, model=MODEL, trains=False):
    return ServerLook(url, kind, model, key, trains)


async def seen(url, kind="vllm", **changes):
    """Look; return the sentence, or None where all is well."""
    try:
        await look_of(url, kind, **changes).check()
    except SettingError as error:
        return str(error)
    return None


def looked(odd, kind="vllm", path="/v1", **changes):
    """Look at an odd server; return the sentence with its address as U."""

    async def run():
        async with serving(odd) as url:
            said = await seen(url + path, kind, **changes)
            return said and said.replace(url, "U")

    return asyncio.run(run())


# -- servers of the type that is set ---------------------------------------------------

SUCH_SERVERS = {
    "vllm": atropos_vllm,
    "sglang": sglang,
    "trl": trl,
    "openai": openai_endpoint,
}


@pytest.mark.parametrize("kind", SUCH_SERVERS)
def test_a_server_of_the_type_is_not_refused_and_not_asked_for_anything(kind):
    odd = SUCH_SERVERS[kind]()
    assert looked(odd, kind, "" if kind == "trl" else "/v1") is None
    assert {asked.split()[0] for asked in odd.asked} == {"GET"}


@pytest.mark.parametrize("odd", [stock_vllm, sglang, openai_endpoint])
def test_whatever_has_chat_completions_is_of_type_openai(odd):
    assert looked(odd(), "openai") is None


def test_a_server_without_a_list_of_models_is_not_refused():
    assert looked(Odd({"POST /v1/chat/completions": chat}), "openai") is None


def test_a_server_that_answers_get_with_404_where_it_has_a_route_is_not_refused():
    missing = (404, "404 page not found")
    pages = {"POST /v1/chat/completions": chat, "GET /v1/chat/completions": missing}
    odd = Odd(pages, otherwise=missing)
    assert looked(odd, "openai") is None
    assert odd.bodies == [{}]


def test_a_key_that_may_not_list_the_models_may_yet_use_them():
    odd = openai_endpoint()
    odd.replies["GET /v1/models"] = (403, refusal("Missing scopes: api.model.read"))
    assert looked(odd, "openai") is None


@pytest.mark.parametrize("status", [429, 500, 502, 503])
def test_a_server_that_fails_now_is_not_refused(status):
    assert looked(Odd({}, otherwise=(status, "later"))) is None


def test_the_simulated_server_is_named_so_and_no_vllm():
    page = Page(200, json.dumps({"version": VERSION}))
    none = dict.fromkeys(KIND_PAGES, Page(404))
    found = kind_of_server({**none, "/version": page})
    assert found.words == "the simulated server"


# -- servers of another type -----------------------------------------------------------

OF_ANOTHER_TYPE = [
    ("sglang", stock_vllm, "stock vLLM 0.32.0; use --openai.server_type openai"),
    ("trl", stock_vllm, "stock vLLM 0.32.0; use --openai.server_type openai"),
    ("vllm", sglang, "SGLang; use --openai.server_type sglang"),
    ("trl", sglang, "SGLang; use --openai.server_type sglang"),
    ("vllm", openai_endpoint, "OpenAI kind; use --openai.server_type openai"),
    ("sglang", atropos_vllm, "vLLM server of Atropos; use --openai.server_type vllm"),
    ("openai", atropos_vllm, "vLLM server of Atropos; use --openai.server_type vllm"),
    ("vllm", trl, "the server of TRL; use --openai.server_type trl"),
    ("openai", trl, "the server of TRL; use --openai.server_type trl"),
]


@pytest.mark.parametrize(("kind", "odd", "end"), OF_ANOTHER_TYPE)
def test_a_server_of_another_type_is_refused_with_the_type_that_fits(kind, odd, end):
    said = looked(odd(), kind)
    assert said.startswith("openai.server_type: ") and said.endswith(end)
    assert repr(kind) in said


@pytest.mark.parametrize("trains", [False, True])
def test_a_stock_vllm_is_of_type_vllm_as_well(trains):
    assert looked(stock_vllm(), "vllm", trains=trains) is None


def test_an_endpoint_is_left_to_the_look_for_token_ids_where_it_is_to_train():
    assert looked(openai_endpoint(), "vllm", trains=True) is None


@pytest.mark.parametrize("kind", SUCH_SERVERS)
@pytest.mark.parametrize(
    ("odd", "words"),
    [
        (web_page, "an ordinary web page"),
        (atropos_api, "the Atropos API (env.rollout_server_url)"),
    ],
)
def test_what_is_no_inference_server_is_refused(odd, words, kind):
    said = looked(odd(), kind)
    assert said.startswith(f"openai.base_url: at U/v1 is {words}, no inference server")


def test_what_is_not_known_is_refused_without_a_guess():
    said = looked(Odd({}))
    assert said.startswith("openai.base_url: U/v1 has no /generate (404)")


def test_an_address_that_leads_elsewhere_is_refused_with_where():
    said = looked(moved("https://there.example/v1"))
    assert "leads elsewhere (301, to https://there.example/v1)" in said


@pytest.mark.parametrize("path", ["", "/v1/v1", "/v1/chat/completions", "/api"])
def test_a_wrong_path_is_refused_with_the_right_one(path):
    assert looked(stock_vllm(), "openai", path).endswith("(404); write U/v1")


def test_a_native_server_at_a_wrong_path_is_refused_with_the_right_one():
    assert looked(sglang(), "sglang", "/generate").endswith("(404); write U/v1")


# -- keys ------------------------------------------------------------------------------


def test_a_wrong_key_is_refused_before_anything_is_generated_and_not_printed():
    odd = openai_endpoint(key=KEY)
    said = looked(odd, "openai", key="sk-wrong-key")
    assert said.startswith("openai.api_key: U/v1 does not take the key (401: Incorrect")
    assert "sk-wrong-key" not in said and odd.bodies == []


def test_the_right_key_is_taken():
    assert looked(openai_endpoint(key=KEY), "openai") is None


# -- connections -----------------------------------------------------------------------


def test_tls_is_told_from_a_server_without_it():
    async def run():
        async with serving(stock_vllm()) as url:
            host = url.removeprefix("http://")
            return await seen(f"https://{host}/v1"), host

    said, host = asyncio.run(run())
    assert said.endswith(f"it does not speak TLS; write http://{host}/v1")


@pytest.mark.processes
def test_a_server_with_tls_is_told_from_one_without_and_its_certificate_is_seen():
    async def run():
        async with serving_tls(stock_vllm()) as host:
            return await seen(f"http://{host}/v1"), await seen(f"https://{host}/v1")

    plain, unknown = asyncio.run(run())
    assert "speaks TLS; write https://" in plain
    assert "certificate is not trusted" in unknown and "SSL_CERT_FILE" in unknown


def test_a_host_that_does_not_exist_is_said_to():
    said = asyncio.run(seen("http://no-such-host.invalid:9004/v1"))
    assert "there is no host of that name" in said and "'no-such-host.invalid'" in said


def test_a_server_that_is_not_there_is_waited_for():
    with pytest.raises(NotThere, match=REFUSED):
        asyncio.run(seen(NOWHERE))


def test_a_server_that_hangs_is_waited_for():
    async def run():
        async with hanging() as url:
            await seen(url)

    with pytest.raises(NotThere, match=SILENT):
        asyncio.run(run())


# -- models ----------------------------------------------------------------------------


def sentence_of_model(model, *names):
    async def run():
        async with serving(openai_endpoint(chat, *names)) as url:
            look = look_of(f"{url}/v1", "openai", model=model)
            return str(await look.why_model(read_refusal(404, "no such model")))

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("model", "names", "end"),
    [
        ("gpt-4.1-mni", ["gpt-4.1-mini", "gpt-4.1"], "did you mean 'gpt-4.1-mini'?"),
        ("x", ["the-only-one"], "did you mean 'the-only-one'?"),
        ("x", ["one", "two"], "it has: one, two"),
        ("x", list("abcdefghijk"), "it has: a, b, c, d, e, f, g, h, ..."),
        ("one", ["one"], "set a model that it has"),
    ],
)
def test_a_model_that_is_refused_is_told_with_those_that_are_there(model, names, end):
    said = sentence_of_model(model, *names)
    assert said.startswith("openai.model_name: ") and said.endswith(end)


def test_a_proxy_that_finds_the_host_is_left_to_find_it(monkeypatch):
    monkeypatch.setenv("http_proxy", NOWHERE)
    with pytest.raises(NotThere):
        asyncio.run(seen("http://no-such-host.invalid:9004/v1", "openai"))
