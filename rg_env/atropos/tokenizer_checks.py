"""A tokenizer that cannot be used ends the start in one sentence, with its true cause.

The framework loads tokenizers where no cause can be told any more, and asks the Hugging
Face hub again and again, for a minute, when nobody answers there. So it is looked at
before: folders by their files, names of the hub by one request.
"""

from __future__ import annotations

import contextlib
import json
import logging
import re
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import huggingface_hub
from huggingface_hub import constants, errors
from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]
from transformers import dynamic_module_utils

from rg_env.errors import SettingError

logger = logging.getLogger(__name__)
TRANSFORMERS_LOG = logging.getLogger("transformers")

HUB_ANSWERS_WITHIN_S = 5.0
MAX_REASON_CHARS = 200
VOCABULARIES = ("tokenizer.json", "*.model", "vocab*", "*.tiktoken", "tekken.json")
"""The files that make a tokenizer, one of them in each folder."""

CACHED_FILES = ("tokenizer.json", "tokenizer_config.json", "tokenizer.model")
"""The files by which a tokenizer is found in the cache of the hub."""

JSON_FILES = ("config.json", "tokenizer.json", "tokenizer_config.json")
"""The files that are read, and are JSON objects."""

NO_HUB = ConnectionError("what answers there is no such hub, but a proxy perhaps")

LFS_POINTER = b"version https://git-lfs"
FILES = "its tokenizer.json and tokenizer_config.json"
WAY_OUT = f"name a model of the Hugging Face hub, or a folder that holds {FILES}"
NEEDS_TEMPLATE = "name the tokenizer of a chat model, such as the one of your model"

PROBE = (
    {"role": "system", "content": "first-probe"},
    {"role": "user", "content": "second-probe"},
)


