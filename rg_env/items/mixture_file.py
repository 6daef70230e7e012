"""The file that describes a mixture: the format of the library's `composite`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rg_env import yaml_text
from rg_env.errors import SettingError, shown
from rg_env.yaml_text import YamlFault

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
        content = yaml_text.read(path)
    except YamlFault as fault:
        raise SettingError(f"{FIELD}: {shown(path)} cannot be used: {fault}") from fault
    if not isinstance(content, dict) or "datasets" not in content:
        raise SettingError(f"{FIELD}: {shown(path)} has no list `datasets`")
    return {str(key): value for key, value in content.items()}
