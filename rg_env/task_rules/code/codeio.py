"""codeio: JSON values, which the scorer compares as trees."""

from __future__ import annotations

import functools
import gzip
import itertools
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from rg_env.task_rules.faster_functions import JsonLines, init_that
from rg_env.task_rules.reading.talk import is_talk, is_wrapper
from rg_env.task_rules.reading.values import once_each, read_value
from rg_env.task_rules.rules import (
    Entry,
    FasterFunction,
    Guard,
    ItemCheck,
    LibraryScore,
    ScorerFix,
    TaskRules,
)

MAX_WORK = 2_000_000
"""Largest product of the weights of an answer and of the gold answer."""

MAX_DEPTH = 8
USUAL_GOLD_WEIGHT = 1_000
_WEIGHT_OF_A_NODE = 8


def _depth(text: str) -> int:
    """Return the deepest nesting of brackets, those inside strings included."""
    steps = ((char in "[{") - (char in "]}") for char in text)
    return max(itertools.accumulate(steps, initial=0))


def _weight(text: str) -> int:
    """Return about how many characters the labels of its tree have together."""
    nodes = sum(text.count(char) for char in ",[{")
    return len(text) + _WEIGHT_OF_A_NODE * nodes


def _too_costly(answer: str, gold: str | None) -> str | None:
    """Return why a JSON object is not compared with the gold, None if it is.

    The library computes a tree edit distance whose nodes cost an edit distance: the
    product of both sizes, and more with depth.
    """
    start, end = answer.find("{"), answer.rfind("}")
    if start < 0 or end < 0:
        return None  # the library compares nothing else
    weight = USUAL_GOLD_WEIGHT if gold is None else _weight(gold)
    if _weight(answer[start : end + 1]) * weight > MAX_WORK:
        return "too large to be compared with the gold answer"
    return "nested too deeply" if _depth(answer) > MAX_DEPTH else None


def _is_same(value: Any, gold: Any) -> bool:
    """Say whether two values of JSON are equal; a number is no truth value."""
    if isinstance(value, bool) or isinstance(gold, bool):
        return value is gold
    if isinstance(value, dict) and isinstance(gold, dict):
        names = value.keys() == gold.keys()
        return names and all(_is_same(value[name], gold[name]) for name in gold)
    if isinstance(value, list) and isinstance(gold, list):
        return len(value) == len(gold) and all(map(_is_same, value, gold))
    return bool(value == gold)


def _as_gold(answer: str, entry: Entry) -> str:
    """Return the right answer for one that writes the same value of JSON.

    A string is known without its quotes as well.
    """
    gold_text = entry["answer"]
    try:
        gold = json.loads(gold_text)
    except ValueError:
        return answer
    if isinstance(gold, str) and answer == gold:
        return str(gold_text)
    try:
        same = _is_same(read_value(answer), gold)
    except ValueError:
        return answer
    return str(gold_text) if same else answer


MAX_GROWTH = 2
"""How much longer than the gold answer a JSON object may be that is compared with it.

Behind twice the length (and a little) nothing is similar, and the comparison is slow.
"""

_FENCE = re.compile(r"```(?:json|python)?")


def _numbers(value: Any, path: str = "") -> Iterator[tuple[str, float]]:
    if isinstance(value, dict):
        for name, part in value.items():
            yield from _numbers(part, f"{path}/{name}")
    elif isinstance(value, list):
        for index, part in enumerate(value):
            yield from _numbers(part, f"{path}/{index}")
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield path, value


def _share_of_right_signs(value: Any, gold: Any) -> float:
    signs = {path: number < 0 for path, number in _numbers(gold)}
    found = [(path, number < 0) for path, number in _numbers(value)]
    right = sum(signs.get(path, sign) == sign for path, sign in found)
    return right / len(found) if found else 1.0


def _object_alone(answer: str, entry: Entry, library: LibraryScore) -> float:
    """Score one object, each name once, with nothing but talk around it.

    The library's similarity compares numbers without their signs, so it is scored in
    proportion to the numbers with the right sign.
    """
    gold = entry["answer"].strip()
    if answer.strip() == gold or "{" not in answer or "}" not in answer:
        return library(answer)
    start, end = answer.index("{"), answer.rindex("}") + 1
    around = _FENCE.sub("", answer[:start] + " " + answer[end:])
    too_long = end - start > MAX_GROWTH * len(gold) + 200
    if too_long or not is_talk(around):
        return 0.0
    try:
        value = json.loads(answer[start:end], object_pairs_hook=once_each)
        share = _share_of_right_signs(value, json.loads(gold))
    except (ValueError, RecursionError):
        return library(answer) if is_wrapper(answer, gold) else 0.0
    return library(answer) * share


def _other_then_gold(entry: Entry) -> str:
    """Give each name of the gold object twice, first with another value."""
    gold = entry["answer"].strip()
    if not gold.startswith("{") or gold == "{}":
        return f'{{"a": 1}} {gold}'
    others = json.dumps(dict.fromkeys(json.loads(gold), 0))
    return f"{others[:-1]}, {gold[1:]}"


class _Program(msgspec.Struct):
    difficulty: Any = -1


@functools.cache
def _programs(path: Path) -> list[bytes]:
    return gzip.decompress(path.read_bytes()).splitlines()


def _fill(library: Mapping[str, Any], dataset: Any, config: Any) -> None:
    """Fill a dataset as the library's `__init__`, which parses all programs a level."""
    decode, wanted = msgspec.json.Decoder(_Program).decode, config.difficulty
    of_level = _programs(library["get_data_file_path"]("codeio.jsonl.gz"))
    if wanted is not None:
        of_level = [line for line in of_level if decode(line).difficulty == wanted]
    if not of_level:
        raise ValueError(f"no program of the file has the difficulty {wanted}")
    type(dataset)._jsonl_data = JsonLines(of_level)


RULES = TaskRules(
    "codeio",
    guard=Guard(
        "recursive tree edit distance of JSON values",
        "JSON; objects have up to 1,000 characters in 99 of 100 items",
        _too_costly,
    ),
    notation=_as_gold,
    kept_signs="\"'",
    faster=(
        FasterFunction(
            "reasoning_gym.code.codeio",
            "CodeIODataset.__init__",
            "fe84df45919155cd",
            init_that(_fill),
        ),
    ),
    fix=ScorerFix(
        scorer_sha256="11f228ca05744a014b05fc446fbcfaa21ba4d21ab1746eb2f41509840aa14351",
        fault="Scores a right object beside another one or with names given"
        " twice, and numbers with the wrong sign.",
        proof=_other_then_gold,
        proof_scores=0.7,
        score=_object_alone,
    ),
    item_checks=(
        ItemCheck(
            "answer holds the address of an object, which is another in each process",
            lambda entry: " at 0x" in entry["question"] + entry["answer"],
            always=True,
        ),
    ),
)
