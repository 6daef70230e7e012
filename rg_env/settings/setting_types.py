"""What all models of settings share: types, and the sentence for a refused value."""

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

from rg_env.errors import SettingError, unexpected, unknown_name

SECRET = ("api_key", "headers", "openai")  # which no sentence repeats


class Decides(enum.Enum):
    """What a setting affects: `decides` of its group, unless its annotation says it."""

    NOTHING = enum.auto()  # how fast, where, and what is said
    ITEMS = enum.auto()  # which training items are sampled
    FEEDBACK = enum.auto()  # how results move levels and weights
    COMPLETIONS = enum.auto()  # what a server is asked for a training item
    SCORES = enum.auto()  # scores and rewards
    ROWS = enum.auto()  # what a row holds beside these
    EVAL_ITEMS = enum.auto()  # which evaluation items are sampled
    EVAL_COMPLETIONS = enum.auto()  # what a server is asked for an evaluation item


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


_URL = TypeAdapter(AnyHttpUrl)
_URL_FORM = re.compile(r"https?://[^\s/?#@,\\]+(/[^\s?#,\\]*)?", re.IGNORECASE)
"""Stricter than a URL: one address, without a user, a question or a fragment."""


def check_url(text: str) -> str:
    """Return the address of a server as it is; what is refused repeats no password."""
    try:
        if _URL_FORM.fullmatch(text) and _URL.validate_python(text):
            return text
    except ValidationError:
        pass
    address = "an address like http://HOST:PORT, without a user or a query"
    raise ValueError(unexpected(re.sub("//[^/]*@", "//...@", text), address))


def without_path(url: str) -> str:
    """Return an address without its path, which may be a secret, for the log."""
    parts = urlsplit(url)
    address = f"{parts.scheme}://{parts.netloc}"
    return f"{address}/..." if parts.path.strip("/") else address


def _minus_one_or_more(value: int) -> int:
    if value == 0:
        raise ValueError(unexpected(value, "a number above 0, or -1"))
    return value


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError(unexpected(text, "text that is not empty"))
    return text


Url = Annotated[str, AfterValidator(check_url)]
Text = Annotated[str, AfterValidator(_not_blank)]
FilePath = Annotated[str, Field(min_length=1), AfterValidator(os.path.expanduser)]
MinusOneOrMore = Annotated[int, Field(ge=-1), AfterValidator(_minus_one_or_more)]
Weight = Annotated[float, Field(gt=0.0, le=1e9)]  # sums are still exact enough


class CheckedModel(BaseModel):
    """Settings that are checked when they are set, whose names are all known."""

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
    def _is_no_flag(cls, value: object, info: ValidationInfo) -> object:
        """Refuse true and false for a number, which pydantic reads as 1 and 0."""
        annotation = cls.model_fields[str(info.field_name)].annotation
        if isinstance(value, bool) and bool not in kinds(annotation):
            raise ValueError(unexpected(value, "no true or false"))
        return value


_EXPECTED = {
    "bool": "true or false",
    "dict": "a map such as {NAME: VALUE}",
    "float": "a number",
    "greater": "a number",
    "int": "a whole number",
    "less": "a number",
    "list": "a list such as [A, B]",
    "string": "text",
    "too": "a list",
}
"""First word of the type of an error of pydantic, to what a setting expects."""


def _expected(fault: Mapping[str, Any]) -> str:
    """Return what a setting expects instead of a value, from an error of pydantic."""
    kind = _EXPECTED.get(fault["type"].partition("_")[0], "")
    _, _, limit = fault["msg"].partition(" after ")[0].partition(" should ")
    if "valid " in limit:
        return kind
    limit = limit.removeprefix("be ").replace("have", "of")
    return f"{kind} {limit.replace('match pattern', 'matching')}".strip()


def build(section: str, model: type[BaseModel], values: Mapping[str, Any]) -> Any:
    """Build a model of settings from names and values.

    The sentence of a `SettingError` begins with the section and the field ("env.seed").
    """
    for name in values:
        if name not in model.model_fields:
            raise unknown_name(section, str(name), model.model_fields, "option")
    try:
        return model(**values)
    except ValidationError as error:
        faults = error.errors(include_url=False)
        fault = max(faults, key=lambda each: len(each["loc"]))
        # pydantic's own parts are `[key]` and names of types, as `list[str]`.
        place = ".".join(str(part) for part in fault["loc"] if "[" not in str(part))
        if fault["type"] == "value_error":  # a check of ours
            why = str(fault["ctx"]["error"])
        elif fault["loc"][:1] and fault["loc"][0] in SECRET:
            why = f"expected {_expected(fault)}"
        else:
            why = unexpected(fault["input"], _expected(fault))
        # A check of the whole model begins with the field itself.
        name = f"{section}.{place}: " if place else f"{section}."
        raise SettingError(f"{name}{why}") from error
