"""Checks of items whose answer is correct and only too common.

Such an item, as one whose answer is that a grid has no path, is asked one time in so
many as leave a text that always says so 0.25 above chance at most, in every task at its
defaults and at all steps of its scale. It stays among the answers, so that nobody
learns that it never is the right one. Which entries are kept depends on their question
alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping

from rg_env.task_rules.rules import Entry, ItemCheck


def _is_kept(entry: Entry, one_in: int) -> bool:
    text = entry["question"].encode(errors="surrogatepass")
    hashed = hashlib.blake2b(text, digest_size=8).digest()
    return int.from_bytes(hashed, "big") % one_in == 0


def seldom(fault: str, is_common: Callable[[Entry], bool], one_in: int) -> ItemCheck:
    """Return the check that leaves one in so many of the common entries."""
    return ItemCheck(
        fault,
        lambda entry: is_common(entry) and not _is_kept(entry, one_in),
        answer_stands=True,
    )


def seldom_answered(one_in: Mapping[str, int]) -> ItemCheck:
    """Return the check that leaves one in so many of the entries with an answer."""
    return ItemCheck(
        "answer is one that is right too often, and was sampled often enough",
        lambda entry: not _is_kept(entry, one_in.get(entry["answer"], 1)),
        answer_stands=True,
    )
