"""Types and checks of settings, and the sentence for a refused value."""

from __future__ import annotations

import enum
import os
import re
import types
import typing
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    AnyHttpUrl,
    BaseModel,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    field_validator,
)

from rg_env.errors import SettingError, shown, unexpected, unknown_name

SECRET = ("api_key", "headers", "openai")  # no message repeats their values


class Affects(enum.Enum):
    """What a setting affects.

    It is the `affects` of the setting's group, unless its annotation has another.
    """

    NOTHING = enum.auto()  # only speed, paths and messages
    ITEMS = enum.auto()  # the sampled training items
    FEEDBACK = enum.auto()  # the changes of levels and weights
    COMPLETIONS = enum.auto()  # requests for training items
    SCORES = enum.auto()  # scores and rewards
    ROWS = enum.auto()  # other contents of a row
    EVAL_ITEMS = enum.auto()  # the sampled evaluation items
    EVAL_COMPLETIONS = enum.auto()  # requests for evaluation items


def types_in(annotation: Any) -> Iterator[Any]:
    """Yield the types in an annotation.

    Example:
        >>> list(types_in(list[int] | None))
        [<class 'list'>, <class 'NoneType'>]
    """
    arguments = typing.get_args(annotation)
    origin = typing.get_origin(annotation)
    if origin is Annotated:
        yield from types_in(arguments[0])
    elif origin in (typing.Union, types.UnionType):
        for argument in arguments:
            yield from types_in(argument)
    else:
        yield annotation if origin in (None, typing.Literal) else origin


_URL = TypeAdapter(AnyHttpUrl)
_URL_FORM = re.compile(r"https?://[^\s/?#@,\\]+(/[^\s?#,\\]*)?", re.IGNORECASE)
"""A URL without a user, a query or a fragment."""


def check_url(text: str) -> str:
    """Return the URL of a server unchanged; an error hides a user and a query."""
    try:
        if _URL_FORM.fullmatch(text) and _URL.validate_python(text):
            return text
    except ValidationError:
        pass
    address = "an address like http://HOST:PORT, without a user or a query"
    raise ValueError(unexpected(re.sub(".*@|[?#].*", "...", text), address))


def without_path(url: str) -> str:
    """Return a URL for the log, without its path, which may be a secret.

    Example:
        >>> without_path("http://localhost:8000/secret")
        'http://localhost:8000/...'
    """
    parts = urlsplit(url)
    address = f"{parts.scheme}://{parts.netloc}"
    return f"{address}/..." if parts.path.strip("/") else address


def _check_not_zero(value: int) -> int:
    if value == 0:
        raise ValueError(unexpected(value, "a number above 0, or -1"))
    return value


Url = Annotated[str, AfterValidator(check_url)]
Text = Annotated[str, Field(min_length=1)]
FilePath = Annotated[str, Field(min_length=1), AfterValidator(os.path.expanduser)]
PositiveOrMinusOne = Annotated[int, Field(ge=-1), AfterValidator(_check_not_zero)]
Weight = Annotated[float, Field(gt=0.0, le=1e9)]  # above it, sums lose precision


class CheckedModel(BaseModel):
    """Settings that are checked when they are set; unknown names are refused."""

    affects: ClassVar[Affects] = Affects.NOTHING

    model_config = ConfigDict(
        extra="forbid",
        validate_assignment=True,
        allow_inf_nan=False,
        protected_namespaces=(),
        use_attribute_docstrings=True,
    )

    @field_validator("*", mode="before")
    @classmethod
    def _refuse_booleans(cls, value: object, info: ValidationInfo) -> object:
        """Refuse true and false for a number; pydantic would take them for 1 and 0."""
        annotation = cls.model_fields[str(info.field_name)].annotation
        if isinstance(value, bool) and bool not in types_in(annotation):
            raise ValueError(unexpected(value, "no true or false"))
        return value


def build(section: str, model: type[BaseModel], values: Mapping[str, Any]) -> Any:
    """Build a model of settings from names and values.

    Raises:
        SettingError: A name or a value is wrong; the message begins with the section
            and the field ("env.seed").
    """
    for name in values:
        if name not in model.model_fields:
            raise unknown_name(section, str(name), model.model_fields, "option")
    try:
        return model(**values)
    except ValidationError as error:
        faults = error.errors(include_url=False)
        fault = max(faults, key=lambda each: len(each["loc"]))
        # pydantic adds parts such as `[key]`, `list[str]` and `constrained-str`.
        parts = [part for part in map(str, fault["loc"]) if "[" not in part]
        path = ".".join(parts).removesuffix(".constrained-str")
        if fault["type"] == "value_error":  # one of our checks
            reason = str(fault["ctx"]["error"])
        elif fault["loc"][0] in SECRET:
            reason = fault["msg"]
        else:
            reason = f"{shown(fault['input'])} is not allowed: {fault['msg']}"
        # The message of a check of several fields begins with one of them.
        name = f"{section}.{path}: " if path else f"{section}."
        raise SettingError(f"{name}{reason}") from error
