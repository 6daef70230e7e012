"""Paths are read however their steps are parted."""

import pytest

from rg_env.scoring.scoring_rules import ScoringRules
from rg_env.task_rules.table import rules_of

normalizer = ScoringRules().normalizer

ENTRY = {"metadata": {"end_word": "COG"}}


@pytest.mark.parametrize(
    ("task", "answer", "right"),
    [
        ("shortest_path", "up, up, left", "up up left"),
        ("shortest_path", "Up \u2192 Up \u2192 Left", "up up left"),
        ("shortest_path", "UP-UP-LEFT", "up up left"),
        ("shortest_path", "1. up\n2. up\n3. left", "up up left"),
        ("shortest_path", "Shortest path: up up left", "up up left"),
        ("shortest_path", "Go up, then move up, then left.", "up up left"),
        ("shortest_path", "U U L", "up up left"),
        ("shortest_path", '["up", "up", "left"]', "up up left"),
        ("shortest_path", "Infeasible", "infeasible"),
        ("path_star", "12 -> 7 -> 31", "12 7 31"),
        ("path_star", "12,7,31", "12 7 31"),
        ("path_star", "12 - 7 - 31", "12 7 31"),
        ("path_star", "[12, 7, 31]", "12 7 31"),
        ("path_star", "1. 12\n2. 7\n3. 31", "12 7 31"),
        ("word_ladder", "cat, cot, cog", "CAT,COT,COG"),
        ("word_ladder", "CAT \u2192 COT \u2192 COG", "CAT,COT,COG"),
        ("word_ladder", "CAT\nCOT\nCOG", "CAT,COT,COG"),
        ("word_ladder", "1. CAT\n2. COT\n3. COG", "CAT,COT,COG"),
        ("word_ladder", "Word ladder: CAT COT COG", "CAT,COT,COG"),
        ("word_ladder", '["CAT", "COT", "COG"]', "CAT,COT,COG"),
    ],
)
def test_a_path_is_written_as_the_scorer_reads_it(task, answer, right):
    assert normalizer(task, ENTRY)(answer) == right
    assert rules_of(task).notation(right, ENTRY) == right


@pytest.mark.parametrize(
    ("task", "answer"),
    [
        ("shortest_path", "up or left"),
        ("shortest_path", "up up (left)"),
        ("shortest_path", "feasible"),
        ("shortest_path", "infeasible or up"),
        ("shortest_path", "up north"),
        ("shortest_path", "up?"),
        ("path_star", "12 7 or 31"),
        ("path_star", "12 7.5"),
        ("path_star", "12 x 7"),
        ("word_ladder", "CAT COT or COG"),
        ("word_ladder", "CATS COT COG"),
        ("word_ladder", "CAT, COT, ..., COG"),
        ("word_ladder", "CAT / COT"),
    ],
)
def test_what_is_not_only_a_path_stays_as_it_is(task, answer):
    assert rules_of(task).notation(answer, ENTRY) == answer


def test_a_word_between_is_a_rung_like_any_other():
    assert rules_of("word_ladder").notation("CAT and COG", ENTRY) == "CAT,AND,COG"
