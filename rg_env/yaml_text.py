"""Loads YAML from a file or an option, with errors of one line."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml


class YamlError(ValueError):
    """A text cannot be loaded; the message is the end of a sentence, with the place."""


class _Loader(yaml.SafeLoader):
    """A loader that refuses duplicate keys, because only one of two would count."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> Any:
        seen = set()
        for key, _ in node.value:
            if key.tag != "tag:yaml.org,2002:merge" and str(key.value) in seen:
                raise YamlError(f"line {key.start_mark.line + 1}: a second {key.value}")
            seen.add(str(key.value))
        return super().construct_mapping(node, deep)


# `None` is Python's null, and that of the command line.
_Loader.add_implicit_resolver("tag:yaml.org,2002:null", re.compile("None$"), ["N"])


def load(text: str) -> Any:
    """Return the value of a text, None if it is empty; raises `YamlError`."""
    try:
        return yaml.load(text, _Loader)  # noqa: S506 - a safe loader
    except yaml.MarkedYAMLError as error:  # its lines might contain a secret
        mark = error.problem_mark or error.context_mark
        place = f"line {mark.line + 1}, column {mark.column + 1}" if mark else "it"
        raise YamlError(f"{place}: {error.problem or error.context}") from error
    except (yaml.YAMLError, ValueError) as error:
        raise YamlError(" ".join(str(error).split())) from error


def read(path: str) -> Any:
    """Return the value of a file in UTF-8; raises `YamlError`."""
    try:
        text = Path(path).expanduser().read_text(encoding="utf-8-sig")
    except (OSError, UnicodeError) as error:
        raise YamlError(getattr(error, "strerror", None) or str(error)) from error
    return load(text)
