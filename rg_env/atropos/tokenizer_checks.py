"""A tokenizer that cannot be used ends the start in one sentence.

The framework loads tokenizers where no setting can be named any more.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from atroposlib.envs.base import AutoTokenizer

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
        SettingError: The setting, the tokenizer and the library's own words.
    """
    for name in settings:
        if not Path(name).is_dir():
            logger.info("loading the tokenizer %s", name)
    try:
        yield
    except Exception as error:
        # Tokenizers raise any kind of exception. What was downloaded before is local.
        for name, field in settings.items():
            if not _loads(name):
                raise SettingError(
                    f"{field}: {shown(name)} cannot be loaded ({_words(error)});"
                    " expected a model on the Hugging Face hub, or a folder with a"
                    " tokenizer.json"
                ) from error
        raise


def _loads(name: str) -> bool:
    """Return whether a tokenizer loads from what is on this machine."""
    try:
        AutoTokenizer.from_pretrained(name, local_files_only=True)
    except Exception:  # noqa: BLE001 - of any kind, as above
        return False
    return True


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
            f"env.tokenizer_name: the chat template of {name!r} {reason}; expected the"
            " tokenizer of a chat model"
        )
    if SYSTEM["content"] not in rendered:
        logger.warning(
            "the chat template of %r leaves the system message out: the model is not"
            " told in which form to answer",
            name,
        )


def _words(error: BaseException) -> str:
    """Return the first line of an exception's own words, without its full stop."""
    first = f"{type(error).__name__}: {error}".strip().splitlines()[0]
    return first[:LONGEST_SHOWN].rstrip(".: ")
