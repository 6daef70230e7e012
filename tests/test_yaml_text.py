"""What is read as YAML, and why something is not."""

from pathlib import Path

import pytest

from rg_env import yaml_text
from rg_env.yaml_text import YamlError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: 1\nb: 2\na: 3", "line 3: a second a"),
        ("a: {b: 1, b: 1}", "a second b"),
        ("{a: [secret", "line 1, column 12: "),
        ("!!python/object/apply:os.getpid []", "line 1, column 1: .*tag"),
        ("2026-99-99", "month must be in 1..12"),
    ],
)
def test_a_text_that_is_refused_says_where_and_why_without_its_lines(text, expected):
    with pytest.raises(YamlError, match=expected) as refused:
        yaml_text.load(text)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (".", "Is a directory"),
        ("nowhere.yaml", "No such file"),
        ("binary", "can't decode"),
    ],
)
def test_a_file_that_cannot_be_read_says_why(name, expected, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(YamlError, match=expected):
        yaml_text.read(name)
