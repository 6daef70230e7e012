"""What the tests of the environment share: a real API with a trainer, and haste."""

import pytest


@pytest.fixture
def api(api_url, tmp_path):
    from tests.support.real_api import RealApi

    real = RealApi(api_url, tmp_path)
    real.start_trainer()
    return real


@pytest.fixture
def impatient(monkeypatch):
    """Wait as for an API that is near: the waits are no part of what is specified."""
    from rg_env.atropos import api_client

    monkeypatch.setattr(api_client, "FIRST_PAUSE_S", 0.02)
    monkeypatch.setattr(api_client, "POLL_S", 0.05)
