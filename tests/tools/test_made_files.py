"""Files that a tool writes are what it writes today."""

from pathlib import Path

import pytest

from rg_env.library import registry
from rg_env.library.registry import LIBRARY_TASKS
from tools import (
    make_library_tasks,
    make_scoring_page,
    make_settings_page,
    make_strategies_page,
)

MADE = {
    "make_scoring_page": (make_scoring_page.PAGE, make_scoring_page.page),
    "make_settings_page": (make_settings_page.PAGE, make_settings_page.page),
    "make_strategies_page": (make_strategies_page.PAGE, make_strategies_page.page),
    "make_library_tasks": (
        Path(LIBRARY_TASKS),
        lambda: make_library_tasks.list_text(registry.describe()),
    ),
}


@pytest.mark.parametrize("tool", MADE)
def test_the_file_is_what_its_tool_writes(tool):
    path, text = MADE[tool]
    assert path.read_text(encoding="utf-8") == text(), f"run python -m tools.{tool}"
