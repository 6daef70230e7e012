"""A tokenizer that cannot be used is one sentence, which says why."""

from __future__ import annotations

import contextlib
import http.server
import json
import logging
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from huggingface_hub import constants
from transformers import AutoTokenizer

from rg_env import patience
from rg_env.atropos import tokenizer_checks
from rg_env.errors import SettingError
from tests.support.parts import TOKENIZER, run_main

FIELD = "env.tokenizer_name"
NAME = "owner/model"
NOBODY = "http://127.0.0.1:9"


def refusal(name: str) -> str:
    with (
        pytest.raises(SettingError) as caught,
        tokenizer_checks.refusing_bad_tokenizer({name: FIELD}),
    ):
        AutoTokenizer.from_pretrained(name)
    said = str(caught.value)
    assert said.startswith(f"{FIELD}: found {name!r}")
    assert "allowed is a model of the Hugging Face hub" in said
    assert "\n" not in said
    return said


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with the files of a tokenizer, to be spoilt."""
    return Path(shutil.copytree(TOKENIZER, tmp_path / "tokenizer"))


def change(folder: Path, **changes: object) -> Path:
    path = folder / "tokenizer_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    return folder


def write(name: str, content: bytes) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_bytes(content)


def without_tokenizer(folder: Path) -> None:
    for file in folder.iterdir():
        file.unlink()
    (folder / "config.json").write_text("{}")


def of_sentencepiece(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()
    (folder / "tokenizer.model").write_bytes(b"no such model")
    change(folder, tokenizer_class="LlamaTokenizer")


def of_own_code(folder: Path) -> None:
    auto_map = {"AutoTokenizer": ["code.Own", None]}
    change(folder, auto_map=auto_map, tokenizer_class="Own")


SPOILT: dict[str, Callable[[Path], object]] = {
    "cut off": write("tokenizer.json", b'{"a": '),
    "empty": write("tokenizer.json", b""),
    "another form": write("tokenizer.json", b"{}"),
    "a list": write("tokenizer_config.json", b"[]"),
    "no tokenizer": without_tokenizer,
    "a missing package": of_sentencepiece,
    "code of its own": of_own_code,
}


@pytest.mark.parametrize("case", SPOILT)
def test_a_folder_that_cannot_be_loaded_is_refused(case: str, folder: Path) -> None:
    SPOILT[case](folder)
    refusal(str(folder))


NO_NAMES = ("./no", "/no/such", "~/no", "some/where/no", "", "two words", __file__)


@pytest.mark.parametrize("name", NO_NAMES)
def test_what_is_no_folder_and_no_name_is_refused(name: str) -> None:
    refusal(name)


def test_a_name_that_is_not_in_the_cache_is_refused_where_the_hub_is_not_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    assert "couldn't find them in the cached files" in refusal(NAME)


# -- what a hub answers ----------------------------------------------------------------


@contextlib.contextmanager
def hub(status: int, headers: dict[str, str]) -> Iterator[str]:
    """Serve one answer to everything, as a hub; with status 0 none."""
    ended = threading.Event()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            if status == 0:
                ended.wait(60)
                return
            self.send_response(status)
            for header in headers.items():
                self.send_header(*header)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_GET = do_HEAD  # noqa: N815 - as the base class wants it

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            ended.set()
            server.shutdown()


@pytest.fixture
def use_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Have the library ask a hub at a URL, with an empty cache."""

    def use(url: str) -> None:
        template = url + "/{repo_id}/resolve/{revision}/{filename}"
        monkeypatch.setattr(constants, "ENDPOINT", url)
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
        monkeypatch.setattr(patience, "HUB_ANSWERS_WITHIN_S", 0.5)

    return use


