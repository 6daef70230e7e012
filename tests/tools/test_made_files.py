"""Files that a tool writes are what it writes today."""

import json

import pytest

from rg_env import Tasks
from tools.make_digests import RECORDED, recorded
from tools.make_pages import FILES


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_file_is_what_its_tool_writes(path):
    made = FILES[path]()
    assert path.read_text(encoding="utf-8") == made, "run python -m tools.make_pages"


@pytest.mark.slow
@pytest.mark.processes
def test_the_digest_of_the_default_evaluation_is_the_recorded_one():
    sets = json.loads(RECORDED.read_text())["sets"]
    assert recorded(Tasks(), "default") == sets["default"]
