"""The score of an answer: both formats, one number, one outcome.

An answer is scored normalized, without its formatting and in the task's notation,
and, if that is another text and not right, as it stands as well; the higher counts. See
rg_env.reward.normalization and rg_env.task_rules.reading. `ScoringRules` are the
settings of this, which travel to the worker.

Pure: the library's scorer is passed in as a function, which may raise an error
or return anything. The result is always a number in [0, 1] with one of `OUTCOMES`.

Trouble of the machine gives no Score at all, and so can never look like one.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

import msgspec

from rg_env.reward.normalization import normalizing
from rg_env.task_rules.rules import MAX_ANSWER_CHARS
from rg_env.task_rules.table import readings, rejection, rules_of

# Up to this the library gives for answers that are only readable (0.01 to 0.05).
WRONG_AT_MOST = 0.05

# So many times as long as the gold answer a correct one may be: spaces after commas, or
# a line for each number.
GOLD_ROOM = 4

UNSCORED = "unscored"
"""Outcome of a completion to which workers gave no score, which is not 0. It is tried
again where the evaluation, or the file of `rescore`, is continued."""

ScoreFunction = Callable[[str, Mapping[str, Any]], Any]
"""`score_answer(answer, entry)` of a dataset of the library."""

OUTCOMES: Mapping[str, str] = {
    "right": "full score",
    "partial": "partial score",
    "wrong": "score 0, or up to 0.05 if the answer is readable",
    "empty_answer": "nothing between the answer tags",
    "no_answer": "no <answer> outside the thinking",
    "several_answers": "more than one <answer>",
    "nested_answer": "a tag inside the answer",
    "unclosed_answer": "<answer> without </answer>",
    "stray_tag": "</answer> without <answer>",
    "unfinished_thinking": "cut off while thinking",
    "scorer_error": "the task's scorer failed on the answer",
    "rejected": "too long, or contains what no correct answer contains",
    "timeout": "scoring the answer took too long",
    "request_failed": "no score: the inference server did not reply",
    "unscored": "no score: the workers gave none, or the file has none",
    "unmatched": "no score: the library makes a different item",
    "not_used": "no score: the item has no correct reference answer",
}
"""Outcome of a rollout to its meaning, the best first."""


@dataclasses.dataclass(frozen=True)
class FormatScores:
    """An answer's score in both formats, each in [0, 1].

    Attributes:
        bare: Of the answer alone.
        tagged: Of the tagged answer; None where it was not scored, because the bare
            one is perfect or because the scorer cannot read tags.
        value: The one that counts.
    """

    bare: float
    tagged: float | None
    value: float


@dataclasses.dataclass(frozen=True)
class Score:
    """The score of one completion.

    Attributes:
        value: In [0, 1], finite.
        outcome: One word from the table above.
        answer: The answer as it was extracted, None where there was none.
        normalized: The answer counts normalized, which is another text than the
            answer as it stands.
        formats: Both formats' scores, where the scorer was called.
    """

    value: float
    outcome: str
    answer: str | None
    normalized: bool = False
    formats: FormatScores | None = dataclasses.field(default=None, compare=False)


_Unit = Annotated[float, msgspec.Meta(ge=0, le=1)]
ScoreRow = tuple[_Unit, str, bool, _Unit | None, _Unit | None]
"""Value, outcome, normalized, and the scores of both formats, None where there are
none."""

UNREAD = frozenset({"rejected", "scorer_error"})
REWARDED = frozenset({"right", "partial"})
ANSWER_OUTCOMES = REWARDED | {"wrong", "empty_answer", "scorer_error", "rejected"}
"""What can become of an answer in a worker."""


def as_row(score: Score) -> ScoreRow:
    """Return a score as plain values, without its answer, which the reader knows."""
    formats = score.formats
    if formats is None:
        return score.value, score.outcome, score.normalized, None, None
    both = formats.bare, formats.tagged
    return score.value, score.outcome, score.normalized, *both


def read_rows(answers: Sequence[str], rows: object) -> list[Score]:
    """Make scores from rows that come from an untrusted process.

    Raises:
        ValueError: They cannot be the scores of these answers.
    """
    read = msgspec.convert(rows, list[ScoreRow])
    if len(read) != len(answers):
        raise ValueError("there is a score for each answer")
    return [_read_row(answer, *row) for answer, row in zip(answers, read, strict=True)]


def _read_row(
    answer: str,
    value: float,
    outcome: str,
    normalized: bool,
    bare: float | None,
    with_tags: float | None,
) -> Score:
    if outcome not in ANSWER_OUTCOMES:
        raise ValueError("a score has an outcome of the table")
    if outcome_of(value) != (outcome if outcome in REWARDED else "wrong"):
        raise ValueError("a score has the outcome of its value")
    formats = None if bare is None else FormatScores(bare, with_tags, value)
    return Score(value, outcome, answer, normalized, formats)


def tagged(answer: str) -> str:
    """Return the tagged form of an answer."""
    return f"<answer>{answer}</answer>"


def as_unit(value: Any) -> float:
    """Return a scorer's result as a number in [0, 1]; what is no finite number is 0."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return 0.0
    return min(1.0, max(0.0, number)) if math.isfinite(number) else 0.0


def _tags_are_expected(score: ScoreFunction, entry: Mapping[str, Any]) -> bool:
    """Say whether this scorer wants its answers tagged, judged by the gold answer."""
    # An entry without the key is none of the library's; it says nothing of what is
    # right, and its scorer's word is taken.
    if "answer" not in entry:
        return True
    gold = entry["answer"]
    if not isinstance(gold, str):
        return False
    # Else tags would lift wrong answers in eight tasks of the library, and the right
    # one in none.
    return as_unit(score(tagged(gold), entry)) > as_unit(score(gold, entry))


