"""Groups as the trainer gets them, and scored ones."""

import gzip
import json

from hypothesis import strategies as st

from rg_env.run.group import Group
from rg_env.stream.item import Item

ROWS = st.lists(st.lists(st.integers(-(2**31), 2**40), max_size=4), max_size=3)


FLOATS = st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=4)


TEXTS = st.text(max_size=9)


GROUPS = st.fixed_dictionaries(
    {
        "tokens": ROWS,
        "masks": ROWS,
        "scores": FLOATS,
        "inference_logprobs": st.none() | st.lists(FLOATS, max_size=3),
        "overrides": st.lists(st.dictionaries(TEXTS, st.booleans())),
        "messages": st.lists(st.lists(st.dictionaries(TEXTS, TEXTS), max_size=2)),
        "group_overrides": st.just({}),
        "env_id": st.integers(0, 9),
    }
)


def group(tokens=3, text="é \ud800 \U0001f600", rows=2):
    return {
        "tokens": [list(range(tokens))] * rows,
        "masks": [[-100, *range(1, tokens)]] * rows,
        "scores": [0.0, 1.0],
        "inference_logprobs": [[1.0] + [-0.1234567890123456] * (tokens - 1)] * rows,
        "messages": [[{"role": "assistant", "content": text}]] * rows,
    }


def scored(task, rollouts, gold=None, **origin):
    """Return a scored group of an item with this origin, or of one from outside."""
    entry = {"answer": gold, "metadata": {"source_dataset": task}}
    dataset = Item(task, **origin) if origin else None
    return Group(entry=entry, dataset=dataset, rollouts=rollouts)


def decoded(body, headers):
    if headers.get("Content-Encoding") == "gzip":
        body = gzip.decompress(body)
    return json.loads(body)
