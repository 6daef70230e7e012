"""Variables that would break the clients of servers are named before that."""

from __future__ import annotations

from pathlib import Path

import pytest

from rg_env.atropos.network_variables import check_network_variables
from rg_env.errors import SettingError


@pytest.mark.parametrize(
    "environ",
    [
        {},
        {"HTTP_PROXY": "", "SSL_CERT_FILE": ""},
        {"HTTP_PROXY": "http://me:secret@proxy:3128", "https_proxy": "proxy:3128"},
        {"ATROPOS_PROXY_URL": "http://localhost:9100"},
    ],
)
def test_usual_variables_are_taken(environ: dict[str, str]) -> None:
    check_network_variables(environ)


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("HTTP_PROXY", "ftp://proxy", "URL scheme should be"),
        ("https_proxy", "http://me:secret@proxy:99999", "invalid port"),
        ("ALL_PROXY", "http://", "empty host"),
        ("SSL_CERT_FILE", "/nowhere.pem", "No such file"),
        ("SSL_CERT_FILE", str(Path(__file__)), "no certificate"),
        ("ATROPOS_PROXY_URL", "localhost:9100", "did you mean 'http://localhost:9100'"),
    ],
)
def test_a_variable_that_cannot_be_used_is_named(
    name: str, value: str, reason: str
) -> None:
    with pytest.raises(SettingError, match=f"^{name}: ") as refused:
        check_network_variables({name: value})
    assert reason in str(refused.value)
    assert "secret" not in str(refused.value)
