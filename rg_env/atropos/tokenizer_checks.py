"""A tokenizer that cannot be used ends the start in one sentence.

The framework loads tokenizers where no setting can be named any more.
"""

from __future__ import annotations

import contextlib
import logging
import traceback
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rg_env.errors import LONGEST_SHOWN, SettingError, shown

logger = logging.getLogger(__name__)

QUESTION = {"role": "user", "content": "second-probe"}
SYSTEM = {"role": "system", "content": "first-probe"}


def loaded_tokenizers(config: Any, servers: Iterable[Any]) -> dict[str, str]:
    """Return each tokenizer that the framework loads, to the setting that names it."""
    of_servers = {
        server.tokenizer_name: "openai.tokenizer_name"
        for server in servers
        if server.server_type != "openai"  # whose client loads none
    }
    return of_servers | {config.tokenizer_name: "env.tokenizer_name"}


@contextlib.contextmanager
def refusing_bad_tokenizer(settings: Mapping[str, str]) -> Iterator[None]:
    """Turn a tokenizer that cannot be loaded into one sentence.

    Args:
        settings: Each tokenizer that is loaded inside, to the setting that names it.

    Raises:
        SettingError: The setting, what was found and the library's own words.
    """
    try:
        yield
    except Exception as error:
        # The framework's calls raise whatever a tokenizer's library does.
        called = [frame.name for frame in traceback.extract_tb(error.__traceback__)]
        if "from_pretrained" not in called:
            raise
        # Of several, the library's words nearly always tell which.
        told = {name: field for name, field in settings.items() if name in str(error)}
        found = (told or settings).items()
        raise SettingError(
            " or ".join(f"{field}: found {shown(name)}" for name, field in found)
            + f", which cannot be loaded ({_words(error)}); allowed is a model of the"
            " Hugging Face hub, or a folder with its tokenizer.json"
        ) from error


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


def _words(error: BaseException) -> str:
    """Return an exception's own words, on one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:LONGEST_SHOWN]
