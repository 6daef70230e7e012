"""The pictures of the documents, and who takes them."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from tools import make_pictures


def test_the_picture_has_the_size_that_is_taken() -> None:
    size = struct.unpack(">II", make_pictures.PICTURE.read_bytes()[16:24])
    assert size == (make_pictures.WIDTH, make_pictures.HEIGHT)


def test_without_a_browser_a_sentence_says_which_ones_were_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert make_pictures.main() == 1
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert all(name in said for name in make_pictures.BROWSERS)
