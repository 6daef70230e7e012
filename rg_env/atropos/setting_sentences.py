"""The sentence for a value that a model of settings does not take."""

from __future__ import annotations

import typing
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from rg_env.atropos.setting_checks import kinds
from rg_env.errors import SettingError, nearest, not_allowed, span, unknown_name

OWN_WORDS = ("value_error", "assertion_error")
"""Kinds of faults whose text is ours, and a whole sentence."""

WORDS = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text",
    list: "a list, as [a, b] or a, b",
    dict: "a map, as {name: value}",
}


INSIDE = {
    "dict": WORDS[dict],
    "finite": WORDS[float],
    "float": WORDS[float],
    "list": WORDS[list],
    "string": WORDS[str],
}
"""Beginnings of pydantic's names of faults to what is allowed within a list or map."""


def _range(kind: str, field: FieldInfo) -> str:
    """Return the range of a field in words."""
    bounds = {
        name: getattr(rule, name)
        for rule in field.metadata
        for name in ("ge", "gt", "le")
        if hasattr(rule, name)
    }
    return span(kind, bounds.get("ge"), bounds.get("le"), above=bounds.get("gt"))


def _choices(annotation: Any) -> list[str]:
    """Return the words that a type consists of."""
    found: list[str] = []
    for kind in kinds(annotation):
        if typing.get_origin(kind) is typing.Literal:
            found += [str(word) for word in typing.get_args(kind)]
        elif isinstance(kind, type) and issubclass(kind, Enum):
            found += [str(member.value) for member in kind]
    return found


def allowed_of(field: FieldInfo) -> str:
    """Return in words what a field may be."""
    words = [repr(word) for word in _choices(field.annotation)]
    for kind in kinds(field.annotation):
        if kind in (int, float):
            words.append(_range(WORDS[kind], field))
        elif kind in WORDS:
            words.append(WORDS[kind])
    if type(None) in kinds(field.annotation):
        words.append("None")
    *first, last = words or ["another"]
    return f"{', '.join(first)} or {last}" if first else last


def _field_of(
    model: type[BaseModel], place: Sequence[int | str]
) -> tuple[FieldInfo | None, Sequence[int | str]]:
    """Return the field that a fault is in, and where in it."""
    name, *inner = place
    return model.model_fields.get(str(name)), inner


def refusal(
    prefix: str, model: type[BaseModel], error: ValidationError
) -> SettingError:
    """Return the first fault of a model's values as one sentence."""
    fault = error.errors(include_url=False)[0]
    place, message = fault["loc"], fault["msg"]
    own = message.partition(", ")[2] if fault["type"] in OWN_WORDS else ""
    if not place:
        return SettingError(f"{prefix}.{own or message}")
    name = ".".join(map(str, (prefix, *place)))
    field, inner = _field_of(model, place)
    if own or field is None or inner:
        return SettingError(f"{name}: {own}") if own else _inside(name, fault)
    found = fault["input"]
    if len(place) == 1 and isinstance(found, str):
        meant = nearest(found, _choices(field.annotation))
        if meant is not None:
            return SettingError(
                f"{not_allowed(name, found, allowed_of(field))}; did you mean"
                f" {meant!r}?"
            )
    return not_allowed(name, found, allowed_of(field))


def _inside(name: str, fault: Mapping[str, Any]) -> SettingError:
    """Return the sentence of a fault within a list or map."""
    kind, bounds = fault["type"], fault.get("ctx", {})
    message = str(fault["msg"]).removeprefix("Input should be ")
    words = [text for start, text in INSIDE.items() if kind.startswith(start)]
    if "gt" in bounds or "le" in bounds:
        words = [span(WORDS[float], high=bounds.get("le"), above=bounds.get("gt"))]
    allowed = words[0] if words else message
    return not_allowed(name.removesuffix(".[key]"), fault["input"], allowed)


def build(prefix: str, model: type[BaseModel], values: Mapping[str, Any]) -> Any:
    """Build a model of settings.

    Args:
        prefix: The section, as the user writes it ("env").
        model: The model.
        values: Name to value.

    Raises:
        SettingError: A name is unknown or a value not allowed.
    """
    known: Iterable[str] = model.model_fields
    for name in values:
        if name not in known:
            raise unknown_name(prefix, str(name), known, "option")
    try:
        return model(**values)
    except ValidationError as error:
        raise refusal(prefix, model, error) from error
