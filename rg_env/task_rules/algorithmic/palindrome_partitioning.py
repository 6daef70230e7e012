"""palindrome_partitioning: all ways to part a string into palindromes."""

from __future__ import annotations

from rg_env.task_rules.algorithmic.group_anagrams import BARE_LISTS, lists_of_words
from rg_env.task_rules.common_answers import seldom
from rg_env.task_rules.rules import TaskRules

RULES = TaskRules(
    "palindrome_partitioning",
    notation=lists_of_words,
    item_checks=(
        seldom(
            "only partition is into letters",
            lambda entry: len(entry["metadata"]["solution"]) == 1,  # 30 of 100 at 0.0
            one_in=2,
        ),
    ),
    other_scores=(BARE_LISTS,),
)
