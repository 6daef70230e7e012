"""The pool that all tests share, in the place of the one of this process."""

import pytest

from rg_env.library import installed_library as pool_module


@pytest.fixture(autouse=True)
def own_pool(request, monkeypatch):
    if "pool" in request.fixturenames:
        pool = request.getfixturevalue("pool")
        monkeypatch.setattr(pool_module, "_pools", {(): pool})
