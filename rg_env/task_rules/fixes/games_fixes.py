"""Fixes of the category games.

Not corrected: emoji_mystery, knight_swap, n_queens and tower_of_hanoi, whose scorers
pay for what they say; `eval` in n_queens is the guard's matter.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from rg_env.task_rules.games.boxnet import blind_plan, score_box_plan
from rg_env.task_rules.games.rush_hour import moves_at_random, score_car_moves
from rg_env.task_rules.games.sokoban import score_walk
from rg_env.task_rules.games.survo import score_filled_matrix
from rg_env.task_rules.reading.number_grids import all_blanks_wrong, score_number_grid
from rg_env.task_rules.reading.sums import read_sum
from rg_env.task_rules.reading.talk import is_talk_beside, is_wrapper
from rg_env.task_rules.scorer_fix import (
    Entry,
    FixedScore,
    LibraryScore,
    ScorerFix,
)

READABLE = 0.05
"""The most the library pays for a sum that is wrong."""

UNREADABLE = 0.01
"""What the library pays for a text that is no sum."""

_BIT = re.compile(r"[01]")


def _sum_of_the_numbers(
    target_of: Callable[[Entry], int],
) -> FixedScore:
    """Return the score of a sum that must use the entry's numbers, each once."""

    def score(answer: str, entry: Entry, library: LibraryScore) -> float:
        found = read_sum(answer)
        if found is None:
            return UNREADABLE
        used_right = found.numbers == sorted(entry["metadata"]["numbers"])
        solved = used_right and found.value == target_of(entry)
        return library(answer) if solved else min(READABLE, library(answer))

    return score


def _numbers_in_comment(entry: Entry) -> str:
    """Name the numbers in a comment behind a sum that uses none of them.

    The sum is the target in hexadecimal, which the search for numbers does not see.
    """
    numbers = " ".join(map(str, entry["metadata"]["numbers"]))
    return f"{entry['metadata']['target']:#x} # {numbers}"


def _only(
    read: re.Pattern[str],
) -> FixedScore:
    """Return the score of an answer that holds what is read and otherwise talk."""

    def score(answer: str, entry: Entry, library: LibraryScore) -> float:
        return library(answer) if is_talk_beside(read, answer) else 0.0

    return score


def _each_row_and(more: str) -> Callable[[Entry], str]:
    """Return the proof that writes more behind each line of the gold answer."""
    return lambda entry: entry["answer"].replace("\n", f" {more}\n") + f" {more}"


def _one_point(answer: str, entry: Entry, library: LibraryScore) -> float:
    """Score tsumego: one point of the board, with nothing but talk around it."""
    gold, found = entry["answer"].strip(), answer.strip().upper()
    if gold in found and found != gold and not is_wrapper(found, gold):
        return 0.0
    return library(answer)


FIXES: tuple[ScorerFix, ...] = (
    ScorerFix(
        task="boxnet",
        scorer_sha256="758e7239c3443f591dba96a787249af1bd9b6593cf2e854e327d168a79d051ac",
        fault=(
            "Passes over impossible actions, so one sweep through the grid solves"
            " every item of that size; pays for boxes that are at their targets from"
            " the start; raises where a box would leave the grid."
        ),
        proof=blind_plan,
        proof_pays=1.0,
        score=score_box_plan,
    ),
    ScorerFix(
        task="countdown",
        scorer_sha256="5af9a9d9c2e1db114541552e6804dbc456adb86e6db75c85ec1ef92ad322ac5e",
        fault="Finds the numbers also in a comment, in a decimal and behind a letter.",
        proof=_numbers_in_comment,
        proof_pays=1.0,
        score=_sum_of_the_numbers(lambda entry: entry["metadata"]["target"]),
    ),
    ScorerFix(
        task="futoshiki",
        scorer_sha256="ec3ce1257de8220be8a73f69de63dfaa7395a33e239d730cb02497afaaf740cc",
        fault="Pays for the given cells of a puzzle whose blanks are filled anyhow, and"
        " for what a fill without solving has right.",
        proof=all_blanks_wrong,
        proof_pays=0.2,
        score=score_number_grid,
    ),
    ScorerFix(
        task="kakurasu",
        scorer_sha256="d408ee73a6daf81131ab7c2af62a26816e39f43e0e5cc8027d349d2ea03cfb1f",
        fault="Passes over everything but the digits 0 and 1, also another answer.",
        proof=_each_row_and("or 2"),
        proof_pays=1.0,
        score=_only(_BIT),
    ),
    ScorerFix(
        task="mini_sudoku",
        scorer_sha256="164175209dc0eaa4a8b126280fcd17d96a3c42b6c7186fd4b3ccd1519a516517",
        fault="Pays for the given cells of a puzzle whose blanks are filled anyhow, and"
        " for what a fill without solving has right.",
        proof=all_blanks_wrong,
        proof_pays=0.2,
        score=score_number_grid,
    ),
    ScorerFix(
        task="puzzle24",
        scorer_sha256="85c06b47c043171afbd9470630dd601aedd90a5e0807ad4e74da1ad7b20c59d3",
        fault="Never compares the numbers used with those given, and drops fractions.",
        proof=lambda entry: "1*2*3*4",
        proof_pays=1.0,
        score=_sum_of_the_numbers(lambda entry: 24),
    ),
    ScorerFix(
        task="rush_hour",
        scorer_sha256="56532d970d7b7f4d391c737b753e1c356892a3b3f73701923d7223be8b3c8c40",
        fault="Passes over impossible moves, so enough moves at random free the car.",
        proof=moves_at_random,
        proof_pays=1.0,
        score=score_car_moves,
    ),
    ScorerFix(
        task="sokoban",
        scorer_sha256="6f54760afe6bed92faa5bb29ce3948b8e8e965109801cbdff69036d7a53d6a67",
        fault="Passes over everything but the letters of moves, also another answer.",
        proof=lambda entry: f"{entry['answer']} or not, 5",
        proof_pays=1.0,
        score=score_walk,
    ),
    ScorerFix(
        task="sudoku",
        scorer_sha256="164175209dc0eaa4a8b126280fcd17d96a3c42b6c7186fd4b3ccd1519a516517",
        fault="Pays for the given cells of a puzzle whose blanks are filled anyhow, and"
        " for what a fill without solving has right.",
        proof=all_blanks_wrong,
        proof_pays=0.2,
        score=score_number_grid,
    ),
    ScorerFix(
        task="survo",
        scorer_sha256="ef0787e9e16f99d772ab75b517bc09ba26ea096c5d3810abfec6a43b65a20c16",
        fault="Passes over everything but whole numbers, also another answer; and pays"
        " for one filling where several have the right sums.",
        proof=_each_row_and("or 7.5"),
        proof_pays=1.0,
        score=score_filled_matrix,
    ),
    ScorerFix(
        task="tsumego",
        scorer_sha256="2448df09b429c481456c71b50744f295b742793875b1722206298e908e6aed4c",
        fault="Pays for another point whose name contains that of the right one.",
        proof=lambda entry: f"{entry['answer']}0",
        proof_pays=0.6,
        score=_one_point,
    ),
)
"""One row for each task of this category whose scorer is corrected."""
