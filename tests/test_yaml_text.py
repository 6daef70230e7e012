"""What is read as YAML, and why something is not."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rg_env import yaml_text
from rg_env.yaml_text import YamlError

FAULTY = {
    "key given twice": ("a: 1\nb: 2\na: 3", "line 3, column 1: 'a' is given twice"),
    "inner key given twice": ("a: {b: 1, b: 1}", "'b' is given twice"),
    "holds itself": ("a: &a [*a]", "recursive"),
    "too deep": ("[" * 5000, "nested too deeply"),
    "tag of Python": ("!!python/object/apply:os.getpid []", "tag"),
    "tag that does not fit": ("!!bool perhaps", "not what its tag says"),
    "date that is none": ("2026-99-99", "month must be in 1..12"),
    "two documents": ("--- a\n--- b", "expected a single document"),
    "broken": ("{a: [", "line 1, column 6"),
    "tabs": ("a:\n\tb: 1", "line 2, column 1"),
    "no such alias": ("*a", "undefined alias"),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", FAULTY)
def test_a_text_that_is_refused_says_where_and_why(case: str) -> None:
    text, expected = FAULTY[case]
    with pytest.raises(YamlError) as refused:
        yaml_text.load(text)
    assert expected in str(refused.value)
    assert "\n" not in str(refused.value)


def test_aliases_and_merged_maps_are_read() -> None:
    text = "a: &a {x: 1, y: 2}\nb: {<<: *a, y: 3}"
    assert yaml_text.load(text)["b"] == {"x": 1, "y": 3}


def test_a_text_that_says_nothing_is_none() -> None:
    assert yaml_text.load("# nothing\n") is None


@given(st.text(alphabet="{}[],:&*!|>-# \t\n'\"%@ab1?<", max_size=30))
def test_whatever_is_written_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(YamlError):
        yaml_text.load(text)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("", "the name of a file is needed"),
        (".", "Is a directory"),
        ("nowhere.yaml", "No such file"),
        ("a\0b", "null"),
        ("a" * 300, "name too long"),
        ("/dev/zero", "longer than"),
        ("binary", "no text in UTF-8"),
    ],
)
def test_a_file_that_cannot_be_read_says_why(
    name: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(YamlError, match=expected):
        yaml_text.read(name)


def test_what_comes_through_a_pipe_is_read() -> None:
    ours, theirs = os.pipe()
    with os.fdopen(theirs, "wb") as pipe:
        pipe.write(b"env: {seed: 3}")
    try:
        assert yaml_text.read(f"/dev/fd/{ours}") == {"env": {"seed": 3}}
    finally:
        os.close(ours)
