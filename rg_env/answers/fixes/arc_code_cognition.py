"""Fixes of the categories arc, code and cognition.

Not corrected, because nothing was found: color_cube_rotation and needle_haystack, which
pay for the right answer alone, and rectangle_count.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from rg_env.answers.fixes.fix import LibraryScore, ScorerFix
from rg_env.answers.fixes.substring import (
    LIBRARY_VERSION,
    base_fix,
    is_wrapper,
    junk_behind,
    longer_number,
)
from rg_env.answers.fixes.talk import is_talk, score_gold_and_talk

NEAR_MISS: Mapping[str, str] = {
    "codeio": (
        "similarity of a JSON object to the right one: a number nearly right, or one"
        " wrong value of several"
    ),
    "figlet_font": "0.1 for each right letter in its place",
    "rectangle_count": "0.64 when off by one, 0.48 by two, 0.32, 0.16",
}
"""Task to the credit for a wrong answer that the library gives on purpose."""

MAX_GROWTH = 2
"""How much longer than the gold answer a JSON object may be that is compared with it.

Behind twice the length (and a little) nothing is similar, and the comparison is slow.
"""

_SHAPE_LINE = re.compile(r"Shape: *\d{1,2}x\d{1,2}")
_FENCE = re.compile(r"```(?:json|python)?")


def _board_without_asides(
    answer: str, entry: Mapping[str, Any], library: LibraryScore
) -> float:
    """Score an arc board; a line `Shape: ` may hold a shape and nothing else."""
    shapes = [line.strip() for line in answer.split("\n")]
    if any(s.startswith("Shape: ") and not _SHAPE_LINE.fullmatch(s) for s in shapes):
        return 0.0
    return library(answer)


def _board_and_another(entry: Mapping[str, Any]) -> str:
    return f"{entry['answer']}\nShape: no, it is 1 2 3"


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build a JSON object of which no name is given twice."""
    built = dict(pairs)
    if len(built) != len(pairs):
        raise ValueError("a name is given twice")
    return built


def _numbers(value: Any, path: str = "") -> Iterator[tuple[str, float]]:
    """Yield the numbers of a JSON value with the path to each."""
    if isinstance(value, dict):
        for name, part in value.items():
            yield from _numbers(part, f"{path}/{name}")
    elif isinstance(value, list):
        for index, part in enumerate(value):
            yield from _numbers(part, f"{path}/{index}")
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield path, value


def _share_of_right_signs(value: Any, gold: Any) -> float:
    """Return the share of the numbers of `value` that have the sign of the gold one."""
    signs = {path: number < 0 for path, number in _numbers(gold)}
    found = [(path, number < 0) for path, number in _numbers(value)]
    right = sum(signs.get(path, sign) == sign for path, sign in found)
    return right / len(found) if found else 1.0


def _object_alone(
    answer: str, entry: Mapping[str, Any], library: LibraryScore
) -> float:
    """Score codeio: one object, each name once, nothing but talk around it.

    The library's similarity compares numbers without their signs, so it is paid in
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
        value = json.loads(answer[start:end], object_pairs_hook=_once_each)
        share = _share_of_right_signs(value, json.loads(gold))
    except (ValueError, RecursionError):
        return library(answer) if is_wrapper(answer, gold) else 0.0
    return library(answer) * share


def _other_then_gold(entry: Mapping[str, Any]) -> str:
    """Give each name of the gold object twice, first with another value."""
    gold = entry["answer"].strip()
    if not gold.startswith("{") or gold == "{}":
        return f'{{"a": 1}} {gold}'
    others = json.dumps(dict.fromkeys(json.loads(gold), 0))
    return f"{others[:-1]}, {gold[1:]}"


def _moves_without_numbers(
    answer: str, entry: Mapping[str, Any], library: LibraryScore
) -> float:
    """Score rubiks_cube; a number belongs to a move."""
    return 0.0 if any(map(str.isdecimal, answer.split())) else library(answer)


def _one_word(answer: str, entry: Mapping[str, Any], library: LibraryScore) -> float:
    """Score figlet_font: one word, spaced out or not, and no longer than the right one.

    Letters behind the right word cost what they would be of the whole.
    """
    words = answer.split()
    if len(words) > 1 and any(len(word) > 1 for word in words):
        return 0.0
    too_long = sum(map(len, words)) / max(1, len(entry["answer"].strip()))
    return library(answer) / max(1.0, too_long)


FIXES: tuple[ScorerFix, ...] = (
    dataclasses.replace(
        base_fix(
            "arc_1d",
            "Pays for the right cells with more behind them.",
            junk_behind(" 1"),
            0.8,
        ),
        score=score_gold_and_talk,
    ),
    ScorerFix(
        task="arc_agi",
        library_version=LIBRARY_VERSION,
        scorer_sha256="e3244f5e2d4f1e5e0a852cd8ab3f78ba780b14d0029a63d9f5ca8d2f72775ecd",
        fault="Passes over any line that begins with `Shape: `, also another board.",
        proof=_board_and_another,
        proof_pays=1.0,
        score=_board_without_asides,
    ),
    ScorerFix(
        task="rearc",
        library_version=LIBRARY_VERSION,
        scorer_sha256="02467a410400d76e8720efca4f3378d9a7c3bccd6e4113a5136cce63f12bd740",
        fault="Passes over any line that begins with `Shape: `, also another board.",
        proof=_board_and_another,
        proof_pays=1.0,
        score=_board_without_asides,
    ),
    base_fix(
        "bf",
        "Pays for the right output with a word behind it.",
        junk_behind(" no"),
        0.5,
    ),
    ScorerFix(
        task="codeio",
        library_version=LIBRARY_VERSION,
        scorer_sha256="11f228ca05744a014b05fc446fbcfaa21ba4d21ab1746eb2f41509840aa14351",
        fault=(
            "Pays for a right object with another one beside it or with every name"
            " given twice, and for numbers with the wrong sign."
        ),
        proof=_other_then_gold,
        proof_pays=0.7,
        score=_object_alone,
    ),
    ScorerFix(
        task="figlet_font",
        library_version=LIBRARY_VERSION,
        scorer_sha256="753e689ec4b86e0104e809b4a4fbd24d446b2a500fbd2c15309fe55541f3bdbb",
        fault="Pays for every right letter, whatever follows the word.",
        proof=lambda entry: f"{entry['answer']} or another",
        proof_pays=0.3,
        score=_one_word,
    ),
    dataclasses.replace(
        base_fix(
            "modulo_grid",
            "Pays for the right grid with more cells behind it.",
            junk_behind("✅"),
            0.9,
        ),
        score=score_gold_and_talk,
    ),
    base_fix(
        "number_sequence",
        "Pays for any number that contains the right one.",
        longer_number,
        0.5,
    ),
    ScorerFix(
        task="rubiks_cube",
        library_version=LIBRARY_VERSION,
        scorer_sha256="595c908d5970e222d5531cf03d315c8558168b7e2e0cf321c16bf71fd2246580",
        fault="Takes a number that stands alone for no move at all.",
        proof=lambda entry: f"{entry['metadata']['example_correct_answer']} 42",
        proof_pays=1.0,
        score=_moves_without_numbers,
    ),
)
"""One row for each task of these categories whose scorer is corrected."""