def compare_formats(
    answer: str, entry: Mapping[str, Any], score: ScoreFunction
) -> FormatScores:
    """Score the bare and the tagged answer; the higher counts.

    Raises:
        Exception: Whatever the scorer raises on the bare answer.

    Source: atropos 296a0bc, _score_answer_with_both_formats(); differs: the tagged
    form counts only for scorers that expect tags, so it never lifts a wrong answer.
    """
    bare = as_unit(score(answer, entry))
    if bare == 1.0:
        return FormatScores(bare, None, bare)
    try:
        with_tags = as_unit(score(tagged(answer), entry))
        lifted = with_tags > bare and _tags_are_expected(score, entry)
    # One that can read the bare answer alone is not at fault for the tagged one.
    except Exception:  # noqa: BLE001 - the scorer is foreign code
        return FormatScores(bare, None, bare)
    return FormatScores(bare, with_tags, with_tags if lifted else bare)


def outcome_of(value: float) -> str:
    """Return the word for a score of an answer that was read."""
    if value >= 1.0:
        return "right"
    return "partial" if value > WRONG_AT_MOST else "wrong"


def score_answer(answer: str, entry: Mapping[str, Any], score: ScoreFunction) -> Score:
    """Score one extracted answer; the boundary to the library's scorer.

    Returns:
        The score; an exception of the scorer is a 0 with outcome `scorer_error`.
    """
    if not answer:
        right = entry.get("answer") == ""
        return Score(float(right), "right" if right else "empty_answer", answer)
    try:
        formats = compare_formats(answer, entry, score)
    except Exception:  # noqa: BLE001 - foreign code on foreign text may raise anything
        return Score(0.0, "scorer_error", answer)
    return Score(formats.value, outcome_of(formats.value), answer, formats=formats)


def better_score(
    answer: str, normalized: Callable[[str], str], score: Callable[[str], Score]
) -> Score:
    """Score an answer normalized and, if it is not right so, as it stands.

    Returns:
        The higher score, with the answer as it stands; of equal ones that of the form
        which was read.
    """
    rest = normalized(answer)
    if rest == answer:
        return score(answer)
    other = dataclasses.replace(score(rest), answer=answer, normalized=True)
    if other.value == 1.0:
        return other
    value = score(answer)
    was_read = value.outcome not in UNREAD
    if other.value < value.value or (other.value == value.value and was_read):
        return value
    return other


# -- the rules -------------------------------------------------------------------------


def _gold_of(entry: Mapping[str, Any]) -> str | None:
    gold = entry.get("answer")
    return gold if isinstance(gold, str) else None


@dataclasses.dataclass(frozen=True)
class ScoringRules:
    """How answers are scored.

    Attributes:
        scorer_fixes: Whether the known faults of the library's scorers are corrected.
        max_answer_chars: Answers longer than this are rejected; positive.
        normalize_answers: Whether answers are also scored without their formatting and
            in the task's notation.
    """

    scorer_fixes: bool = True
    max_answer_chars: int = MAX_ANSWER_CHARS
    normalize_answers: bool = True

    def too_long(self, text: str, entry: Mapping[str, Any]) -> str | None:
        """Return why a text is too long for an answer, None where it is not."""
        gold = _gold_of(entry)
        longest = max(self.max_answer_chars, GOLD_ROOM * len(gold or ""))
        if len(text) <= longest:
            return None
        return f"it has {len(text)} characters, and {longest} may be"

    def rejection(
        self, task: str, entry: Mapping[str, Any], text: str, is_guarded: bool = True
    ) -> str | None:
        """Return why a text must not reach the scorer of a task, None where it may.

        The task is the one that made the entry, never a mixture.
        """
        reason = self.too_long(text, entry)
        if reason is None and is_guarded:
            reason = rejection(task, text, _gold_of(entry))
        return reason

    def scoring(
        self,
        task: str,
        entry: Mapping[str, Any],
        scorer: ScoreFunction,
        is_guarded: bool = True,
    ) -> Callable[[str], Score]:
        """Return what scores the answers to an entry; see `better_score`.

        The scorer gets no text that is rejected. Where the question admits several
        readings, the one counts by which the answer scores highest.
        """

        def scoring_of(one: Mapping[str, Any]) -> Callable[[str], Score]:
            def score(form: str) -> Score:
                if self.rejection(task, one, form, is_guarded) is not None:
                    return Score(0.0, "rejected", form)
                return score_answer(form, one, scorer)

            normalized = self.normalizer(task, one)
            return lambda answer: better_score(answer, normalized, score)

        read = readings(task, entry) if self.scorer_fixes else [entry]
        each = [scoring_of(one) for one in read]
        return lambda answer: max((s(answer) for s in each), key=lambda s: s.value)

    def normalizer(self, task: str, entry: Mapping[str, Any]) -> Callable[[str], str]:
        """Return what normalizes the answers to an item of a task, never a mixture.

        An answer stays what it is where it is too long or none is normalized.
        """
        if not self.normalize_answers:
            return lambda answer: answer
        gold = _gold_of(entry)
        rules = rules_of(task)
        unformatted = normalizing(gold, rules.kept_signs, entry.get("question") or "")

        def normalized(answer: str) -> str:
            if answer == gold or self.too_long(answer, entry):
                return answer
            bare = unformatted(answer)
            return bare if rules.notation is None else rules.notation(bare, entry)

        return normalized


DEFAULT_RULES = ScoringRules()
