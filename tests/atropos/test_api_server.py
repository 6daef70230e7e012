"""Every reply of the faster application is that of the framework's own."""

import json

import pytest
from atroposlib.api import server
from fastapi.testclient import TestClient
from starlette.datastructures import State

from rg_env.atropos.api_server import faster_application
from tests.support.real_api import ENVIRONMENT, SIZE, TRAINER

GROUP = {
    "tokens": [[1, 2], [3, 4, 5]],
    "masks": [[-100, 2], [-100, -100, 5]],
    "scores": [0.1, 1 / 3],
    "inference_logprobs": [[0.0, -1e-07], [0.0, 0.0, -2.5]],
    "overrides": [{}, {"set_advantage_to_zero": True}],
    "messages": [[{"role": "user", "content": "\u00e9\u2211\U0001f600 <&>"}], []],
    "env_id": 0,
}


def replies(name, requests, monkeypatch):
    """Return what an application replies to requests, one after the other."""
    monkeypatch.setattr(server.app, "state", State())
    monkeypatch.setattr(server.uuid, "uuid4", lambda: server.uuid.UUID(int=7))
    served = server.app if name == "stock" else faster_application(server.app)
    client = TestClient(served, raise_server_exceptions=False)
    found = []
    for method, path, body in requests:
        kwargs = {"json": body} if not isinstance(body, (bytes, type(None))) else {}
        if isinstance(body, bytes):
            kwargs = {"content": body, "headers": {"content-type": "application/json"}}
        found.append(client.request(method, path, **kwargs))
    return found


def what_counts(reply):
    """Return status, headers and the decoded body of a reply."""
    # A 500 of the framework's comes from outside of its middleware, without a Vary.
    without = ("content-length", "vary" if reply.status_code == 500 else "")
    headers = {k: v for k, v in reply.headers.items() if k not in without}
    is_json = headers.get("content-type") == "application/json"
    return reply.status_code, headers, reply.json() if is_json else reply.text


def raw(**changed):
    """Return a group as JSON in which Python writes NaN and Infinity as they are."""
    return json.dumps({**GROUP, **changed}).encode()


STARTED = [
    ("POST", "/register", {**TRAINER, "batch_size": 2 * SIZE}),
    ("GET", "/batch", None),
]
WITH_ENVIRONMENT = [*STARTED, ("POST", "/register-env", ENVIRONMENT)]
SENT = [*WITH_ENVIRONMENT, ("POST", "/scored_data", GROUP)]
STATUS_PAGES = [
    ("GET", path, None)
    for path in ("/", "/status", "/info", "/wandb_info", "/latest_example", "/batch")
]
ODD = {
    "not a number": raw(scores=[float("nan"), 1.0]),
    "more than a float": raw().replace(b"0.1", b"1e999"),
    "a word for infinity": raw(scores=["inf", 1.0]),
    "a lone surrogate": raw(messages=[[{"role": "user", "content": "\ud800"}], []]),
    "the word NaN": raw(messages=[[{"role": "user", "content": "NaN"}], []]),
    "a missing field": json.dumps({"tokens": [[1]]}).encode(),
    "no JSON": b"{",
    "nesting": b"[" * 100_000,
    "bytes that are no text": b'"\xff"',
}
CONVERSATIONS = {
    "before a trainer": STATUS_PAGES,
    "a batch": [*SENT, ("POST", "/scored_data", GROUP), *STATUS_PAGES, *STATUS_PAGES],
    "a list of groups": [
        *WITH_ENVIRONMENT,
        ("POST", "/scored_data_list", [GROUP, GROUP]),
        *STATUS_PAGES,
    ],
    "what an environment asks": [
        *SENT,
        ("GET", "/status-env", {"env_id": 0}),
        ("GET", "/status-env", {"env_id": 9}),
        ("POST", "/disconnect-env", {"env_id": 0}),
        ("POST", "/disconnect-env", {"env_id": 9}),
        ("GET", "/status-env", {"env_id": 0}),
    ],
    "a minimum of each batch": [
        *STARTED,
        ("POST", "/register-env", {**ENVIRONMENT, "min_batch_allocation": 0.5}),
        *[("POST", "/scored_data", GROUP)] * 3,
        ("GET", "/status-env", {"env_id": 0}),
        *STATUS_PAGES,
    ],
    "a reset": [*SENT, ("GET", "/reset_data", None), *STATUS_PAGES],
    "no such page": [("GET", "/nope", None), ("DELETE", "/batch", None)],
    **{
        f"odd: {what}": [
            *WITH_ENVIRONMENT,
            ("POST", "/scored_data", body),
            ("POST", "/scored_data", body),
            ("POST", "/scored_data_list", b"[" + body + b"]"),
            *STATUS_PAGES,
        ]
        for what, body in ODD.items()
    },
}


@pytest.mark.slow
@pytest.mark.parametrize("requests", CONVERSATIONS.values(), ids=CONVERSATIONS)
def test_every_reply_is_that_of_the_frameworks_application(requests, monkeypatch):
    stock = replies("stock", requests, monkeypatch)
    quick = replies("quick", requests, monkeypatch)
    assert [what_counts(r) for r in quick] == [what_counts(r) for r in stock]


def test_no_number_is_walked_over_by_the_slow_encoder(monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("the slow encoder was asked")

    monkeypatch.setattr("fastapi.routing.jsonable_encoder", refuse)
    found = replies("quick", [*SENT, *SENT[3:], ("GET", "/batch", None)], monkeypatch)
    assert [reply.status_code for reply in found] == [200] * len(found)
