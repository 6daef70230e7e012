"""Which application is served, and what is said where the quick one cannot be."""

import logging

import pytest
from atroposlib.api import app
from fastapi import FastAPI

from rg_env.atropos import run_api as api


@pytest.mark.parametrize("is_quick", [True, False])
def test_the_frameworks_application_is_served_where_it_is_asked_for(is_quick):
    assert (api.application(is_quick=is_quick) is app) is not is_quick


def test_another_api_is_served_as_it_is_and_the_log_says_so(monkeypatch, caplog):
    other = FastAPI()
    other.mount("/other", FastAPI())
    monkeypatch.setattr("atroposlib.api.app", other)
    with caplog.at_level(logging.WARNING):
        assert api.application() is other
    assert "served as it is" in caplog.text
