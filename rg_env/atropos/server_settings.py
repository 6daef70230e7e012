"""The settings of an inference server, with ranges that the framework leaves out."""

from __future__ import annotations

from typing import Any

from atroposlib.envs.server_handling.server_manager import APIServerConfig
from pydantic import ConfigDict, Field, ValidationInfo, field_validator

from rg_env.atropos import setting_sentences
from rg_env.atropos.http_urls import check_url
from rg_env.atropos.setting_checks import check_value

A_WEEK_S = 7 * 24 * 3600
MANY_REQUESTS = 1_000_000
"""In flight; more than any machine has connections for."""

MANY_TIMINGS = 10_000_000
"""Kept in memory, 8 bytes and more each."""


class ServerSettings(APIServerConfig):
    """What `APIServerConfig` says of a server, checked.

    Source: atroposlib 0.4.0, APIServerConfig; differs: ranges are checked, unknown
    fields are refused.
    """

    model_config = ConfigDict(
        extra="forbid",
        validate_assignment=True,
        allow_inf_nan=False,
        protected_namespaces=(),
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

    @field_validator("*", mode="before")
    @classmethod
    def _is_no_odd_value(cls, value: object, info: ValidationInfo) -> object:
        name = str(info.field_name)
        check_value(cls.model_fields[name], name, value)
        return value

    @field_validator("base_url")
    @classmethod
    def _is_url(cls, url: str | None) -> str | None:
        if url:
            check_url(url, "/v1")
        return url


def checked_kind(kind: type[APIServerConfig]) -> type[APIServerConfig]:
    """Return the class that checks what a class of configs leaves unchecked.

    That of somebody else is left as it is: it may know more types of servers.
    """
    return ServerSettings if kind is APIServerConfig else kind


def check_server(server: APIServerConfig) -> None:
    """Refuse values that no server can be asked with, in a config of the framework's.

    Raises:
        SettingError: A value is not allowed.
    """
    if isinstance(server, ServerSettings):
        return
    # A subclass may know more types of servers, and more fields.
    known = set(ServerSettings.model_fields) - {"server_type"}
    given: dict[str, Any] = server.model_dump(include=known, exclude_unset=True)
    setting_sentences.build("openai", ServerSettings, given)
