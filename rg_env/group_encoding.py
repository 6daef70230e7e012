"""Encodes groups as JSON, for files and for the trainer's API.

The rows of a group are encoded one by one, and other threads run in between.

Mends B9 of docs/host_defects.md: JSON and gzip at level 9 hold up the event loop.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import orjson
from isal import igzip

from rg_env.executor import release_gil

GZIP_FROM_BYTES = 1024
GZIP_FROM_BYTES_NEAR = 2**20  # on one machine, sending costs less than gzip
ISAL_LEVEL = 1  # as small as zlib's 4, in a fiftieth of the time of the framework's 9


def encode_for_file(value: Any) -> bytes:
    """Encode a value for a file; any text survives, also with lone surrogates.

    Raises:
        TypeError: A key is of a type that JSON does not have.
        ValueError: A number is not finite, or a value contains itself.
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, default=str)
    try:
        return text.encode()
    except UnicodeEncodeError:
        # Escaped, a lone surrogate is ASCII.
        return json.dumps(value, allow_nan=False, default=str).encode()


def encode_for_trainer(value: Any) -> bytes:
    """Encode a value for the trainer; NaN becomes null, a lone surrogate U+FFFD."""
    try:
        return orjson.dumps(value)
    except TypeError:
        # The API would accept a lone surrogate, and fail at the batch that contains it.
        utf16 = json.dumps(value, ensure_ascii=False).encode("utf-16", "surrogatepass")
        return utf16.decode("utf-16", "replace").encode()


def encode_group(
    group: Mapping[str, Any], encode: Callable[[Any], bytes] = encode_for_file
) -> bytes:
    """Encode a group with `encode_for_file` or `encode_for_trainer`."""
    fields = []
    for key, value in group.items():
        if isinstance(value, list):
            rows = []
            for row in value:
                rows.append(encode(row))
                release_gil()
            encoded = b"[%s]" % b", ".join(rows)
        else:
            encoded = encode(value)
        fields.append(b"%s: %s" % (encode(key), encoded))
    return b"{%s}" % b", ".join(fields)


def encode_groups(
    groups: Mapping[str, Any] | Sequence[Mapping[str, Any]], *, is_remote: bool = True
) -> tuple[bytes, dict[str, str]]:
    """Return the body and the headers of a request with one group or several.

    Bodies for another machine (`is_remote`) are compressed from 1 KiB on.
    """
    if isinstance(groups, Mapping):
        body = encode_group(groups, encode_for_trainer)
    else:
        body = b"[%s]" % b",".join(encode_group(g, encode_for_trainer) for g in groups)
    headers = {"Content-Type": "application/json"}
    if len(body) >= (GZIP_FROM_BYTES if is_remote else GZIP_FROM_BYTES_NEAR):
        headers["Content-Encoding"] = "gzip"
        body = igzip.compress(body, ISAL_LEVEL)
    return body, headers
