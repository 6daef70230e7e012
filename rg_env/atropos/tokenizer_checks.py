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
from unittest import mock

import huggingface_hub
from huggingface_hub import constants
from transformers import dynamic_module_utils

from rg_env import patience
from rg_env.errors import LONGEST_SHOWN, SettingError, not_allowed

logger = logging.getLogger(__name__)

VOCABULARIES = ("tokenizer.json", "*.model", "vocab*", "*.tiktoken", "tekken.json")
"""The files that make a tokenizer, one of them in each folder."""

ALLOWED = "a model of the Hugging Face hub, or a folder with its tokenizer.json"

QUESTION = {"role": "user", "content": "second-probe"}
SYSTEM = {"role": "system", "content": "first-probe"}


@contextlib.contextmanager
def refusing_bad_tokenizer(settings: Mapping[str, str]) -> Iterator[None]:
    """Turn a tokenizer that cannot be loaded into one sentence.

    Args:
        settings: Each tokenizer that is loaded inside, to the setting that names it.

    Raises:
        SettingError: The setting, what was found and the library's own words.
    """
    remote = [name for name, field in settings.items() if not _is_folder(name, field)]
    patches: list[Any] = []
    if remote and not constants.is_offline_mode() and not _hub_answers(remote[0]):
        logger.warning(
            "the Hugging Face hub (%s) cannot be reached: only what its cache has is"
            " read",
            constants.ENDPOINT,
        )
        patches.append(mock.patch.object(constants, "HF_HUB_OFFLINE", True))
    if not sys.stdin or not sys.stdin.isatty():
        # Nobody is there to be asked whether the code of a model may be run.
        no_wait = mock.patch.object(dynamic_module_utils, "TIME_OUT_REMOTE_CODE", 0)
        patches.append(no_wait)
    with contextlib.ExitStack() as stack:
        for patch in patches:
            stack.enter_context(patch)
        try:
            yield
        except Exception as error:
            for frame, _ in traceback.walk_tb(error.__traceback__):
                name = str(frame.f_locals.get("pretrained_model_name_or_path"))
                if frame.f_code.co_name == "from_pretrained" and name in settings:
                    raise SettingError(
                        f"{settings[name]}: found {name!r}, which cannot be loaded"
                        f" ({_words(error)}); allowed is {ALLOWED}"
                    ) from error
            raise


def check_template(name: str, tokenizer: Any) -> None:
    """Refuse a tokenizer that cannot render a conversation."""
    try:
        rendered = tokenizer.apply_chat_template(
            [SYSTEM, QUESTION], tokenize=False, add_generation_prompt=True
        )
        reason = "leaves the question out"
    except Exception as error:  # noqa: BLE001 - a template is a program
        rendered, reason = "", f"cannot render a question: {_words(error)}"
    if QUESTION["content"] not in rendered:
        raise SettingError(
            f"env.tokenizer_name: found {name!r}, whose chat template {reason};"
            " allowed is the tokenizer of a chat model"
        )
    if SYSTEM["content"] not in rendered:
        logger.warning(
            "the chat template of %r leaves the system message out: the model is not"
            " told in which form to answer",
            name,
        )


def _is_folder(name: str, field: str) -> bool:
    """Say whether a name is a folder; refuse one that is missing or no tokenizer's."""
    is_folder = is_tokenizer = False
    with contextlib.suppress(OSError, ValueError):  # no file has some names
        is_folder = bool(name) and Path(name).is_dir()
        is_tokenizer = any(next(Path(name).glob(glob), None) for glob in VOCABULARIES)
    is_path = not name or name.startswith((".", "/", "~")) or name.count("/") > 1
    if (is_folder and not is_tokenizer) or (is_path and not is_folder):
        raise not_allowed(field, name, ALLOWED)
    return is_folder


def _hub_answers(name: str) -> bool:
    """Say whether the hub answers at all, whatever it says of a model.

    In a thread, since a name server or a firewall that does not answer holds up the
    caller for as long as it pleases.
    """
    answers, within_s = threading.Event(), patience.HUB_ANSWERS_WITHIN_S

    def query() -> None:
        url = huggingface_hub.hf_hub_url(name, "tokenizer_config.json")
        try:
            huggingface_hub.get_hf_file_metadata(url, timeout=within_s)
        except Exception as error:  # noqa: BLE001 - of whatever HTTP library it uses
            status = getattr(getattr(error, "response", None), "status_code", 500)
            if status >= 500:
                return
        answers.set()

    threading.Thread(target=query, daemon=True).start()
    return answers.wait(within_s)


def _words(error: BaseException) -> str:
    """Return an exception's own words, on one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:LONGEST_SHOWN]
