"""What all models of settings share: types, and the sentence for a refused value.

The words of a sentence are pydantic's, except where a check of ours has better ones. No
value of a key or header is repeated.
"""

from __future__ import annotations

import os
import types
import typing
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
)

from rg_env.errors import LONGEST_SHOWN, SettingError, shown, unknown_name

SECRET = ("api_key", "headers")


def kinds(annotation: Any) -> Iterator[Any]:
    """Yield the types that an annotation is made of, parts of a union one by one."""
    parts = typing.get_args(annotation)
    origin = typing.get_origin(annotation)
    if origin is Annotated:
        yield from kinds(parts[0])
    elif origin in (typing.Union, types.UnionType):
        for part in parts:
            yield from kinds(part)
    else:
        yield annotation if origin in (None, typing.Literal) else origin


def _no_flag(value: object) -> object:
    """Refuse true and false for a number, which pydantic reads as 1 and 0."""
    if isinstance(value, bool):
        raise ValueError(f"found {value}; allowed is a number")
    return value


def _text(text: str) -> str:
    if not text.strip() or "\0" in text or not _is_utf8(text):
        raise ValueError(
            f"found {shown(text)}; allowed is text that is not blank, in UTF-8"
        )
    return text


def _is_utf8(text: str) -> bool:
    return not any("\ud800" <= sign <= "\udfff" for sign in text)


def _line(text: str) -> str:
    if not text.isprintable() or not text.strip():
        raise ValueError(f"found {shown(text)}; allowed is text on one line")
    return text


def _path(text: str) -> str:
    if not text.strip() or "\0" in text:
        raise ValueError(f"found {shown(text)}; allowed is a path")
    path = os.path.expanduser(text)  # noqa: PTH111 - Path raises where it knows no user
    if path.startswith("~"):
        raise ValueError(f"found {shown(text)}; there is no such user")
    return path


def _not_zero(value: float) -> float:
    if -1 < value <= 0:
        raise ValueError(f"found {value}; allowed is a number above 0, or -1")
    return value


Text = Annotated[str, AfterValidator(_text)]
Line = Annotated[str, AfterValidator(_line)]
"""Text that stands in one line: of a request, a log, a table."""

FilePath = Annotated[str, AfterValidator(_path)]
"""The name of a file or folder, with `~` written out."""

MinusOneOrMore = Annotated[int, Field(ge=-1), AfterValidator(_not_zero)]
"""A number above 0, or -1 for none."""

Weight = Annotated[float, BeforeValidator(_no_flag), Field(gt=0.0, le=1e9)]
"""Sums of such weights are still exact to what matters."""


class CheckedModel(BaseModel):
    """Settings that are checked when they are set, whose names are all known."""

    model_config = ConfigDict(
        extra="forbid",
        validate_assignment=True,
        allow_inf_nan=False,
        protected_namespaces=(),
        use_attribute_docstrings=True,
    )

    @field_validator("*", mode="before")
    @classmethod
    def _is_no_odd_flag(cls, value: object, info: ValidationInfo) -> object:
        annotation = cls.model_fields[str(info.field_name)].annotation
        found = set(kinds(annotation))
        return _no_flag(value) if {int, float} & found and bool not in found else value


def fault_of(error: Exception) -> str:
    """Return in one line what an exception says, without the value it was about."""
    if isinstance(error, ValidationError):
        return str(error.errors(include_url=False)[0]["msg"])
    return str(error).strip().split("\n", 1)[0].rstrip(".")


def build(prefix: str, model: type[BaseModel], values: Mapping[str, Any]) -> Any:
    """Build a model of settings.

    Args:
        prefix: The section, as the user writes it ("env").
        model: The model.
        values: Name to value.

    Raises:
        SettingError: A name is unknown or a value not allowed.
    """
    for name in values:
        if name not in model.model_fields:
            raise unknown_name(prefix, str(name), model.model_fields, "option")
    try:
        return model(**values)
    except ValidationError as error:
        raise SettingError(_sentence(prefix, error)) from error


def _sentence(prefix: str, error: ValidationError) -> str:
    """Return the first fault of a model's values: the setting, what it is, and why."""
    fault = error.errors(include_url=False)[0]
    place = ".".join(str(part) for part in fault["loc"] if part != "[key]")
    kind, _, own = fault["msg"].partition("error, ")
    name = f"{prefix}.{place[:LONGEST_SHOWN]}"
    if kind in ("Value ", "Assertion "):
        return f"{name}: {own}" if place else f"{prefix}.{own}"
    is_secret = fault["loc"] and fault["loc"][0] in SECRET
    found = "a value that is not shown" if is_secret else shown(fault["input"])
    return f"{name}: found {found}; {fault['msg'][:1].lower()}{fault['msg'][1:]}"
