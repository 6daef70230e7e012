"""The settings of an inference server that are checked without the framework.

What the environment sets itself in a request is refused, with the setting that sets it:
two values of one field would be told to the trainer as one.
"""

from __future__ import annotations

import json
import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from rg_env.errors import shown, unexpected
from rg_env.settings.environment_settings import START_MODEL
from rg_env.settings.setting_types import CheckedModel, Line, check_url

TEMPLATE_KWARGS = "chat_template_kwargs"
"""What is no sampling: a server renders a chat with it, and we do in its place."""

OWN_FIELDS = {
    **dict.fromkeys(
        ("max_tokens", "max_new_tokens", "max_completion_tokens"),
        "env.max_token_length",
    ),
    "temperature": "env.temperature and env.eval_temperature",
    "top_p": "env.top_p",
    "n": "env.group_size",
    "best_of": "env.group_size",
    "model": "openai.model_name",
}
"""Field of a request to the setting that it comes from."""

FIXED_FIELDS = frozenset(
    {
        *("prompt", "prompts", "messages", "input_ids", "token_ids", "text"),
        *("logprobs", "top_logprobs", "prompt_logprobs", "return_logprob"),
        *("return_token_ids", "return_tokens_as_token_ids", "sampling_params"),
        *("stream", "stream_options", "echo", "suffix", "use_beam_search"),
        *("truncate_prompt_tokens", "add_special_tokens", "extra_body"),
    }
)
"""Fields that no setting has: they decide what a reply is."""

FIXED_HEADERS = frozenset(
    {"connection", "content-length", "content-type", "host", "transfer-encoding"}
)

_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_HEADER_VALUE = re.compile(r"[ -~]*")


def check_headers(headers: object) -> object:
    """Return headers as they are; refuse what no request can carry, without values."""
    if not isinstance(headers, dict):
        raise ValueError("expected a map, as {name: value}")
    for name, value in headers.items():
        if not isinstance(name, str) or not _HEADER_NAME.fullmatch(name):
            raise ValueError(f"{shown(name)} is not a name of an HTTP header")
        if name.lower() in FIXED_HEADERS:
            raise ValueError(f"{name!r} is set by every request itself")
        if not isinstance(value, str) or not _HEADER_VALUE.fullmatch(value):
            raise ValueError(
                f"the value of {name!r} must be a text of one ASCII line; put a number"
                " in quotes"
            )
    return headers


def check_extra_body(extra: object) -> object:
    """Return fields of a body as they are; refuse those that the environment sets."""
    kwargs = extra.get(TEMPLATE_KWARGS, {}) if isinstance(extra, dict) else {}
    for part in (extra, kwargs):
        if not isinstance(part, dict) or not all(isinstance(key, str) for key in part):
            raise ValueError(unexpected(part, "a map, as {name: value}"))
    for name in extra:  # type: ignore[attr-defined]  # it is a map
        if not name.strip():
            raise ValueError(f"the name {unexpected(name, 'text')}")
        if name in OWN_FIELDS:
            raise ValueError(f"{name} belongs to {OWN_FIELDS[name]}; set that instead")
        if name in FIXED_FIELDS:
            raise ValueError(f"{name} is set by every request itself")
    try:
        json.dumps(extra, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"cannot be written as JSON ({error})") from None
    return extra


def _key(key: str) -> str:
    if re.search(r"[^!-~]", key):  # said without the key
        raise ValueError("expected printable ASCII characters without spaces")
    return key


class CheckedServer(CheckedModel):
    """The inference server."""

    base_url: (
        Annotated[str, AfterValidator(lambda url: url and check_url(url))] | None
    ) = ""
    """URL of the server"""
    server_type: Literal["openai", "trl", "sglang", "vllm"] = "openai"
    """Type of the server; openai is any server with an OpenAI-compatible API"""
    model_name: Line = "default"
    """Name of the model on the server. If you do not set it, the commands use the only
    model of the server"""
    api_key: Annotated[str, AfterValidator(_key)] | None = ""
    """API key of the server"""
    tokenizer_name: Line = "none"
    """Tokenizer of the model; none means env.tokenizer_name"""
    timeout: int = Field(1200, ge=1, le=7 * 24 * 3600)
    """Time limit for a request, in seconds"""
    num_max_requests_at_once: int = Field(512, ge=1, le=1_000_000)
    """Maximum number of training requests in flight"""
    num_requests_for_eval: int = Field(64, ge=1, le=1_000_000)
    """Maximum number of evaluation requests in flight"""
    health_check: bool = True
    """Query /health every second"""
    n_kwarg_is_ignored: bool = False
    """The server ignores `n` and always returns one completion"""
    rolling_buffer_length: int = Field(1000, ge=0, le=10_000_000)
    """Number of requests over which times are averaged for W&B"""
    headers: Annotated[dict[str, str], BeforeValidator(check_headers)] = Field(
        default_factory=dict
    )
    """Headers to send with every request, in addition to the key"""
    extra_body: Annotated[dict[str, Any], BeforeValidator(check_extra_body)] = Field(
        default_factory=dict
    )
    """Fields to add to the body of every request, such as top_k, stop or seed"""


START: dict[str, Any] = {
    "model_name": START_MODEL,
    "base_url": "http://localhost:9004/v1",
    "api_key": "x",
    "num_max_requests_at_once": 128,
    "num_requests_for_eval": 256,
    "server_type": "vllm",
}
"""What the commands start from.

Source: atropos 296a0bc, config_init(); differs: the server's type is one that can
train; the framework's default raised an error at the first item.
"""
