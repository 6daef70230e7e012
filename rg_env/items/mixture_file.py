"""The file that describes a mixture: the format of the library's `composite`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from rg_env.errors import SettingError

FIELD = "env.mixture"


def read(path: str, also_given: Mapping[str, Any] | None) -> dict[str, Any]:
    """Read the parameters of `composite` from a YAML file.

    Args:
        path: The file; `datasets` in it lists name, weight and config.
        also_given: What `task_params` says of `composite`, which must be nothing.

    Raises:
        SettingError: The file cannot be read or holds something else.
    """
    if also_given is not None:
        raise SettingError(f"{FIELD}: task_params.composite is given as well; keep one")
    try:
        content = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingError(f"{FIELD}: {path!r}: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        where = str(error).replace("\n", " ")
        raise SettingError(f"{FIELD}: {path!r} is no YAML: {where}") from error
    if not isinstance(content, dict) or "datasets" not in content:
        raise SettingError(f"{FIELD}: {path!r} has no list `datasets`")
    return {str(key): value for key, value in content.items()}
