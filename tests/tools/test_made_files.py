"""Files that a tool writes are what it writes today."""

from pathlib import Path

import pytest

from rg_env.tasks import library
from rg_env.tasks.library_import import TASK_LIST
from tools import (
    make_scoring_page,
    make_settings_page,
    make_strategies_page,
    make_task_list,
)

MADE = {
    "make_scoring_page": (make_scoring_page.PAGE, make_scoring_page.page),
    "make_settings_page": (make_settings_page.PAGE, make_settings_page.page),
    "make_strategies_page": (make_strategies_page.PAGE, make_strategies_page.page),
    "make_task_list": (
        Path(TASK_LIST),
        lambda: make_task_list.list_text(library.describe()),
    ),
}


@pytest.mark.parametrize("tool", MADE)
def test_the_file_is_what_its_tool_writes(tool):
    path, text = MADE[tool]
    assert path.read_text(encoding="utf-8") == text(), f"run python -m tools.{tool}"
