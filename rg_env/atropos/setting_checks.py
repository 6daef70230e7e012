"""What no setting may be, whichever model it is of: a flag for a number, blank text."""

from __future__ import annotations

import re
import typing
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationInfo, field_validator
from pydantic.fields import FieldInfo

from rg_env.errors import shown

PATHS = frozenset(
    {
        "data_dir_to_save_evals",
        "data_dumps_dir",
        "data_path_to_save_groups",
        "mixture",
    }
)
NAMES = frozenset({"api_key", "model_name", "tokenizer_name", "wandb_name"})
"""Text that stands in one line: of a request, a log, a table."""

MAY_BE_BLANK = frozenset({"api_key", "base_url"})
"""Where the framework's own default is an empty text, and means none."""


def kinds(annotation: Any) -> Iterator[Any]:
    """Yield the types that an annotation is made of, parts of a union one by one."""
    parts = typing.get_args(annotation)
    origin = typing.get_origin(annotation)
    if origin is typing.Annotated:
        yield from kinds(parts[0])
    elif origin in UNIONS:
        for part in parts:
            yield from kinds(part)
    else:
        yield annotation if origin is None or origin is typing.Literal else origin


UNIONS = (typing.Union, type(int | str))


def _check_text(name: str, text: str) -> None:
    if not text.strip() and (text or name not in MAY_BE_BLANK):
        raise ValueError(f"found {shown(text)}; allowed is text that is not blank")
    if name == "api_key" and re.search(r"[^!-~]", text):
        # Said without the key.
        raise ValueError(
            "found white space or a sign beyond ASCII in it; allowed is a key as it was"
            " issued"
        )
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        if name not in PATHS:
            raise ValueError(
                f"found {shown(text)}; allowed is text that is valid UTF-8"
            ) from None
    if "\0" in text or (name in NAMES and not text.isprintable()):
        raise ValueError(f"found {shown(text)}; allowed is text on one line")


def check_name(name: str) -> None:
    """Refuse a name in a list that is none.

    Raises:
        ValueError: What was found, and what is allowed.
    """
    if not name.strip() or not name.isprintable():
        raise ValueError(f"found {shown(name)} in it; allowed are names")


def check_no_flag(value: object) -> object:
    """Refuse true and false for a number, which they would silently be read as.

    Raises:
        ValueError: What was found, and what is allowed.
    """
    if isinstance(value, bool):
        raise ValueError(f"found {value!r}; allowed is a number")
    return value


def check_value(field: FieldInfo, name: str, value: object) -> None:
    """Refuse a value before it is read as the field's type.

    Args:
        field: What the model says of the field.
        name: The field's name.
        value: What it was given.

    Raises:
        ValueError: What was found, and what is allowed.
    """
    found = set(kinds(field.annotation))
    if bool not in found and found & {int, float}:
        check_no_flag(value)
    if isinstance(value, str) and str in found:
        _check_text(name, value)


def check_minus_one(value: int) -> None:
    """Refuse 0 where -1 stands for no number, and a number is above 0.

    Raises:
        ValueError: What was found, and what is allowed.
    """
    if value != -1 and value <= 0:
        raise ValueError(f"found {value}; allowed is a number above 0, or -1")


class CheckedModel(BaseModel):
    """Settings that are checked when they are set, whose names are all known."""

    model_config = ConfigDict(
        extra="forbid",
        validate_assignment=True,
        allow_inf_nan=False,
        protected_namespaces=(),
    )

    @field_validator("*", mode="before")
    @classmethod
    def _is_no_odd_value(cls, value: object, info: ValidationInfo) -> object:
        name = str(info.field_name)
        check_value(cls.model_fields[name], name, value)
        return value
