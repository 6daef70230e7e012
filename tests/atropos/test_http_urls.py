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
    ("text", "meant"),
    [
        ("notaurl", "http://notaurl/v1"),
        ("", None),
        ("9004", None),
        ("localhost:9004", "http://localhost:9004/v1"),
        ("localhost", "http://localhost/v1"),
        ("127.0.0.1:9004/v1", "http://127.0.0.1:9004/v1"),
        ("http:/localhost:9004", "http://localhost:9004/v1"),
        ("//localhost:9004/v1", "http://localhost:9004/v1"),
        ("htp://localhost:9004", "http://localhost:9004/v1"),
        ("ftp://localhost:9004", "http://localhost:9004/v1"),
        (" http://a:1 ", "http://a:1/v1"),
        ("http://a b", None),
        ("http://", None),
        ("http:///a/v1", "http://a/v1"),
        ("http://..", None),
        ("http://-a", None),
        ("http://17", None),
        ("http://a:99999", None),
        ("http://a:0", None),
        ("http://a:", None),
        ("http://localhost:9004v1", None),
        ("http://[::1", None),
        ("http://a/v1?x=1", None),
        ("http://a/v1#x", None),
        ("http://a/v1,http://b/v1", None),
        ("http:\\\\a", None),
        ("http://\udcff", None),
    ],
)
def test_what_is_no_address_is_refused_with_what_was_meant(
    text: str, meant: str | None
) -> None:
    with pytest.raises(ValueError, match="allowed is an address like") as refused:
        check_url(text, "/v1")
    said = str(refused.value)
    assert said.endswith(f"did you mean {meant!r}?" if meant else "or a question")


def test_a_password_is_refused_and_not_repeated() -> None:
    with pytest.raises(ValueError, match="without a user") as refused:
        check_url("http://me:secret@host/v1")
    assert "secret" not in str(refused.value)
