"""Groups as the bytes that go to the trainer: JSON, a long one compressed for the way.

Mends B9 of docs/host_defects.md: JSON and gzip at level 9 hold up the event loop.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import orjson
from isal import igzip

from rg_env.off_loop import no_breath

GZIP_FROM_BYTES = 1024
GZIP_FROM_BYTES_NEAR = 2**20
"""On this machine it only keeps a body short enough to be written in one piece."""
GZIP_LEVEL = 1
"""ISA-L's; its bytes are those of zlib's level 4 or so, at a fiftieth of the time of
level 9, which the framework uses."""


def _encode_value(value: Any) -> bytes:
    try:
        return orjson.dumps(value)
    except TypeError:
        # Half a character of UTF-16 in a message. The API would take it, and fail at
        # the batch that holds it: the batch is lost to the trainer then.
        halves = json.dumps(value, ensure_ascii=False).encode("utf-16", "surrogatepass")
        return halves.decode("utf-16", "replace").encode()


def encode_group(group: Mapping[str, Any], breathe: Callable[[], None]) -> bytes:
    """Encode a group as JSON, one row of its lists at a time.

    Args:
        group: Lists of a row per rollout, and other values.
        breathe: Called after each row, since a long group takes a while.
    """
    encoded: dict[str, Any] = {}
    for key, value in group.items():
        if isinstance(value, list):
            rows = []
            for row in value:
                rows.append(orjson.Fragment(_encode_value(row)))
                breathe()
            encoded[key] = rows
        else:
            encoded[key] = orjson.Fragment(_encode_value(value))
    return orjson.dumps(encoded)


def encode_groups(
    groups: Mapping[str, Any] | Sequence[Mapping[str, Any]],
    breathe: Callable[[], None] = no_breath,
    *,
    is_far: bool = True,
) -> tuple[bytes, dict[str, str]]:
    """Encode one group or several as the framework does: JSON, a long one compressed.

    Args:
        groups: What becomes the body.
        breathe: Called between two rollouts.
        is_far: Whether the bytes leave this machine; otherwise both sides save the time
            of compressing what is short enough without it.

    Returns:
        The body and its headers.
    """
    if isinstance(groups, Mapping):
        body = encode_group(groups, breathe)
    else:
        body = b"[%s]" % b",".join(encode_group(g, breathe) for g in groups)
    headers = {"Content-Type": "application/json"}
    if len(body) >= (GZIP_FROM_BYTES if is_far else GZIP_FROM_BYTES_NEAR):
        headers["Content-Encoding"] = "gzip"
        body = igzip.compress(body, GZIP_LEVEL)
    return body, headers
