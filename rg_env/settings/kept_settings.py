"""The settings with which results were made, stored beside the results.

A run may continue the results of another one if all settings that affect the results
are the same. How fast and where the results were made does not matter.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import yaml

from rg_env.installation import VERSION
from rg_env.settings.setting_types import without_path

OF_SERVERS = ("model_name", "server_type", "extra_body")
"""The same of a server: where it is and how it is queried changes nothing."""


def env_settings(config: Any) -> dict[str, Any]:
    """Return the settings of an environment as they are kept, without a secret."""
    settings: dict[str, Any] = config.model_dump(mode="json")
    url = without_path(settings["rollout_server_url"])
    return settings | {"rollout_server_url": url}


def settings_text(
    config: Any,
    servers: Iterable[Any],
    versions: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """Return the settings of a run and versions as YAML, without keys."""
    openai = [server.config.model_dump(mode="json") for server in servers]
    for server in openai:
        server["api_key"] = ""
        if "headers" in server:
            server["headers"] = dict.fromkeys(server["headers"], "")
    versions_used = {"reasoning_gym_environment": VERSION, **versions}
    settings = {
        "versions": versions_used,
        "env": env_settings(config),
        "openai": openai,
    }
    text: str = yaml.safe_dump(settings, sort_keys=False)
    return text


def _deciding(text: str, names: Collection[str]) -> dict[str, Any]:
    """Return those of a text of settings that decide the results, by full name."""
    settings = yaml.safe_load(text)
    env, servers = settings["env"], settings["openai"]
    return {
        **{f"env.{name}": value for name, value in env.items() if name in names},
        **{f"openai.{name}": [s.get(name) for s in servers] for name in OF_SERVERS},
        **{f"version of {name}": value for name, value in settings["versions"].items()},
    }


def why_not(path: Path, settings: str, names: Collection[str]) -> str:
    """Say why results, which "...", cannot be continued; "" if they can.

    They were made with the settings at `path`; `settings` is the text of this run's,
    `names` are those of the environment that decide the results.
    """
    try:
        then = _deciding(path.read_text(encoding="utf-8"), names)
    except (OSError, ValueError, TypeError, LookupError, AttributeError):
        return "has no settings of a run beside it"
    except yaml.YAMLError:
        return "has damaged settings beside it"
    now = _deciding(settings, names)
    both = [*now, *(name for name in then if name not in now)]
    different = [name for name in both if then.get(name) != now.get(name)]
    return f"was made with another {', '.join(different)}" if different else ""
