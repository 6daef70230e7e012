"""Groups as JSON: lines of files, and what goes to the trainer, compressed for the way.

Mends B9 of docs/host_defects.md: JSON and gzip at level 9 hold up the event loop.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson
from isal import igzip

from rg_env.off_loop import keep_gil

GZIP_FROM_BYTES = 1024
GZIP_FROM_BYTES_NEAR = 2**20  # on this machine it saves both sides the time
ISAL_LEVEL = 1  # as small as zlib's 4, in a fiftieth of the time of the framework's 9


def readable(value: Any) -> bytes:
    """Encode a value for a file; any text survives, lone surrogates included.

    Raises:
        TypeError: JSON has no such key.
        ValueError: A number is not finite, or a value holds itself.
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, default=str)
    try:
        return text.encode()
    except UnicodeEncodeError:
        # Escaped, a lone surrogate is ASCII.
        return json.dumps(value, allow_nan=False, default=str).encode()


def quick(value: Any) -> bytes:
    """Encode a value for the trainer, half a character as a question mark."""
    try:
        return orjson.dumps(value)
    except TypeError:
        # The API would take it, and fail at the batch that holds it.
        halves = json.dumps(value, ensure_ascii=False).encode("utf-16", "surrogatepass")
        return halves.decode("utf-16", "replace").encode()


def encode_group(
    group: Mapping[str, Any],
    encode: Callable[[Any], bytes] = readable,
    release_gil: Callable[[], None] = keep_gil,
) -> bytes:
    """Encode a group by `readable` or `quick`; call `release_gil` after each row."""
    parts = []
    for key, value in group.items():
        encoded = b""
        if isinstance(value, list):
            rows = []
            for row in value:
                rows.append(encode(row))
                release_gil()
            encoded = b"[%s]" % b", ".join(rows)
        parts.append(b"%s: %s" % (encode(key), encoded or encode(value)))
    return b"{%s}" % b", ".join(parts)


def read_groups(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the groups of a dump file, complete or not; a torn last line ends it."""
    with path.open("rb") as file:
        for line in file:
            if not line.endswith(b"\n"):
                return
            yield json.loads(line)


def encode_groups(
    groups: Mapping[str, Any] | Sequence[Mapping[str, Any]],
    release_gil: Callable[[], None] = keep_gil,
    *,
    is_far: bool = True,
) -> tuple[bytes, dict[str, str]]:
    """Return the body of a request with one group or several, and its headers."""
    if isinstance(groups, Mapping):
        body = encode_group(groups, quick, release_gil)
    else:
        body = b"[%s]" % b",".join(encode_group(g, quick, release_gil) for g in groups)
    headers = {"Content-Type": "application/json"}
    if len(body) >= (GZIP_FROM_BYTES if is_far else GZIP_FROM_BYTES_NEAR):
        headers["Content-Encoding"] = "gzip"
        body = igzip.compress(body, ISAL_LEVEL)
    return body, headers
