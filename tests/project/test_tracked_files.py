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


def tracked(root: Path) -> list[Path]:
    """Return the files that git keeps, of whatever copy there is."""
    listing = subprocess.run(
        ["git", "ls-files", "-z"], cwd=root, capture_output=True, text=True
    )
    return [root / name for name in listing.stdout.split("\0") if name]


def out_of_place(files: list[Path]) -> list[str]:
    """Return the archives, what was built, and what is too large for no picture."""
    return [
        path.name
        for path in files
        if path.is_file()
        and (
            path.suffix in BUILT
            or (path.stat().st_size > MAX_BYTES and path.suffix not in PICTURES)
        )
    ]


def test_no_archive_nothing_built_and_no_large_file_is_tracked() -> None:
    files = tracked(ROOT)
    if not files:
        pytest.skip("this copy is no git checkout")
    assert out_of_place(files) == []


def test_an_archive_a_wheel_and_a_large_file_would_be_found(tmp_path: Path) -> None:
    made = {
        "a-1.0.tar.gz": 1,
        "b-1.0-py3-none-any.whl": 1,
        "c.json": MAX_BYTES + 1,
        "d.json": MAX_BYTES,
        "e.png": MAX_BYTES + 1,
    }
    for name, size in made.items():
        (tmp_path / name).write_bytes(bytes(size))
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    subprocess.run(["git", "add", "."], cwd=tmp_path, check=True)
    assert sorted(out_of_place(tracked(tmp_path))) == sorted(list(made)[:3])
