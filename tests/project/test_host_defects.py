"""docs/host_defects.md: every mend is named where it is, and has a test that exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "host_defects.md"
SOURCES = [ROOT / "reasoning_gym_environment.py", *(ROOT / "rg_env").rglob("*.py")]
TESTS = "\n".join(p.read_text(encoding="utf-8") for p in (ROOT / "tests").rglob("*.py"))

ROWS = {
    cells[0].strip(): (re.findall(r"`([\w/.]+\.py)`", cells[2]), cells[3])
    for cells in (
        line.strip().strip("|").split("|")
        for line in PAGE.read_text(encoding="utf-8").splitlines()
        if line.startswith("| B")
    )
}
"""Defect to the modules that mend it and the cell of its tests."""


def mended_in(source: str) -> set[str]:
    """Return the defects that a module says it mends."""
    sentences = re.findall(r"Mends ([^:.]*?) of\s+docs/host_defects\.md", source)
    return {name for sentence in sentences for name in re.findall(r"B\d+", sentence)}


def test_the_defects_are_numbered_without_a_gap() -> None:
    assert list(ROWS) == [f"B{n}" for n in range(1, len(ROWS) + 1)]


@pytest.mark.parametrize("defect", ROWS)
def test_a_mend_is_where_the_page_says_and_has_its_test(defect: str) -> None:
    modules, tests = ROWS[defect]
    named = re.findall(r"`(test_\w+)`", tests)
    assert modules and named
    assert [m for m in modules if not (ROOT / m).is_file()] == []
    assert [name for name in named if f"def {name}(" not in TESTS] == []


def test_every_mend_that_a_module_names_is_on_the_page_with_that_module() -> None:
    for path in SOURCES:
        for defect in mended_in(path.read_text(encoding="utf-8")):
            assert str(path.relative_to(ROOT)) in ROWS[defect][0], (path, defect)


def test_every_defect_is_named_by_a_module() -> None:
    named = [mended_in(path.read_text(encoding="utf-8")) for path in SOURCES]
    assert set().union(*named) == set(ROWS)
