"""What all models of settings share: types, and the sentence for a refused value.

The words of a sentence are pydantic's, except where a check of ours has better ones. No
value of a key or header is repeated.
"""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

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

from rg_env.errors import LONGEST_SHOWN, SettingError, shown, unknown_name

SECRET = ("api_key", "headers")

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


def only(is_allowed: Callable[[Any], object], allowed: str) -> AfterValidator:
    """Return what refuses all values but some, which `allowed` describes."""

    def check(value: Any) -> Any:
        if not is_allowed(value):
            raise ValueError(f"found {shown(value)}; allowed is {allowed}")
        return value

    return AfterValidator(check)


def _no_flag(value: object) -> object:
    """Refuse true and false for a number, which pydantic reads as 1 and 0."""
    if isinstance(value, bool):
        raise ValueError(f"found {value}; allowed is a number")
    return value


def check_url(text: str) -> str:
    """Return the address of a server as it is; what is refused repeats no password."""
    try:
        if _URL_FORM.fullmatch(text) and _URL.validate_python(text):
            return text
    except ValidationError:  # a port or a name beyond what there is
        pass
    raise ValueError(
        f"found {shown(re.sub(r'//[^/]*@', '//...@', text))}; allowed is an address"
        " like http://HOST:PORT, without a user or a question"
    )


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
    place = ".".join(str(part) for part in fault["loc"] if part != "[key]")
    kind, _, own = fault["msg"].partition("error, ")
    name = f"{prefix}.{place[:LONGEST_SHOWN]}"
    if kind in ("Value ", "Assertion "):
        return f"{name}: {own}" if place else f"{prefix}.{own}"
    is_secret = fault["loc"] and fault["loc"][0] in SECRET
    found = "a value that is not shown" if is_secret else shown(fault["input"])
    return f"{name}: found {found}; {fault['msg'][:1].lower()}{fault['msg'][1:]}"


# -- whether a path can be written, tried before there is anything to write -----------

LONGEST_ADDITION = "_9999.html"
"""What is put behind the name of a file that exists, and of a page beside it."""


def check_folder(field: str, path: str) -> None:
    """Refuse a folder into which no file can be written; nothing is left of the try."""
    with _made(field, path, Path(path)):
        pass


def check_file(field: str, path: str) -> None:
    """Refuse a file that is none, or beside which none can be written."""
    file = Path(path)
    with _made(field, path, file.parent):
        # "." and "data/" are folders, whether they are there or not.
        is_folder = not file.name or path.endswith(("/", "/.", "/..")) or file.is_dir()
        if is_folder or (file.exists() and not file.is_file()):
            raise OSError("it is no ordinary file")
        longest = file.parent / f"{file.name}{LONGEST_ADDITION}"
        longest.touch()
        longest.unlink()


@contextlib.contextmanager
def _made(field: str, path: str, folder: Path) -> Iterator[None]:
    """Make a folder with those above it for a while, and try it."""
    missing: list[Path] = []
    try:
        for each in (folder, *folder.parents):
            if os.path.lexists(each):
                break
            missing.append(each)
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder):
            yield
    except (OSError, ValueError) as error:
        said = getattr(error, "strerror", None) or str(error)
        sentence = f"{field}: {shown(path)} cannot be written ({said})"
        raise SettingError(sentence) from error
    finally:
        for each in missing:
            # It is gone, or another process has written to it in the meantime.
            with contextlib.suppress(OSError, ValueError):
                each.rmdir()
