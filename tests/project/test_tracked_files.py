"""What the repository holds: sources and small tables, nothing that was built."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.processes

ROOT = Path(__file__).resolve().parents[2]
BUILT = (".whl", ".egg", ".so", ".pyc", ".zip", ".tar", ".gz", ".tgz", ".bz2", ".xz")
PICTURES = (".png", ".svg", ".gif")
MAX_BYTES = 400_000


def test_no_archive_nothing_built_and_no_large_file_is_tracked() -> None:
    listing = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True
    )
    files = [ROOT / name for name in listing.stdout.split("\0") if name]
    if not files:
        pytest.skip("this copy is no git checkout")
    assert [path for path in files if path.suffix in BUILT] == []
    sources = [p for p in files if p.is_file() and p.suffix not in PICTURES]
    assert [path for path in sources if path.stat().st_size > MAX_BYTES] == []
