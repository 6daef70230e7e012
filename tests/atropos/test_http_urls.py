"""Addresses of servers, and what is meant by what is none."""

from __future__ import annotations

import pytest

from rg_env.atropos.http_urls import check_url


@pytest.mark.parametrize(
    "text",
    [
        "http://localhost:9004/v1",
        "https://api.example.com/v1",
        "HTTP://LOCALHOST:8000",
        "http://10.0.0.1:8000/",
        "http://[::1]:9004/v1",
        "http://node_7.cluster.:9000/a/b%20c",
        "http://münchen.example/v1",
    ],
)
def test_an_address_is_taken(text: str) -> None:
    check_url(text)


@pytest.mark.parametrize(
    ("text", "reason", "meant"),
    [
        ("notaurl", "begin with http", None),
        ("", "begin with http", None),
        ("9004", "begin with http", None),
        ("localhost:9004", "begin with http", "http://localhost:9004/v1"),
        ("localhost", "begin with http", "http://localhost/v1"),
        ("127.0.0.1:9004/v1", "begin with http", "http://127.0.0.1:9004/v1"),
        ("http:/localhost:9004", "begin with http", "http://localhost:9004/v1"),
        ("//localhost:9004/v1", "begin with http", "http://localhost:9004/v1"),
        ("htp://localhost:9004", "begins with htp", "http://localhost:9004/v1"),
        ("ftp://localhost:9004", "begins with ftp", None),
        (" http://a:1 ", "white space", "http://a:1/v1"),
        ("http://a b", "white space", None),
        ("http://", "empty host", None),
        ("http:///v1", "no valid name of a host", None),
        ("http://..", "no valid name of a host", None),
        ("http://-a", "no valid name of a host", None),
        ("http://17", "no valid name of a host", None),
        ("http://a:99999", "invalid port", None),
        ("http://a:0", "invalid port", None),
        ("http://a:", "invalid port", None),
        ("http://localhost:9004v1", "invalid port", None),
        ("http://[::1", "invalid IPv6", None),
        ("http://a/v1?x=1", "holds '?'", None),
        ("http://a/v1#x", "holds '#'", None),
        ("http://a/v1,http://b/v1", "holds ','", None),
        ("http:\\\\a", "begin with http", None),
        ("http://\udcff", "", None),
    ],
)
def test_what_is_no_address_is_refused_with_the_reason_and_what_was_meant(
    text: str, reason: str, meant: str | None
) -> None:
    with pytest.raises(ValueError, match="allowed is an address like") as refused:
        check_url(text, "/v1")
    said = str(refused.value)
    assert reason in said
    assert said.endswith(f"did you mean {meant!r}?" if meant else "http://HOST:PORT/v1")


def test_a_password_is_refused_and_not_repeated() -> None:
    with pytest.raises(ValueError, match="user or password") as refused:
        check_url("http://me:secret@host/v1")
    assert "secret" not in str(refused.value)
