"""A file of results, which the same command continues.

The settings with which results were made are stored beside them. A run may continue the
results of another one if all settings that affect the results are the same; how fast
and where they were made does not matter.
"""

from __future__ import annotations

import itertools
import json
import logging
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import yaml

from rg_env.executor import release_gil
from rg_env.installation import VERSION
from rg_env.line_file import LineFile
from rg_env.settings.environment_settings import affecting
from rg_env.settings.setting_checks import Affects, without_path

logger = logging.getLogger(__name__)

T = TypeVar("T")

SAMPLES = "samples.jsonl"
SETTINGS = "evaluate_config.yaml"


# -- the settings beside results -------------------------------------------------------


def settings_path(results: Path) -> Path:
    """Return where the settings stand that rows or samples were made with."""
    is_evaluation = results.name == SAMPLES
    name = SETTINGS if is_evaluation else f"{results.name}.settings.yaml"
    return results.with_name(name)


def env_settings(config: Any) -> dict[str, Any]:
    """Return the settings of an environment as they are kept, without a secret."""
    url = without_path(config.rollout_server_url)
    return {**config.model_dump(mode="json"), "rollout_server_url": url}


def settings_text(
    config: Any, servers: Iterable[Any], versions: Mapping[str, str]
) -> str:
    """Return the settings of a run and versions as YAML, without keys."""
    openai = [server.config.model_dump(mode="json") for server in servers]
    for server in openai:
        server["api_key"] = ""
        if "headers" in server:
            server["headers"] = dict.fromkeys(server["headers"], "")
    used = {"reasoning_gym_environment": VERSION, **versions}
    settings = {"versions": used, "env": env_settings(config), "openai": openai}
    return str(yaml.safe_dump(settings, sort_keys=False))


def _why_not(path: Path, settings: str, without: Affects | None) -> str:
    """Say why results made with the settings at `path` cannot be continued, or ""."""
    if without is None:
        return "is there"
    names = affecting(*{*Affects} - {Affects.NOTHING, without})

    def of_results(text: str) -> dict[str, Any]:
        part = yaml.safe_load(text)
        servers = part["openai"]
        # Where a server is and how it is queried changes nothing.
        fields = "model_name", "server_type", "extra_body"
        return {
            **{f"env.{name}": v for name, v in part["env"].items() if name in names},
            **{f"openai.{name}": [s.get(name) for s in servers] for name in fields},
            **{f"version of {name}": v for name, v in part["versions"].items()},
        }

    try:
        then = of_results(path.read_text(encoding="utf-8"))
    except (
        OSError,
        AttributeError,
        LookupError,
        TypeError,
        ValueError,
        yaml.YAMLError,
    ):
        return "has no settings of a run beside it"
    now = of_results(settings)
    different = [name for name in now | then if then.get(name) != now.get(name)]
    return f"was made with another {', '.join(different)}" if different else ""


class ResultFile(LineFile):
    """A file of results; the settings are written beside it with the first line."""

    def __init__(self, path: Path, settings: str = "") -> None:
        super().__init__(path)
        self._settings = settings

    def append(self, line: bytes) -> None:
        """Append a whole line or nothing."""
        if not self.is_open:
            self.open()
        if self._settings and self.end == 0:
            settings_path(self.path).write_text(self._settings, encoding="utf-8")
        super().append(line)


def result_files(
    wanted: Path, inside: str, settings: str, without: Affects | None
) -> Iterator[ResultFile]:
    """Yield files that are empty or can be continued, each open until the next one.

    They are `wanted` and its numbered names, or are called `inside` and are in these
    folders. Settings that affect `without` may differ; with None, nothing is continued.
    The first name that is free and cannot be opened is yielded closed.
    """
    suffix = "" if inside else wanted.suffix  # the dot of a folder begins none
    for number in itertools.count():
        name = f"{wanted.name.removesuffix(suffix)}_{number}{suffix}"
        place = wanted.with_name(name) if number else wanted
        file = ResultFile(place / inside, settings)
        why = ""
        try:
            # Locked before it is read: nobody adds lines in between.
            file.open()
            if file.end:
                why = _why_not(settings_path(file.path), settings, without)
        except OSError as error:
            why = f"cannot be written: {error}" if place.exists() else ""
        if why:
            level = logging.DEBUG if without is None else logging.INFO
            logger.log(level, "not continued: %s %s", file.path, why)
        else:
            yield file
        file.close()


def read_lines(path: Path, kind: type[T]) -> Iterator[tuple[int, T | None]]:
    """Yield where each whole line ends, and its value, None if it is of another kind.

    Those are counted in a warning; a line that a kill has torn is passed over.
    """
    decoder = msgspec.json.Decoder(kind)
    end = 0
    damaged = 0
    with path.open("rb") as lines:
        for line in lines:
            release_gil()
            if not line.endswith(b"\n"):
                break
            value = None
            end += len(line)
            try:
                # msgspec reads no half characters, which a model may write.
                if b"\\ud" in line:
                    value = msgspec.convert(json.loads(line), kind)
                else:
                    value = decoder.decode(line)
            except (ValueError, RecursionError):
                damaged += 1
            yield end, value
    if damaged:
        logger.warning("%s: %d lines are no results", path, damaged)
