"""A file of results, which the same command continues.

The settings of a run are stored beside its results. Another run may continue them if
all its settings that affect the results are the same, and the versions and models too.
Settings of speed, files and addresses may differ.
"""

from __future__ import annotations

import itertools
import json
import logging
from collections.abc import Collection, Iterable, Iterator, Mapping
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
    """Return the path of the settings beside a file of rows or samples."""
    if results.name == SAMPLES:
        return results.with_name(SETTINGS)
    return results.with_name(f"{results.name}.settings.yaml")


def env_settings(config: Any) -> dict[str, Any]:
    """Return the settings of an environment as they are saved, without secrets."""
    settings: dict[str, Any] = config.model_dump(mode="json")
    settings["rollout_server_url"] = without_path(config.rollout_server_url)
    return settings


def settings_text(
    config: Any, servers: Iterable[Any], versions: Mapping[str, str]
) -> str:
    """Return the settings of a run and its versions as YAML, without secrets."""
    openai = [server.config.model_dump(mode="json") for server in servers]
    for server in openai:
        server["api_key"] = ""
        if "headers" in server:
            server["headers"] = dict.fromkeys(server["headers"], "")
    sections = {
        "versions": {"reasoning_gym_environment": VERSION, **versions},
        "env": env_settings(config),
        "openai": openai,
    }
    return str(yaml.safe_dump(sections, sort_keys=False))


def _values_in(settings: str, names: Collection[str]) -> dict[str, Any]:
    """Return the versions, these settings and those of the servers, by their names."""
    sections = yaml.safe_load(settings)
    env = sections["env"]
    servers = sections["openai"]
    # The address of a server and the way it is queried change no result.
    fields = ("model_name", "server_type", "extra_body")
    return {
        **{f"env.{name}": env[name] for name in env if name in names},
        **{f"openai.{name}": [s.get(name) for s in servers] for name in fields},
        **{f"version of {name}": v for name, v in sections["versions"].items()},
    }


def _refusal(path: Path, settings: str, may_differ: Collection[Affects] | None) -> str:
    """Return why results with the settings at `path` cannot be continued, or ""."""
    if may_differ is None:
        return "already exists"
    names = affecting(*set(Affects).difference(may_differ))
    try:
        saved = _values_in(path.read_text(encoding="utf-8"), names)
    except (
        OSError,
        AttributeError,
        LookupError,
        TypeError,
        ValueError,
        yaml.YAMLError,
    ):
        return "has no settings of a run beside it"
    new = _values_in(settings, names)
    different = [name for name in new | saved if saved.get(name) != new.get(name)]
    return f"was made with another {', '.join(different)}" if different else ""


# -- the files -------------------------------------------------------------------------


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
    wanted: Path,
    settings: str,
    may_differ: Collection[Affects] | None,
    name_in_folder: str = "",
) -> Iterator[ResultFile]:
    """Yield `wanted`, `wanted_1`, `wanted_2` and so on, if a run can write there.

    A file is yielded if it is empty, or if its results can be continued, and is open
    until the next one is taken. The first one that cannot be created is yielded closed.

    Args:
        wanted: The first file; or the first folder, if there is a name.
        settings: The settings of the run.
        may_differ: The parts of results whose settings may be other ones; with None, no
            results are continued.
        name_in_folder: The name of the file in each folder.
    """
    suffix = "" if name_in_folder else wanted.suffix  # folders have none
    for number in itertools.count():
        name = f"{wanted.name.removesuffix(suffix)}_{number}{suffix}"
        path = wanted.with_name(name) if number else wanted
        file = ResultFile(path / name_in_folder, settings)
        why = ""
        try:
            # Locked before it is read, so that no other process adds lines meanwhile.
            file.open()
            if file.end:
                why = _refusal(settings_path(file.path), settings, may_differ)
        except OSError as error:
            why = f"cannot be written: {error}" if path.exists() else ""
        if why:
            level = logging.DEBUG if may_differ is None else logging.INFO
            logger.log(level, "not continued: %s %s", file.path, why)
        else:
            yield file
        file.close()


def read_lines(path: Path, kind: type[T]) -> Iterator[tuple[int, T]]:
    """Yield the value of each whole line, and where the line ends in the file.

    Lines with another kind of value are counted in a warning. A torn last line, which a
    kill leaves, is ignored.
    """
    decoder = msgspec.json.Decoder(kind)
    end = 0
    damaged = 0
    with path.open("rb") as lines:
        for line in lines:
            release_gil()
            if not line.endswith(b"\n"):
                break
            end += len(line)
            try:
                # A model may write lone surrogates, which msgspec does not read.
                if b"\\ud" in line:
                    value = msgspec.convert(json.loads(line), kind)
                else:
                    value = decoder.decode(line)
            except (ValueError, RecursionError):
                damaged += 1
            else:
                yield end, value
    if damaged:
        logger.warning("%s: %d lines are not results", path, damaged)
