"""What a soak or a chaos run has left: files, ledgers, processes, memory.

Nothing here starts or ends anything.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import hashlib
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil

from rg_env.rollouts.json_encoding import read_groups

MIB = 2**20


def digest(value: Any) -> bytes:
    """Return what tells a value from others, in little memory."""
    text = json.dumps(value, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).digest()


@dataclasses.dataclass
class Files:
    """What lies in a dump folder.

    Attributes:
        complete: Complete files.
        unfinished: Files that still have the other suffix.
        groups: Valid lines, without those of
        unsent: Groups that the API did not take.
        broken: Lines that are none.
        twice: Groups that were dumped a second time.
    """

    complete: int = 0
    unfinished: int = 0
    groups: int = 0
    unsent: int = 0
    broken: int = 0
    twice: int = 0


def read_dumps(folder: Path) -> Files:
    """Read every dumped line."""
    found = Files()
    seen: set[bytes] = set()
    for path in sorted(folder.glob("*.jsonl*")):
        is_part = path.suffix == ".part"
        found.unfinished += is_part
        found.complete += not is_part
        try:
            for group in read_groups(path):
                key = digest(group)
                found.unsent += "UNSENT" in path.name
                found.groups += "UNSENT" not in path.name
                found.twice += key in seen
                seen.add(key)
        except ValueError:
            found.broken += 1
        found.broken += bool(path.stat().st_size) and not ends_whole(path)
    return found


def ends_whole(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read() == b"\n"


def last_state(folder: Path) -> dict[str, Any]:
    """Return what the newest checkpoint holds; {} without one."""
    files = (folder / "checkpoints").rglob("step-*.json")
    newest = max(files, key=lambda path: path.stat().st_mtime_ns, default=None)
    state: dict[str, Any] = {} if newest is None else json.loads(newest.read_text())
    return state


def last_ledger(folder: Path) -> dict[str, Any]:
    """Return the ledger of the newest checkpoint; {} without one."""
    ledger: dict[str, Any] = last_state(folder).get("metrics", {})
    return ledger


def last_dump_count(folder: Path) -> int:
    """Return how many groups are in the dump files, as `serve` counts them."""
    state = last_state(folder)
    owners = (state.get(name, {}) for name in ("saved", "failed"))
    return sum(owner.get("groups_total", 0) for owner in owners)


def our_processes(marker: str) -> Iterator[int]:
    """Yield the living processes whose command or environment names a marker."""
    for proc in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            text = (proc / "cmdline").read_bytes() + (proc / "environ").read_bytes()
            if marker.encode() in text and int(proc.name) != os.getpid():
                yield int(proc.name)


def family_of(pid: int) -> list[psutil.Process]:
    """Return a process and those that it started, and theirs."""
    with contextlib.suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        return [process, *process.children(recursive=True)]
    return []


def pss_mib(pid: int) -> dict[str, float]:
    """Return the memory of a process and of its descendants, shared pages once."""
    sums = [0.0, 0.0]
    for i, process in enumerate(family_of(pid)):
        with contextlib.suppress(psutil.NoSuchProcess):
            sums[i > 0] += process.memory_full_info().pss / MIB
    return {"serve": round(sums[0], 1), "workers": round(sums[1], 1)}


def add_options(parser: argparse.ArgumentParser, rate: float) -> None:
    """Add the options that both runs have."""
    parser.add_argument("--rate", type=float, default=rate, help="of spoilt replies")
    parser.add_argument("--api_rate", type=float, default=0.02, help="the API's")
    parser.add_argument("--json", type=Path, default=None)


def say(began: float, text: str) -> None:
    """Print a line of progress at once.

    Args:
        began: When the run did, of the monotonic clock.
        text: What there is to say.
    """
    print(f"{time.monotonic() - began:7.1f} s  {text}", flush=True)


def show(found: dict[str, Any], json_path: Path | None) -> None:
    """Print what was found, and write it as JSON if that is asked for."""
    for name, value in found.items():
        print(f"{name:<30} {value}")
    if json_path is not None:
        json_path.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
