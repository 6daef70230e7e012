"""What all models of settings share: types, and the sentence for a refused value.

The words of a sentence are pydantic's, except where a check of ours has better ones. No
value of a key or header is repeated.
"""

from __future__ import annotations

import enum
import os
import re
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, ClassVar
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    AnyHttpUrl,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    field_validator,
)

from rg_env.errors import (
    LONGEST_SHOWN,
    SettingError,
    shown,
    unexpected,
    unknown_name,
)

SECRET = ("api_key", "headers")


class Decides(enum.Enum):
    """Which part of the results a setting affects.

    A group of settings declares this once, as `decides`; a field that differs declares
    it in its annotation.
    """

    NOTHING = enum.auto()
    """How fast, where, and what is said"""
    ITEMS = enum.auto()
    """Which training items are sampled"""
    FEEDBACK = enum.auto()
    """How results move levels and weights, from which the next items follow"""
    COMPLETIONS = enum.auto()
    """What a server is asked for a training item"""
    SCORES = enum.auto()
    """Scores and rewards"""
    ROWS = enum.auto()
    """What a row holds beside these"""
    EVAL_ITEMS = enum.auto()
    """Which evaluation items are sampled"""
    EVAL_COMPLETIONS = enum.auto()
    """What a server is asked for an evaluation item"""


class ChoosesTasks(enum.Enum):
    """How a field says which tasks there are."""

    BY_NAME = enum.auto()
    """With names or patterns of tasks, as a list or as keys"""
    OTHERWISE = enum.auto()


_URL = TypeAdapter(AnyHttpUrl)
_URL_FORM = re.compile(
    r"https?://(\[[0-9a-f:.]+\]|(?!\d+([:/]|$))\w[\w.-]*)(:[1-9]\d*)?(/[^\s?#,\\]*)?",
    re.IGNORECASE,
)
"""Stricter than a URL: no user, question or fragment; a host that is no bare number."""


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


def only(is_allowed: Callable[[Any], object], expected: str) -> AfterValidator:
    """Return what refuses all values but some, which `expected` describes."""

    def check(value: Any) -> Any:
        if not is_allowed(value):
            raise ValueError(unexpected(value, expected))
        return value

    return AfterValidator(check)


def _no_flag(value: object) -> object:
    """Refuse true and false for a number, which pydantic reads as 1 and 0."""
    if isinstance(value, bool):
        raise ValueError(unexpected(value, "a number"))
    return value


def check_url(text: str) -> str:
    """Return the address of a server as it is; what is refused repeats no password."""
    try:
        if _URL_FORM.fullmatch(text) and _URL.validate_python(text):
            return text
    except ValidationError:  # a port or a name beyond what there is
        pass
    address = "an address like http://HOST:PORT, without a user or a query"
    raise ValueError(unexpected(re.sub("//[^/]*@", "//...@", text), address))


def without_path(url: str) -> str:
    """Return an address without its path, which may be a secret, for the log."""
    parts = urlsplit(url)
    address = f"{parts.scheme}://{parts.netloc}"
    return f"{address}/..." if parts.path.strip("/") else address


Text = Annotated[
    str,
    only(
        lambda text: text.strip() and not re.search("[\0\ud800-\udfff]", text),
        "text that is not blank, in UTF-8",
    ),
]
Line = Annotated[
    str, only(lambda text: text.isprintable() and text.strip(), "text on one line")
]
"""Text that stands in one line: of a request, a log, a table."""

FilePath = Annotated[
    str,
    AfterValidator(os.path.expanduser),
    only(
        lambda text: text.strip() and "\0" not in text and text[0] != "~",
        "a path, after ~ that of a user of this machine",
    ),
]
"""The name of a file or folder, with `~` written out."""

MinusOneOrMore = Annotated[
    int,
    Field(ge=-1),
    only(lambda value: not -1 < value <= 0, "a number above 0, or -1"),
]
"""A number above 0, or -1 for none."""

# `CheckedModel` looks for flags in fields, not among the values of a dict.
Weight = Annotated[float, BeforeValidator(_no_flag), Field(gt=0.0, le=1e9)]
"""Sums of such weights are still exact to what matters."""


class CheckedModel(BaseModel):
    """Settings that are checked when they are set, whose names are all known.

    Attributes:
        decides: What its fields decide that do not say otherwise.
    """

    decides: ClassVar[Decides] = Decides.NOTHING

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


def build(prefix: str, model: type[BaseModel], values: Mapping[str, Any]) -> Any:
    """Build a model of settings from names and values.

    Raises:
        SettingError: A name is unknown or a value not allowed. `prefix` is the section,
            as the user writes it ("env").
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
    # pydantic marks a fault of a key, as opposed to its value, with `[key]`.
    place = ".".join(str(part) for part in fault["loc"] if part != "[key]")
    # pydantic puts "Value error, " before the words of a check of ours.
    kind, _, own = fault["msg"].partition("error, ")
    name = f"{prefix}.{place[:LONGEST_SHOWN]}"
    if kind == "Value ":
        return f"{name}: {own}" if place else f"{prefix}.{own}"
    is_secret = fault["loc"] and fault["loc"][0] in SECRET
    found = "a value that is not shown" if is_secret else shown(fault["input"])
    # pydantic: "Input should be greater than 0", "Input should be 'a' or 'b'", ...
    why = fault["msg"].replace("Input should be ", "expected ")
    why = re.sub("^expected (greater|less)", r"expected a number \1", why)
    return f"{name}: {found} is not allowed; {why[:1].lower()}{why[1:]}"
