"""The settings of an inference server, and of `launch`.

Fields of a request that the environment sets are refused here. Otherwise a request
would have two values of one field, and the trainer could be told the unused one.
"""

from __future__ import annotations

import re
import shlex
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, JsonValue

from rg_env.errors import shown, unexpected
from rg_env.settings.environment_settings import DEFAULT_MODEL
from rg_env.settings.setting_checks import CheckedModel, FilePath, Text, Url

SIMULATED = "simulated"
"""The URL, and the name, of the simulated model, which needs no server."""

TEMPLATE_KWARGS = "chat_template_kwargs"  # arguments of the chat template

_RESERVED_FIELDS = """
    max_tokens max_new_tokens max_completion_tokens temperature top_p n model prompt
    messages input_ids sampling_params logprobs top_logprobs return_logprob stream
    echo"""
RESERVED_FIELDS = frozenset(_RESERVED_FIELDS.split())
"""Fields of a request that the environment sets from its own settings."""

_RESERVED_HEADERS = "connection content-length content-type host transfer-encoding"
RESERVED_HEADERS = frozenset(_RESERVED_HEADERS.split())
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")


def check_headers(headers: dict[str, str]) -> dict[str, str]:
    """Return headers unchanged; refuse invalid ones without repeating their values."""
    for name, value in headers.items():
        if not _HEADER.fullmatch(name) or name.lower() in RESERVED_HEADERS:
            raise ValueError(f"{shown(name)} is not the name of an additional header")
        if not re.fullmatch("[ -~]*", value):
            raise ValueError(f"the value of {name!r} must be one line of ASCII")
    return headers


def check_extra_body(extra: dict[str, Any]) -> dict[str, Any]:
    """Return fields of a body unchanged; refuse those that the environment sets."""
    if reserved := RESERVED_FIELDS & extra.keys():
        raise ValueError(
            f"{min(reserved)} is set by the environment, from its other settings"
        )
    if not isinstance(extra.get(TEMPLATE_KWARGS, {}), dict):
        raise ValueError(f"{TEMPLATE_KWARGS} is not a map")
    return extra


Headers = Annotated[dict[str, str], AfterValidator(check_headers)]
ExtraBody = Annotated[dict[str, JsonValue], AfterValidator(check_extra_body)]


class CheckedServer(CheckedModel):
    """The inference server."""

    base_url: Url | Literal["simulated", ""] | None = ""
    """URL of the server, or simulated"""
    server_type: Literal["openai", "trl", "sglang", "vllm"] = "openai"
    """Type of the server; openai is any with an OpenAI-compatible API"""
    model_name: Text = "default"
    """Model on the server; if not set, the only one that it serves"""
    api_key: Annotated[str, Field(pattern="^[!-~]*$")] | None = ""
    """API key of the server"""
    tokenizer_name: Text = "none"
    """Tokenizer of the model; none means env.tokenizer_name"""
    timeout: int = Field(1200, ge=1, le=7 * 24 * 3600)
    """Time limit for a request, in seconds"""
    num_max_requests_at_once: int = Field(512, ge=1, le=1_000_000)
    """Maximum training requests in flight"""
    num_requests_for_eval: int = Field(64, ge=1, le=1_000_000)
    """Maximum evaluation requests in flight"""
    health_check: bool = True
    """Query /health every second"""
    n_kwarg_is_ignored: bool = False
    """The server ignores `n` and always returns one completion"""
    rolling_buffer_length: int = Field(1000, ge=0, le=10_000_000)
    """Requests over which times are averaged for W&B"""
    headers: Headers = Field({})
    """Headers of every request"""
    extra_body: ExtraBody = Field({})
    """More fields of every request, such as top_k, stop or seed"""


DEFAULTS: dict[str, Any] = {
    "model_name": DEFAULT_MODEL,
    "base_url": "http://localhost:9004/v1",
    "api_key": "x",
    "num_max_requests_at_once": 128,
    "num_requests_for_eval": 256,
    "server_type": "vllm",
}
"""The defaults of the commands: those of the original, with a type that can train."""

# -- launch ----------------------------------------------------------------------------

TRAINER_PLACEHOLDERS = (
    "api",
    "server",
    "model",
    "folder",
    "group_size",
    "batch_size",
    "max_token_length",
    "total_steps",
)
"""The placeholders, in braces, of a trainer's command line."""


def _check_arguments(text: str) -> str:
    shlex.split(text)  # raises ValueError for an unclosed quote
    return text


def _check_trainer(text: str) -> str:
    try:
        text.format_map(dict.fromkeys(TRAINER_PLACEHOLDERS, ""))
    except (LookupError, ValueError, AttributeError, TypeError) as error:
        names = ", ".join(f"{{{name}}}" for name in TRAINER_PLACEHOLDERS)
        raise ValueError(unexpected(text, f"only {names} in braces")) from error
    return text


Arguments = Annotated[str, AfterValidator(_check_arguments)]
Trainer = Annotated[Arguments, Field(pattern=r"\S"), AfterValidator(_check_trainer)]


class LaunchSettings(CheckedModel):
    """A whole training run.

    `launch` reads these settings, under `launch` in the settings file.
    """

    model: Text | None = None
    """Model to begin with, a name on the Hugging Face hub or a folder"""
    folder: FilePath = "data/launch"
    """Folder of the run: weights, checkpoints, dump files, logs"""
    policy: FilePath | None = None
    """Folder of the weights that vLLM serves and the trainer writes; None means
    `policy` in `folder`"""
    python: FilePath | None = None
    """Python with vLLM and the packages of the trainer; None means this one"""
    vllm_args: Arguments = ""
    """More arguments of `vllm serve`"""
    vllm_variables: dict[str, str] = Field({})
    """Environment variables of vLLM, such as CUDA_VISIBLE_DEVICES"""
    trainer: Trainer | None = None
    """Command line of another trainer, with {api}, {server}, {model}, {folder},
    {group_size}, {batch_size}, {max_token_length} and {total_steps}"""
    trainer_args: Arguments = ""
    """More arguments of our trainer, such as --learning-rate"""
    trainer_variables: dict[str, str] = Field({})
    """Environment variables of the trainer"""
