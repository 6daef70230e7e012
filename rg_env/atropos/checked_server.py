"""The settings of an inference server that are checked without the framework."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, field_validator

from rg_env.atropos.http_urls import check_url
from rg_env.atropos.request_extras import check_extra_body, check_headers
from rg_env.atropos.setting_checks import CheckedModel

A_WEEK_S = 7 * 24 * 3600
MANY_REQUESTS = 1_000_000
"""In flight; more than any machine has connections for."""

MANY_TIMINGS = 10_000_000
"""Kept in memory, 8 bytes and more each."""


class CheckedServer(CheckedModel):
    """What `ServerSettings` narrows of the framework's settings of a server."""

    base_url: str | None = Field(default="", description="Where it is")
    server_type: Literal["openai", "trl", "sglang", "vllm"] = Field(
        default="openai", description="What it is"
    )
    timeout: int = Field(
        default=1200, ge=1, le=A_WEEK_S, description="Seconds for one request"
    )
    num_max_requests_at_once: int = Field(
        default=512, ge=1, le=MANY_REQUESTS, description="Training requests in flight"
    )
    num_requests_for_eval: int = Field(
        default=64, ge=1, le=MANY_REQUESTS, description="Evaluation requests in flight"
    )
    rolling_buffer_length: int = Field(
        default=1000,
        ge=0,
        le=MANY_TIMINGS,
        description="Timings kept for the statistics of Atropos",
    )

    headers: dict[str, str] = Field(
        default_factory=dict, description="Headers of every request, beside the key"
    )
    extra_body: dict[str, Any] = Field(
        default_factory=dict,
        description="Fields of every request's body, as top_k, stop, seed",
    )

    @field_validator("base_url")
    @classmethod
    def _is_url(cls, url: str | None) -> str | None:
        if url:
            check_url(url, "/v1")
        return url

    @field_validator("headers", mode="before")
    @classmethod
    def _are_headers(cls, headers: object) -> object:
        check_headers(headers)
        return headers

    @field_validator("extra_body", mode="before")
    @classmethod
    def _is_extra(cls, extra: object) -> object:
        check_extra_body(extra)
        return extra
