"""letter_jumble: unscrambled words."""

from __future__ import annotations

from rg_env.task_rules.partial_credit import partial_credit
from rg_env.task_rules.reading.lists import WORD, less_surplus, list_of
from rg_env.task_rules.rules import Entry, LibraryScore, ScorerFix, TaskRules


def _words(answer: str, entry: Entry, library: LibraryScore) -> float:
    """Score word by word, surplus words and lost capitals included.

    It may begin with a capital, as any sentence. A title's capitals on every word cost
    one word: the words are right, and only how they are written is not. Words that the
    question shows unchanged score nothing.
    """
    words, gold = answer.split(), entry["answer"].split()
    if words[:1] == [gold[0][:1].upper() + gold[0][1:]]:
        words[0] = gold[0]
    if words == gold:
        return 1.0
    surplus = max(0, len(words) - len(gold))
    # The question has the capitals kept, and the library passes over them.
    other_case = any(
        word != right and word.lower() == right.lower()
        for word, right in zip(words, gold, strict=False)
    )
    share = less_surplus(library(answer), surplus + other_case, len(gold))
    shown = entry["metadata"].get("scrambled_words", ())
    unchanged = sum(a == b for a, b in zip(shown, gold, strict=False))
    return partial_credit(share, unchanged / len(gold))


RULES = TaskRules(
    "letter_jumble",
    notation=list_of(WORD, " ".join, is_sentence=True),
    fix=ScorerFix(
        scorer_sha256="ff88ce5e01c6806cd1063955209938441ca99937007cafd3ba8659be7001fa98",
        fault="Ignores capitals and words after the last right one; gives 0.9 if one"
        " word is wrong, and credit for words that the question shows unchanged.",
        score=_words,
    ),
)
