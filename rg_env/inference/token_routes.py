"""The routes at which servers return token ids with their log-probabilities.

    /generate               the server of Atropos' example trainer
    /generate               SGLang, in a form of its own
    /v1/completions         vLLM from 0.10.2 and SGLang from July 2026, which take
                            `return_token_ids`; older vLLM by
                            `return_tokens_as_token_ids`
    /inference/v1/generate  vLLM, where `--enable-scale-out` has it on
    /generate/              TRL that takes prompts as token ids

Each takes the prompt as ids, so that what a trainer learns from is what the model was
given. A stock vLLM samples with what the model's `generation_config.json` says (top_k
and others) where a request does not; so what the settings leave out is sent as neutral.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from rg_env.inference.native_replies import Generated, read_sglang, read_vllm
from rg_env.inference.token_replies import read_completions, read_tokens, read_trl

V1 = "/v1/"
"""What paths of the OpenAI kind begin with, and the settings' URL ends with."""

NEUTRAL = {
    "top_k": -1,
    "min_p": 0.0,
    "repetition_penalty": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
}
"""Sampling that changes nothing."""

TRL_FIELDS = frozenset(
    {"n", "max_tokens", "temperature", "top_p", "top_k", "min_p", "repetition_penalty"}
)
"""What TRL takes by name; the rest goes to vLLM through it."""

OTHER_NAMES_OF_THE_LIMIT = ("max_new_tokens", "max_completion_tokens")


class Told(NamedTuple):
    """What a reply says beside tokens and log-probabilities.

    Attributes:
        texts: Of the completions, shape (G,); None where it has none.
        prompt: The tokens of the prompt as the server took it; None where it does not
            say.
    """

    texts: list[str] | None = None
    prompt: list[int] | None = None


@dataclasses.dataclass(frozen=True)
class TokenRoute:
    """One way of asking for token ids.

    Attributes:
        words: For people.
        path: Below the server's root.
        body: Of a request: prompt, sampling, name of the model and what the setting
            `extra_body` adds.
        read: The body of a reply into completions.
        tell: The JSON of a reply into what else it says.
    """

    words: str
    path: str
    body: Callable[
        [list[int], Mapping[str, Any], str, Mapping[str, Any]], dict[str, Any]
    ]
    read: Callable[..., Generated]
    tell: Callable[[Any], Told] = lambda reply: Told()


def _texts(results: list[dict[str, Any]]) -> list[str] | None:
    """Return the texts of completions; None where a server makes none."""
    texts = [result.get("text") for result in results]
    return None if None in texts else list(map(str, texts))


def _with_max_tokens(sampling: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is sampled with, the limit under vLLM's name."""
    named = dict(sampling)
    for other in OTHER_NAMES_OF_THE_LIMIT:
        if other in named:
            named["max_tokens"] = named.pop(other)
    return named


# -- the server of Atropos' example trainer --------------------------------------------


def _atropos_body(
    prompt: list[int], sampling: Mapping[str, Any], model: str, extra: Mapping[str, Any]
) -> dict[str, Any]:
    return {
        "prompt": {"prompt_token_ids": prompt},
        "logprobs": 0,
        **_with_max_tokens(sampling),
        **extra,
    }


ATROPOS = TokenRoute(
    "/generate, as Atropos' own vLLM server has it",
    "/generate",
    _atropos_body,
    read_vllm,
)


# -- SGLang ----------------------------------------------------------------------------


def _sglang_body(
    prompt: list[int], sampling: Mapping[str, Any], model: str, extra: Mapping[str, Any]
) -> dict[str, Any]:
    named = dict(sampling)
    if "max_tokens" in named:
        named["max_new_tokens"] = named.pop("max_tokens")
    return {
        "input_ids": prompt,
        "sampling_params": {**named, **extra},
        "return_logprob": True,
        "return_text_in_logprobs": False,
    }


def _tell_sglang(reply: Any) -> Told:
    results = reply if isinstance(reply, list) else [reply]
    return Told(_texts(results))


SGLANG = TokenRoute(
    "/generate of SGLang", "/generate", _sglang_body, read_sglang, _tell_sglang
)


# -- OpenAI's completions, as vLLM and SGLang extend them ------------------------------


def _completions_body(
    prompt: list[int], sampling: Mapping[str, Any], model: str, extra: Mapping[str, Any]
) -> dict[str, Any]:
    return {
        "model": model,
        "prompt": prompt,
        **NEUTRAL,
        **_with_max_tokens(sampling),
        **extra,
        "logprobs": 0,
        "return_token_ids": True,
        "return_tokens_as_token_ids": True,
    }


def _tell_completions(reply: Any) -> Told:
    choices = reply["choices"]
    first = choices[0].get("prompt_token_ids") if choices else None
    return Told(_texts(choices), first or reply.get("prompt_token_ids"))


COMPLETIONS = TokenRoute(
    "/v1/completions with return_token_ids",
    "/v1/completions",
    _completions_body,
    read_completions,
    _tell_completions,
)


# -- vLLM's tokens in, tokens out ------------------------------------------------------


def _tokens_body(
    prompt: list[int], sampling: Mapping[str, Any], model: str, extra: Mapping[str, Any]
) -> dict[str, Any]:
    named = {**NEUTRAL, **_with_max_tokens(sampling), **extra, "logprobs": 0}
    return {"model": model, "token_ids": prompt, "sampling_params": named}


TOKENS = TokenRoute(
    "/inference/v1/generate of vLLM",
    "/inference/v1/generate",
    _tokens_body,
    read_tokens,
)


# -- TRL -------------------------------------------------------------------------------


def _trl_body(
    prompt: list[int], sampling: Mapping[str, Any], model: str, extra: Mapping[str, Any]
) -> dict[str, Any]:
    named = {**NEUTRAL, **_with_max_tokens(sampling), **extra}
    own = {name: value for name, value in named.items() if name in TRL_FIELDS}
    others = {name: value for name, value in named.items() if name not in TRL_FIELDS}
    return {"prompts": [prompt], **own, "generation_kwargs": others}


def _tell_trl(reply: Any) -> Told:
    prompts = reply.get("prompt_ids")
    return Told(prompt=prompts[0] if prompts else None)


TRL = TokenRoute("/generate/ of TRL", "/generate/", _trl_body, read_trl, _tell_trl)


ROUTES: dict[str, tuple[TokenRoute, ...]] = {
    "vllm": (ATROPOS, COMPLETIONS, TOKENS),
    "sglang": (SGLANG, COMPLETIONS),
    "openai": (COMPLETIONS, SGLANG, TOKENS),
    "trl": (TRL,),
}
"""By `server_type`, those tried first that are likeliest."""


def url_of(base_url: str, path: str, *, is_openai: bool) -> str:
    """Return where a route is.

    Args:
        base_url: As the user wrote it.
        path: Of the route.
        is_openai: Whether OpenAI's paths, without their version, are appended to it as
            it is.
    """
    base = base_url.rstrip("/")
    if not is_openai:
        return base.replace("/v1", "") + path
    if path.startswith(V1):
        return base + path.removeprefix("/v1")
    return base.removesuffix("/v1") + path
