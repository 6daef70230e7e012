"""emoji_mystery: a sentence that is encoded in an emoji."""

from __future__ import annotations

from rg_env.task_rules.partial_credit import partial_credit
from rg_env.task_rules.reading.words import but_for_its_ends
from rg_env.task_rules.rules import Entry, LibraryScore, ScorerFix, TaskRules


def _sentence(answer: str, entry: Entry, library: LibraryScore) -> float:
    """Score characters in their place, beyond what one of them again and again has."""
    value, gold = library(answer), entry["answer"]
    if value == 1.0 or len(answer) != len(gold):
        return value
    commonest = max(map(gold.count, set(gold)))
    return partial_credit(value, commonest / len(gold))


EMOJI_MYSTERY = TaskRules(
    "emoji_mystery",
    notation=but_for_its_ends,
    fix=ScorerFix(
        scorer_sha256="65e9fb30b46b1b4adc9069fd7d75b3336db8ccd5eff38af5e207421fecb1dc5d",
        fault="A sentence with a wrong word of the right length scores 0.9.",
        score=_sentence,
    ),
)
