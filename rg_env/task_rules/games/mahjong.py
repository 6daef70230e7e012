"""The rounds of mahjong_puzzle, by the rules of its question."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from rg_env.task_rules.reading.words import in_any_case
from rg_env.task_rules.rules import Entry, ItemCheck, TaskRules

_SEQUENCES = ((-2, -1), (-1, 1), (1, 2))
"""Where the two other cards of a sequence stand from the added one."""


def result_of_last_round(rounds: Sequence[Mapping[str, str]]) -> str:
    """Return "Peng", "Chi" or "Pass".

    A round says what was added and removed, and the cards in hand afterwards.
    """
    last = rounds[-1]
    added = last["add"]
    hand = Counter(last["cards"] + last["remove"])
    hand[added] -= 1
    if hand[added] >= 2:
        return "Peng"
    at = ord(added)
    if any(hand[chr(at + a)] and hand[chr(at + b)] for a, b in _SEQUENCES):
        return "Chi"
    return "Pass"


def _is_another_round(entry: Entry) -> bool:
    result = result_of_last_round(entry["metadata"]["rounds"])
    return bool(result != entry["answer"])


MAHJONG = TaskRules(
    "mahjong_puzzle",
    notation=in_any_case,
    item_checks=(
        ItemCheck("answer is not the result of its last round", _is_another_round),
    ),
)