@contextlib.contextmanager
def refusing_bad_tokenizer(settings: Mapping[str, str]) -> Iterator[None]:
    """Turn a tokenizer that cannot be loaded into one sentence.

    Whatever else is raised inside is passed on.

    Args:
        settings: Each tokenizer that is loaded inside, to the setting that names it.

    Raises:
        SettingError: The setting, the reason and the way out.
    """
    with contextlib.ExitStack() as stack:
        for name, field in settings.items():
            stack.enter_context(_looked_at(name, field))
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
            raise SettingError(
                f"{settings.get(loaded, 'env.tokenizer_name')}: {loaded!r} cannot be"
                f" loaded: {_reason(error, loaded)}"
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
        rendered = _rendered(tokenizer, PROBE)
    except Exception as error:  # a template is a program, and raises what it wants
        raise SettingError(
            f"env.tokenizer_name: {name!r} {_template_fault(tokenizer, error)}"
        ) from error
    if PROBE[1]["content"] not in rendered:
        raise SettingError(
            f"env.tokenizer_name: the chat template of {name!r} leaves the question"
            " out; name a tokenizer whose template has the user's message in it"
        )
    if PROBE[0]["content"] not in rendered:
        logger.warning(
            "the chat template of %r leaves the system message out: the model is not"
            " told in which form to answer",
            name,
        )


# -- before it is loaded ---------------------------------------------------------------


@contextlib.contextmanager
def _looked_at(name: str, field: str) -> Iterator[None]:
    """Refuse what can be no tokenizer; read the cache alone where no hub answers."""
    if _is_folder(name):
        yield
        return
    _check_name(name, field)
    if constants.is_offline_mode():
        if not _is_cached(name):
            raise SettingError(
                f"{field}: {name!r} is not on this machine (looked in"
                f" {constants.HF_HUB_CACHE}), and HF_HUB_OFFLINE or"
                " TRANSFORMERS_OFFLINE is set; unset it, or name a folder that holds"
                f" {FILES}"
            )
        yield
        return
    logger.info("loading tokenizer %s", name)
    fault = _asked(name)
    if _is_refusal(fault):
        raise SettingError(f"{field}: {name!r} cannot be loaded: {_refusal(fault)}")
    if fault is None:
        yield
        return
    if not _is_cached(name):
        raise SettingError(
            f"{field}: {name!r} is not on this machine, and the Hugging Face hub"
            f" ({constants.ENDPOINT}) cannot be reached ({_brief(fault)}); see to the"
            f" network or its proxy (HTTPS_PROXY), or name a folder that holds {FILES}"
        )
    logger.warning(
        "the Hugging Face hub cannot be reached (%s): %s is read from the cache",
        _brief(fault),
        name,
    )
    # Each file that the cache has not would be asked for, for half a minute.
    with _set(constants, "HF_HUB_OFFLINE", True):
        yield


def _check_name(name: str, field: str) -> None:
    """Refuse what is neither a folder nor a name that the hub could know."""
    if _is(Path.is_file, name):
        raise SettingError(f"{field}: {name!r} is a file; name the folder it is in")
    if name.startswith((".", "/", "~")) or name.count("/") > 1:
        raise SettingError(f"{field}: there is no folder {name!r}; {WAY_OUT}")
    try:
        validate_repo_id(name)
    except errors.HFValidationError:
        raise SettingError(
            f"{field}: {name!r} is no folder and no name of a model; {WAY_OUT}"
        ) from None


def _is(what: Callable[[Path], bool], name: str) -> bool:
    """Say whether a name is that of a file or folder; no file has some names."""
    with contextlib.suppress(OSError, ValueError):
        return bool(name) and what(Path(name))
    return False


def _is_folder(name: str) -> bool:
    return _is(Path.is_dir, name)


def _is_cached(name: str) -> bool:
    """Say whether any file of a tokenizer is in the cache of the hub."""
    folder = _snapshot(name)
    return folder is not None and _has_vocabulary(folder)


def _snapshot(name: str) -> Path | None:
    """Return the folder of a tokenizer, or of what the cache has of it."""
    if _is_folder(name):
        return Path(name)
    for file in CACHED_FILES:
        found = huggingface_hub.try_to_load_from_cache(name, file)
        if isinstance(found, str):
            return Path(found).parent
    return None


def _asked(name: str) -> Exception | None:
    """Ask the hub for a file of a model; return what went wrong, None if nothing did.

    In a thread, since a name server or a firewall that does not answer holds up the
    caller for as long as it pleases.
    """
    faults: list[Exception | None] = []

    def ask() -> None:
        url = huggingface_hub.hf_hub_url(name, "tokenizer_config.json")
        try:
            found = huggingface_hub.get_hf_file_metadata(
                url, timeout=HUB_ANSWERS_WITHIN_S
            )
        except errors.EntryNotFoundError:
            faults.append(None)
        except Exception as error:  # noqa: BLE001 - of whatever HTTP library it uses
            faults.append(error)
        else:
            faults.append(None if found.commit_hash else NO_HUB)

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(HUB_ANSWERS_WITHIN_S)
    if faults:
        return faults[0]
    return TimeoutError(f"no answer within {HUB_ANSWERS_WITHIN_S:g} s")


def _status(fault: BaseException | None) -> int:
    """Return the status of a hub's answer, 0 where there was none."""
    return getattr(getattr(fault, "response", None), "status_code", 0)


def _is_refusal(fault: BaseException | None) -> bool:
    """Say whether a hub has answered that this user gets no such tokenizer."""
    return 400 <= _status(fault) < 500 and _status(fault) not in (408, 429)


def _refusal(fault: BaseException | None) -> str:
    """Return why a hub refuses a tokenizer, and the way out."""
    status = _status(fault)
    if isinstance(fault, errors.GatedRepoError):
        return (
            "its owner asks for consent; give it on its page of the hub, and log in"
            f" with `hf auth login` or HF_TOKEN, or name a folder that holds {FILES}"
        )
    is_bad_token = status == 401 and "Invalid credentials" in str(fault)
    # What a user may not see the hub denies to have, without a login with a 401.
    if isinstance(fault, errors.RepositoryNotFoundError) or (
        status == 401 and not is_bad_token
    ):
        return (
            "there is no such folder, and the hub shows no such model; see to the"
            " spelling, or log in with `hf auth login` or HF_TOKEN if it is private"
        )
    if is_bad_token:
        return (
            "the hub does not know the token of `hf auth login` or HF_TOKEN; renew it"
        )
    return f"the hub refuses it with status {status}; {WAY_OUT}"


# -- while it is loaded ----------------------------------------------------------------


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


def _reason(error: Exception, name: str) -> str:
    """Return why a tokenizer cannot be loaded, and the way out."""
    chain: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in chain:
        chain.append(cause)
        cause = cause.__cause__ or cause.__context__
    for fault in chain:
        if isinstance(fault, errors.HfHubHTTPError) and _is_refusal(fault):
            return _refusal(fault)
    said = " ".join(str(each) for each in chain)
    packages = set(re.findall(r"sentencepiece|tiktoken|protobuf", said.lower()))
    folder = _snapshot(name)
    has_none = folder is None and packages  # transformers blames their lack then
    if has_none or (folder is not None and not _has_vocabulary(folder)):
        return f"it holds no tokenizer (no tokenizer.json); {WAY_OUT}"
    if "trust_remote_code" in said:
        return (
            "it is made of code of its own, which is run only where you are asked for"
            f" leave at a terminal; {WAY_OUT}"
        )
    if folder is not None and (damage := _damage(folder)):
        return f"{damage}; fetch its files again"
    if packages:
        if folder is not None and any(folder.glob("*.model")):
            packages.add("sentencepiece")
        return (
            "it has no usable tokenizer.json, and to make one of its other files takes"
            " packages that are not installed: `pip install"
            f" {' '.join(sorted(packages))}`"
        )
    return f"{_brief(error)}; {WAY_OUT}"


def _has_vocabulary(folder: Path) -> bool:
    return any(file for glob in VOCABULARIES for file in folder.glob(glob))


def _damage(folder: Path) -> str | None:
    """Return which file of a tokenizer is no JSON, and why."""
    for file in (folder / name for name in JSON_FILES):
        if not file.exists():
            continue
        try:
            content = file.read_bytes()
            if content.startswith(LFS_POINTER):
                return f"its {file.name} is a pointer of Git LFS (`git lfs pull`)"
            if not content:
                return f"its {file.name} is empty"
            if not isinstance(json.loads(content), dict):
                return f"its {file.name} holds no JSON object"
        except OSError as error:
            return f"its {file.name} cannot be read ({error.strerror})"
        except ValueError as error:
            return f"its {file.name} is damaged ({error})"
    return None


def _brief(error: BaseException) -> str:
    """Return an exception in a few words."""
    if _status(error):
        return f"it answers with status {_status(error)}"
    said = next(iter(str(error).strip().splitlines()), "")[:MAX_REASON_CHARS]
    return said if isinstance(error, OSError) and said else _with_kind(error, said)


def _with_kind(error: BaseException, said: str) -> str:
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


# -- its chat template -----------------------------------------------------------------


def _rendered(tokenizer: Any, messages: Any) -> str:
    return str(
        tokenizer.apply_chat_template(
            list(messages), tokenize=False, add_generation_prompt=True
        )
    )


def _template_fault(tokenizer: Any, error: Exception) -> str:
    """Return what a chat template lacks, and the way out."""
    if not getattr(tokenizer, "chat_template", None):
        return f"has no chat template; {NEEDS_TEMPLATE}"
    try:
        _rendered(tokenizer, PROBE[1:])
    except Exception:  # noqa: BLE001 - see where the first one is met
        return (
            f"cannot render a conversation with its chat template ({_brief(error)});"
            f" {NEEDS_TEMPLATE}"
        )
    return (
        "has a chat template that takes no system message, which every prompt has"
        f" ({_brief(error)}); {NEEDS_TEMPLATE}"
    )
