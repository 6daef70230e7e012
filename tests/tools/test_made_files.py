"""Files that a tool writes are what it writes today."""

import pytest

from tools.make_pages import FILES


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_file_is_what_its_tool_writes(path):
    made = FILES[path]()
    assert path.read_text(encoding="utf-8") == made, "run python -m tools.make_pages"
