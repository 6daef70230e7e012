"""The pictures of the documents, and who takes them."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from tools import browser, make_pictures


@pytest.mark.parametrize("name", make_pictures.PICTURES)
def test_a_picture_has_the_size_that_is_taken(name: str) -> None:
    picture = (make_pictures.PROJECT / "docs" / name).read_bytes()
    size = struct.unpack(">II", picture[16:24])
    assert size == (make_pictures.WIDTH, make_pictures.PICTURES[name][1])


def test_without_a_browser_a_sentence_says_which_ones_were_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert make_pictures.main() == 1
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert all(name in said for name in browser.BROWSERS)