ANSWERS: dict[str, tuple[int, dict[str, str], str]] = {
    "no such model": (404, {"X-Error-Code": "RepoNotFound"}, "is not a valid model"),
    "no such model, and no login": (
        401,
        {"X-Error-Message": "Invalid username or password."},
        "connection error when trying to load owner/model",
    ),
    "a gated model": (403, {"X-Error-Code": "GatedRepo"}, "gated repo"),
    "a failure": (503, {}, "couldn't find them in the cached files"),
    "silence": (0, {}, "couldn't find them in the cached files"),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", ANSWERS)
def test_what_a_hub_answers_is_the_reason_and_is_told_soon(
    case: str, use_hub: Callable[[str], None]
) -> None:
    status, headers, expected = ANSWERS[case]
    began = time.monotonic()
    with hub(status, headers) as url:
        use_hub(url)
        assert expected in refusal(NAME)
    assert time.monotonic() - began < 10


@pytest.mark.slow
def test_a_hub_that_is_not_there_is_the_reason(
    use_hub: Callable[[str], None], caplog: pytest.LogCaptureFixture
) -> None:
    use_hub(NOBODY)
    assert "couldn't find them in the cached files" in refusal(NAME)
    assert f"hub ({NOBODY}) cannot be reached" in caplog.text


@pytest.mark.slow
def test_without_a_hub_a_tokenizer_of_the_cache_is_used(
    use_hub: Callable[[str], None], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    use_hub(NOBODY)
    model = tmp_path / "cache" / "models--owner--model"
    files = Path(shutil.copytree(TOKENIZER, model / "snapshots" / ("a" * 40)))
    (files / "config.json").write_text("{}")
    (model / "refs").mkdir()
    (model / "refs" / "main").write_text("a" * 40)
    with tokenizer_checks.refusing_bad_tokenizer({NAME: FIELD}):
        assert len(AutoTokenizer.from_pretrained(NAME)) > 0
    assert "only what its cache has is read" in caplog.text
    assert not constants.HF_HUB_OFFLINE


# -- what is blamed --------------------------------------------------------------------


def test_what_is_no_fault_of_the_tokenizer_is_passed_on() -> None:
    AutoTokenizer.from_pretrained(TOKENIZER)
    with (
        pytest.raises(FileNotFoundError),
        tokenizer_checks.refusing_bad_tokenizer({TOKENIZER: FIELD}),
    ):
        Path("/nowhere/at/all").read_bytes()


def test_the_setting_that_names_the_tokenizer_is_blamed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = [f"--env.tokenizer_name={TOKENIZER}", f"--openai.tokenizer_name={tmp_path}"]
    assert run_main(["serve", *argv, "--env.use_wandb=false"]) == 2
    assert "error: openai.tokenizer_name: " in capsys.readouterr().err


# -- its chat template -----------------------------------------------------------------

TEMPLATES = {
    "none": None,
    "no system role": (
        "{% if messages[0].role == 'system' %}{{ raise_exception('no!') }}{% endif %}"
    ),
    "a template that fails": "{{ messages[0].no.such }}",
    "a template that cannot be read": "{% for m in %}",
    "a template without the question": "{{ messages[0].content }}",
}


@pytest.mark.slow
@pytest.mark.parametrize("case", TEMPLATES)
def test_a_chat_template_that_cannot_be_used_is_refused(
    case: str, folder: Path
) -> None:
    spoilt = change(folder, chat_template=TEMPLATES[case])
    tokenizer = AutoTokenizer.from_pretrained(spoilt)
    with pytest.raises(SettingError) as caught:
        tokenizer_checks.check_template("x", tokenizer)
    said = str(caught.value)
    assert said.startswith("env.tokenizer_name: found 'x', whose chat template ")
    assert "\n" not in said


def test_a_template_that_leaves_the_system_message_out_is_warned_of(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    template = (
        "{% for m in messages if m.role != 'system' %}{{ m.content }}{% endfor %}"
    )
    tokenizer = AutoTokenizer.from_pretrained(change(folder, chat_template=template))
    with caplog.at_level(logging.WARNING):
        tokenizer_checks.check_template("x", tokenizer)
    assert "leaves the system message out" in caplog.text
