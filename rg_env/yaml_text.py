"""YAML as people write it into a file or an option, and why it cannot be used."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml


class YamlError(ValueError):
    """Why a text cannot be used, and where; the end of a sentence on one line."""


class _Loader(yaml.SafeLoader):
    """Refuses a key that is given twice, of which only one would count."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> Any:
        seen = set()
        for key, _ in node.value:
            if key.tag != "tag:yaml.org,2002:merge" and str(key.value) in seen:
                raise YamlError(f"line {key.start_mark.line + 1}: a second {key.value}")
            seen.add(str(key.value))
        return super().construct_mapping(node, deep)


# As Python writes it, and the options of the command line.
_Loader.add_implicit_resolver("tag:yaml.org,2002:null", re.compile("None$"), ["N"])


def load(text: str) -> Any:
    """Return what a text says, None if it says nothing; raises `YamlError`."""
    try:
        return yaml.load(text, _Loader)  # noqa: S506 - a safe loader
    except yaml.MarkedYAMLError as error:  # without its lines, which may hold a key
        mark = error.problem_mark or error.context_mark
        place = f"line {mark.line + 1}, column {mark.column + 1}" if mark else "it"
        raise YamlError(f"{place}: {error.problem or error.context}") from error
    except (yaml.YAMLError, ValueError) as error:
        raise YamlError(" ".join(str(error).split())) from error


def read(path: str) -> Any:
    """Return what a file in UTF-8 says, as `load`."""
    try:
        text = Path(path).expanduser().read_text(encoding="utf-8-sig")
    except (OSError, UnicodeError) as error:
        raise YamlError(getattr(error, "strerror", None) or str(error)) from error
    return load(text)
