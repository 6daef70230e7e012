"""A tokenizer that cannot be used is one sentence, which says why."""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from huggingface_hub import constants
from transformers import AutoTokenizer

from rg_env.atropos import tokenizer_checks
from rg_env.errors import SettingError
from tests.support.parts import TOKENIZER, run_main

FIELD = "env.tokenizer_name"
NAME = "owner/model"


def refusal(name: str) -> str:
    with (
        pytest.raises(SettingError) as caught,
        tokenizer_checks.refusing_bad_tokenizer({name: FIELD}),
    ):
        AutoTokenizer.from_pretrained(name)
    said = str(caught.value)
    assert said.startswith(f"{FIELD}: {name!r} ")
    assert said.endswith("tokenizer.json")
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


NO_NAMES = ("./no", "/no/such", "", "two words", __file__)


@pytest.mark.parametrize("name", NO_NAMES)
def test_what_is_no_folder_and_no_name_is_refused(name: str) -> None:
    refusal(name)


def test_a_name_that_is_not_in_the_cache_is_refused_where_the_hub_is_not_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    said = (
        "(OSError: We couldn't connect to 'https://huggingface.co' to load the files,"
    )
    said += " and couldn't find them in the cached files); expected a model on the"
    assert said in refusal(NAME)


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
    argv += ["--openai.model_name=m", "--env.use_wandb=false"]
    assert run_main(["serve", *argv]) == 2
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
    assert said.startswith("env.tokenizer_name: the chat template of 'x' ")
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
