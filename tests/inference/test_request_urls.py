"""A route is below the address that the user wrote."""

import pytest

from rg_env.inference.connection import url_of

CHAT, GENERATE = "/v1/chat/completions", "/generate"


@pytest.mark.parametrize(
    ("base", "path", "is_openai", "url"),
    [
        ("http://h/v1", CHAT, True, "http://h/v1/chat/completions"),
        ("http://h/v1/", CHAT, True, "http://h/v1/chat/completions"),
        ("http://h/gate/v1", GENERATE, True, "http://h/gate/generate"),
        ("http://h", CHAT, True, "http://h/chat/completions"),
        ("http://h/api/v3", CHAT, True, "http://h/api/v3/chat/completions"),
        ("http://h/v1", CHAT, False, "http://h/v1/chat/completions"),
        ("http://h", CHAT, False, "http://h/v1/chat/completions"),
        ("http://h/v1", GENERATE, False, "http://h/generate"),
        ("http://h/v1/v1", CHAT, True, "http://h/v1/chat/completions"),
        ("http://h/v1/chat/completions", CHAT, True, "http://h/v1/chat/completions"),
        ("http://h/v1/completions/", GENERATE, False, "http://h/generate"),
        ("http://h/v1beta", CHAT, True, "http://h/v1beta/chat/completions"),
    ],
)
def test_a_route_is_below_the_url_of_the_settings(base, path, is_openai, url):
    assert url_of(base, path, is_openai=is_openai) == url
