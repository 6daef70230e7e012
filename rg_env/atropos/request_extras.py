"""Headers and fields of the body that the settings add to requests: which may be.

What the environment sets itself is refused, with the setting that sets it: two values
of one field would be told to the trainer as one.
"""

from __future__ import annotations

import json
import re
from typing import Any

from rg_env.errors import shown
from rg_env.inference.extras import TEMPLATE_KWARGS

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

_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_VALUE = re.compile(r"[ -~]*")


def check_headers(headers: object) -> object:
    """Return headers as they are; their values may be secret.

    Raises:
        ValueError: No request can carry them; what was found, without values.
    """
    if not isinstance(headers, dict):
        kind = type(headers).__name__
        raise ValueError(f"found a {kind}; allowed is a map, as {{name: value}}")
    for name, value in headers.items():
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise ValueError(f"found a header {shown(name)}; allowed are names of HTTP")
        if name.lower() in FIXED_HEADERS:
            raise ValueError(f"found {name!r}, which every request sets itself")
        if not isinstance(value, str) or not _VALUE.fullmatch(value):
            raise ValueError(
                f"found a value of {name!r} that is no text of one ASCII line; a number"
                " stands in quotes"
            )
    return headers


def check_extra_body(extra: object) -> object:
    """Return fields of a body, of which the environment sets none, as they are.

    Raises:
        ValueError: What was found, and what is allowed.
    """
    if not isinstance(extra, dict):
        raise ValueError(f"found {shown(extra)}; allowed is a map, as {{name: value}}")
    for name in extra:
        if not isinstance(name, str) or not name.strip():
            raise ValueError(f"found {shown(name)} as a name; allowed is text")
        if name in OWN_FIELDS:
            raise ValueError(f"found {name}; set {OWN_FIELDS[name]}")
        if name in FIXED_FIELDS:
            raise ValueError(f"found {name}, which every request sets itself")
    kwargs: Any = extra.get(TEMPLATE_KWARGS, {})
    if not isinstance(kwargs, dict) or not all(isinstance(k, str) for k in kwargs):
        raise ValueError(
            f"found {shown(kwargs)} as {TEMPLATE_KWARGS}; allowed is a map, as"
            " {name: value}"
        )
    try:
        json.dumps(extra, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"found what is no JSON ({error})") from None
    return extra
