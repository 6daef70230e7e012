"""A tokenizer that cannot be used ends the start in one sentence.

The framework loads tokenizers where no setting can be named any more, and asks the
Hugging Face hub again and again, for a minute, when nobody answers there.
"""

from __future__ import annotations

import contextlib
import logging
import sys
import threading
import traceback
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import huggingface_hub
from huggingface_hub import constants
from transformers import dynamic_module_utils

from rg_env.errors import SettingError

logger = logging.getLogger(__name__)
TRANSFORMERS_LOG = logging.getLogger("transformers")

HUB_ANSWERS_WITHIN_S = 5.0
LONGEST_REASON = 200
VOCABULARIES = ("tokenizer.json", "*.model", "vocab*", "*.tiktoken", "tekken.json")
"""The files that make a tokenizer, one of them in each folder."""

WAY_OUT = "name a model of the Hugging Face hub, or a folder with its tokenizer.json"

QUESTION = {"role": "user", "content": "second-probe"}
SYSTEM = {"role": "system", "content": "first-probe"}


@contextlib.contextmanager
def refusing_bad_tokenizer(settings: Mapping[str, str]) -> Iterator[None]:
    """Turn a tokenizer that cannot be loaded into one sentence.

    Whatever else is raised inside is passed on.

    Args:
        settings: Each tokenizer that is loaded inside, to the setting that names it.

    Raises:
        SettingError: The setting, the reason and the way out.
    """
    for name, field in settings.items():
        _check_folder(name, field)
    with contextlib.ExitStack() as stack:
        remote = [name for name in settings if not _is_folder(name)]
        if remote and not constants.is_offline_mode() and not _hub_answers(remote[0]):
            logger.warning(
                "the Hugging Face hub (%s) cannot be reached: only what its cache has"
                " is read",
                constants.ENDPOINT,
            )
            stack.enter_context(_set(constants, "HF_HUB_OFFLINE", True))
        if not sys.stdin or not sys.stdin.isatty():
            # Nobody is there to be asked whether the code of a model may be run.
            stack.enter_context(_set(dynamic_module_utils, "TIME_OUT_REMOTE_CODE", 0))
        # What it warns of on the way to an error says less than the error.
        stack.callback(TRANSFORMERS_LOG.setLevel, TRANSFORMERS_LOG.level)
        TRANSFORMERS_LOG.setLevel(logging.ERROR)
        try:
            yield
        except Exception as error:
            loaded = _loaded_tokenizer(error)
            if loaded is None:
                raise
            field = settings.get(loaded, "env.tokenizer_name")
            raise SettingError(
                f"{field}: {loaded!r} cannot be loaded: {_words(error)}; {WAY_OUT}"
            ) from error


def check_template(name: str, tokenizer: Any) -> None:
    """Refuse a tokenizer that cannot render a conversation.

    Args:
        name: What `env.tokenizer_name` holds.
        tokenizer: The tokenizer.

    Raises:
        SettingError: The name, the reason and the way out.
    """
    try:
        rendered = tokenizer.apply_chat_template(
            [SYSTEM, QUESTION], tokenize=False, add_generation_prompt=True
        )
        reason = "leaves the question out"
    except Exception as error:  # noqa: BLE001 - a template is a program
        rendered, reason = "", f"cannot render a question: {_words(error)}"
    if QUESTION["content"] not in rendered:
        raise SettingError(
            f"env.tokenizer_name: the chat template of {name!r} {reason}; name the"
            " tokenizer of a chat model, such as the one of your model"
        )
    if SYSTEM["content"] not in rendered:
        logger.warning(
            "the chat template of %r leaves the system message out: the model is not"
            " told in which form to answer",
            name,
        )


def _is_folder(name: str) -> bool:
    with contextlib.suppress(OSError, ValueError):  # no file has some names
        return bool(name) and Path(name).is_dir()
    return False


def _check_folder(name: str, field: str) -> None:
    """Refuse what is meant as a folder and is none, or holds no tokenizer."""
    if _is_folder(name):
        if not any(file for glob in VOCABULARIES for file in Path(name).glob(glob)):
            raise SettingError(f"{field}: {name!r} holds no tokenizer; {WAY_OUT}")
    elif not name or name.startswith((".", "/", "~")) or name.count("/") > 1:
        raise SettingError(f"{field}: there is no folder {name!r}; {WAY_OUT}")


def _hub_answers(name: str) -> bool:
    """Say whether the hub answers at all, whatever it says of a model.

    In a thread, since a name server or a firewall that does not answer holds up the
    caller for as long as it pleases.
    """
    answers = threading.Event()

    def ask() -> None:
        url = huggingface_hub.hf_hub_url(name, "tokenizer_config.json")
        try:
            huggingface_hub.get_hf_file_metadata(url, timeout=HUB_ANSWERS_WITHIN_S)
        except Exception as error:  # noqa: BLE001 - of whatever HTTP library it uses
            status = getattr(getattr(error, "response", None), "status_code", 500)
            if status >= 500:
                return
        answers.set()

    threading.Thread(target=ask, daemon=True).start()
    return answers.wait(HUB_ANSWERS_WITHIN_S)


@contextlib.contextmanager
def _set(owner: Any, name: str, value: Any) -> Iterator[None]:
    """Set an attribute of a library for a while."""
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


def _loaded_tokenizer(error: BaseException) -> str | None:
    """Return the tokenizer whose loading raised an exception, None if none did."""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        is_load = frame.f_code.co_name == "from_pretrained"
        if is_load and frame.f_globals["__name__"].startswith("transformers."):
            return str(frame.f_locals.get("pretrained_model_name_or_path"))
    return None


def _words(error: BaseException) -> str:
    """Return an exception's own words, on one line."""
    said = " ".join(str(error).split()).rstrip(".")[:LONGEST_REASON]
    return (
        said
        if isinstance(error, OSError) and said
        else f"{type(error).__name__}: {said}"
    )
