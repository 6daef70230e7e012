"""The settings of an inference server that are checked without the framework."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from rg_env.atropos.http_urls import check_url
from rg_env.atropos.request_extras import check_extra_body, check_headers
from rg_env.atropos.setting_checks import CheckedModel, Line


def _url_or_none(url: str) -> str:
    return check_url(url, "/v1") if url else url


def _key(key: str) -> str:
    if re.search(r"[^!-~]", key):  # said without the key
        raise ValueError(
            "found white space or a sign beyond ASCII in it; allowed is a key as it was"
            " issued"
        )
    return key


class CheckedServer(CheckedModel):
    """The inference server: where completions come from."""

    base_url: Annotated[str, AfterValidator(_url_or_none)] | None = ""
    """Where it is"""
    server_type: Literal["openai", "trl", "sglang", "vllm"] = "openai"
    """What it is; openai is any server of that protocol"""
    model_name: Line = "default"
    """The model that is asked for"""
    api_key: Annotated[str, AfterValidator(_key)] | None = ""
    """Its key"""
    tokenizer_name: Line = "none"
    """Its tokenizer; none is env.tokenizer_name's"""
    timeout: int = Field(1200, ge=1, le=7 * 24 * 3600)
    """Seconds that a request may take"""
    num_max_requests_at_once: int = Field(512, ge=1, le=1_000_000)
    """Requests in flight, of training"""
    num_requests_for_eval: int = Field(64, ge=1, le=1_000_000)
    """Requests in flight, of evaluation"""
    health_check: bool = True
    """Ask now and then whether it is well"""
    n_kwarg_is_ignored: bool = False
    """It gives one completion, whatever `n` says"""
    rolling_buffer_length: int = Field(1000, ge=0, le=10_000_000)
    """Requests whose times W&B shows"""
    headers: Annotated[dict[str, str], BeforeValidator(check_headers)] = Field(
        default_factory=dict
    )
    """Headers of every request, beside the key"""
    extra_body: Annotated[dict[str, Any], BeforeValidator(check_extra_body)] = Field(
        default_factory=dict
    )
    """Fields of every request's body, as top_k, stop, seed"""
