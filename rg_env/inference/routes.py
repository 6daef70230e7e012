"""The routes at which servers return token ids with their log-probabilities.

    /v1/completions   vLLM from 0.10.2 (TRL's server is one, from TRL 1.12) and SGLang
                      from July 2026, which take `return_token_ids`; older vLLM by
                      `return_tokens_as_token_ids`
    /generate         SGLang
    /generate         the vLLM server of Atropos' example trainer, in a form of its own

Each takes the prompt as ids, so that what a trainer learns from is what the model was
given. A stock vLLM samples with what the model's `generation_config.json` says (top_k
and others) where a request does not; so what the settings leave out is sent as neutral.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from rg_env.inference.replies import (
    Generated,
    read_atropos,
    read_completions,
    read_sglang,
)

NEUTRAL = {
    "top_k": -1,
    "min_p": 0.0,
    "repetition_penalty": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
}
"""Sampling that changes nothing."""

NUM_LIKELIEST = 5

Body = dict[str, Any]
SamplingFields = Mapping[str, Any]


class ReplyDetails(NamedTuple):
    """What a reply says beside tokens and log-probabilities.

    Attributes:
        texts: Of the completions, shape (G,), None of one without.
        prompt: The tokens of the prompt as the server took it; None where it does not
            say.
    """

    texts: list[Any]
    prompt: list[int] | None = None


@dataclasses.dataclass(frozen=True)
class TokenRoute:
    """One way of querying for token ids.

    Attributes:
        path: Below the server's root.
        body: Of a request: prompt, sampling, name of the model and what the setting
            `extra_body` adds.
        read: The body of a reply into completions; see replies.py.
        details: The JSON of a reply into what else it says.
        likeliest: Fields of a body that want the likeliest tokens too.
        of_likeliest: The JSON of a reply to such a body into the log-probabilities of
            the likeliest first tokens, and perhaps of the one that was sampled.
    """

    path: str
    body: Callable[[list[int], SamplingFields, str, Mapping[str, Any]], Body]
    read: Callable[..., Generated]
    details: Callable[[Any], ReplyDetails]
    likeliest: Body
    of_likeliest: Callable[[Any], Iterable[Any]]


def _with_max_tokens(sampling: SamplingFields) -> Body:
    """Return what is sampled with, the limit under vLLM's name."""
    named = dict(sampling)
    for other in ("max_new_tokens", "max_completion_tokens"):
        if other in named:
            named["max_tokens"] = named.pop(other)
    return named


# -- OpenAI's completions, as vLLM and SGLang extend them ------------------------------


def _completions_body(
    prompt: list[int], sampling: SamplingFields, model: str, extra: Mapping[str, Any]
) -> Body:
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


def _completions_details(reply: Any) -> ReplyDetails:
    choices = reply["choices"]
    prompt = choices[0].get("prompt_token_ids") or reply.get("prompt_token_ids")
    return ReplyDetails([choice.get("text") for choice in choices], prompt)


COMPLETIONS = TokenRoute(
    "/v1/completions",
    _completions_body,
    read_completions,
    _completions_details,
    {"logprobs": NUM_LIKELIEST},
    lambda reply: reply["choices"][0]["logprobs"]["top_logprobs"][0].values(),
)


# -- the server of Atropos' example trainer --------------------------------------------


def _atropos_body(
    prompt: list[int], sampling: SamplingFields, model: str, extra: Mapping[str, Any]
) -> Body:
    own = {"prompt": {"prompt_token_ids": prompt}, "logprobs": 0}
    return {**own, **_with_max_tokens(sampling), **extra}


ATROPOS = TokenRoute(
    "/generate",
    _atropos_body,
    read_atropos,
    lambda reply: ReplyDetails(reply.get("text") or [], reply.get("prompt_token_ids")),
    {"logprobs": NUM_LIKELIEST},
    lambda reply: reply["logprobs"][0][0][0].values(),
)


# -- SGLang ----------------------------------------------------------------------------


def _sglang_body(
    prompt: list[int], sampling: SamplingFields, model: str, extra: Mapping[str, Any]
) -> Body:
    named = dict(sampling)
    if "max_tokens" in named:
        named["max_new_tokens"] = named.pop("max_tokens")
    return {
        "input_ids": prompt,
        "sampling_params": {**named, **extra},
        "return_logprob": True,
        "return_text_in_logprobs": False,
    }


def _results(reply: Any) -> list[Any]:
    return reply if isinstance(reply, list) else [reply]


SGLANG = TokenRoute(
    "/generate",
    _sglang_body,
    read_sglang,
    lambda reply: ReplyDetails([result.get("text") for result in _results(reply)]),
    {"top_logprobs_num": NUM_LIKELIEST},
    lambda reply: [
        entry[0] for entry in _results(reply)[0]["meta_info"]["output_top_logprobs"][0]
    ],
)
