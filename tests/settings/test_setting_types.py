"""Types of settings: what they take, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from rg_env.errors import SettingError
from rg_env.settings.setting_types import check_url
from rg_env.settings.writable_paths import check_file, check_folder

Check = Callable[[str, str], None]


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
    with pytest.raises(ValueError, match="expected an address like") as refused:
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


@pytest.mark.parametrize(
    ("check", "path"),
    [
        *((check_folder, path) for path in ("folder", "new", "new/and/deep", ".")),
        (check_folder, "folder/new/"),
        *((check_file, path) for path in ("new.jsonl", "folder/new", "file")),
        (check_file, "new/deep/rows"),
    ],
)
def test_what_can_be_written_is_taken_and_left_as_it_was(
    check: Check, path: str, here: Path
) -> None:
    check("env.x", path)
    assert left(here) == {"file", "folder"}


FOLDERS = {
    "file": "'file' is not a folder",
    "file/under": "'file' is not a folder",
    "/proc/nope": "No such file",
    "a" * 300: "File name too long",
    "deep/" + "a" * 300: "File name too long",
    "a\0b": "null",
    "\ud800": "surrogates",
}


FILES = {
    "folder": "not a regular file",
    "new/": "not a regular file",
    ".": "not a regular file",
    "..": "not a regular file",
    "file/under/it": "'file' is not a folder",
    "/proc/nope": "No such file",
    "a" * 300: "File name too long",
    "a" * 250: "File name too long",  # no room for `_1` and `.html`
    "a\0b": "null",
    "/dev/null": "not a regular file",
}


REFUSED = [(check_folder, *case) for case in FOLDERS.items()]
REFUSED += [(check_file, *case) for case in FILES.items()]


@pytest.mark.parametrize(("check", "path", "why"), REFUSED, ids=range(len(REFUSED)))
def test_what_cannot_be_written_is_refused_with_the_reason(
    check: Check, path: str, why: str, here: Path
) -> None:
    with pytest.raises(SettingError, match=why) as refused:
        check("env.x", path)
    assert str(refused.value).startswith("env.x: ")
    assert left(here) == {"file", "folder"}
