"""Types of settings: what they take, and what they refuse."""

from __future__ import annotations

import pytest

from rg_env.atropos.setting_checks import check_url


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
    assert check_url(text) == text


@pytest.mark.parametrize(
    "text",
    [
        *("", "9004", "localhost:9004", "http:/localhost:9004", "//localhost:9004/v1"),
        *("ftp://localhost:9004", " http://a:1 ", "http://a b", "http://", "http://.."),
        *("http://-a", "http://17", "http://a:99999", "http://a:0", "http://a:"),
        *("http://localhost:9004v1", "http://[::1", "http://a/v1?x=1", "http://a/v1#x"),
        *("http://a/v1,http://b/v1", "http:\\\\a", "http://\udcff"),
        "http://me:secret@host/v1",
    ],
)
def test_what_is_no_address_is_refused_without_a_password(text: str) -> None:
    with pytest.raises(ValueError, match="allowed is an address like") as refused:
        check_url(text)
    assert "secret" not in str(refused.value)
