"""Types of settings: what they take, and what they refuse."""

from __future__ import annotations

from pathlib import Path

import pytest

from rg_env.atropos.setting_types import check_file, check_folder, check_url
from rg_env.errors import SettingError


@pytest.mark.parametrize(
    "text",
    [
        "http://localhost:9004/v1",
        "https://api.example.com/v1",
        "HTTP://LOCALHOST:8000",
        "http://10.0.0.1:8000/",
        "http://[::1]:9004/v1",
        "http://node_7.cluster.:9000/a/b%20c",
        "http://münchen.example/v1",
    ],
)
def test_an_address_is_taken(text: str) -> None:
    assert check_url(text) == text


@pytest.mark.parametrize(
    "text",
    [
        *("", "9004", "localhost:9004", "http:/localhost:9004", "//localhost:9004/v1"),
        *("ftp://localhost:9004", " http://a:1 ", "http://a b", "http://", "http://.."),
        *("http://-a", "http://17", "http://a:99999", "http://a:0", "http://a:"),
        *("http://localhost:9004v1", "http://[::1", "http://a/v1?x=1", "http://a/v1#x"),
        *("http://a/v1,http://b/v1", "http:\\\\a", "http://\udcff"),
        "http://me:secret@host/v1",
    ],
)
def test_what_is_no_address_is_refused_without_a_password(text: str) -> None:
    with pytest.raises(ValueError, match="allowed is an address like") as refused:
        check_url(text)
    assert "secret" not in str(refused.value)


# -- paths --------------------------------------------------------------------------


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("kept")
    Path("folder").mkdir()
    return tmp_path


def left(here: Path) -> set[str]:
    assert Path("file").read_text() == "kept"
    return {str(path.relative_to(here)) for path in here.rglob("*")}


@pytest.mark.parametrize("path", ["folder", "new", "new/and/deep", ".", "folder/new/"])
def test_a_folder_that_can_be_written_is_taken_and_left_as_it_was(
    path: str, here: Path
) -> None:
    check_folder("env.x", path)
    assert left(here) == {"file", "folder"}


@pytest.mark.parametrize("path", ["new.jsonl", "folder/new", "new/deep/rows", "file"])
def test_a_file_that_can_be_written_is_taken_and_left_as_it_was(
    path: str, here: Path
) -> None:
    check_file("env.x", path)
    assert left(here) == {"file", "folder"}


FOLDERS = {
    "file": "File exists",
    "file/under": "(File exists|Not a directory)",
    "/proc/nope": "No such file",
    "a" * 300: "File name too long",
    "deep/" + "a" * 300: "File name too long",
    "a\0b": "null",
    "\ud800": "surrogates",
}


@pytest.mark.parametrize("path", FOLDERS, ids=range(len(FOLDERS)))
def test_a_folder_that_cannot_be_written_is_refused_with_the_reason(
    path: str, here: Path
) -> None:
    with pytest.raises(SettingError, match=FOLDERS[path]) as refused:
        check_folder("env.x", path)
    assert str(refused.value).startswith("env.x: ")
    assert left(here) == {"file", "folder"}


FILES = {
    "folder": "no ordinary file",
    "new/": "no ordinary file",
    ".": "no ordinary file",
    "..": "no ordinary file",
    "file/under": "(File exists|Not a directory)",
    "/proc/nope": "No such file",
    "a" * 300: "File name too long",
    "a" * 250: "File name too long",  # no room for `_1` and `.html`
    "a\0b": "null",
}


@pytest.mark.parametrize("path", FILES, ids=range(len(FILES)))
def test_a_file_that_cannot_be_written_is_refused_with_the_reason(
    path: str, here: Path
) -> None:
    with pytest.raises(SettingError, match=FILES[path]):
        check_file("env.x", path)
    assert left(here) == {"file", "folder"}


def test_rows_are_not_written_to_what_is_no_ordinary_file() -> None:
    with pytest.raises(SettingError, match="no ordinary file"):
        check_file("env.x", "/dev/null")
