"""Scores an answer: one number in [0, 1] and one of `OUTCOMES`.

The normalized answer (without formatting, in canonical form) is scored first. If it is
not right and differs from the original text, that is scored too, and the higher score
counts; see rg_env.reward.normalization and rg_env.task_rules.reading. Each of these
texts is scored in two formats, bare and as `<answer>...</answer>`, because a scorer of
the library may expect the tags. Workers receive the settings as `ScoringRules`.

These functions are pure. The library's scorer is an argument; it may raise an error or
return anything, and the result is always a number in [0, 1] with an outcome. A failure
of the machine gives no `Score`, so it can never be mistaken for one.
"""

from __future__ import annotations

import dataclasses
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

import msgspec

from rg_env.reward.normalization import build_formatting_remover
from rg_env.task_rules.rules import MAX_ANSWER_CHARS
from rg_env.task_rules.table import interpretations, rejection, rules_of

# The library gives 0.01 to 0.05 to wrong answers that it can parse.
MAX_WRONG_VALUE = 0.05

# A correct answer may be up to this many times as long as the reference: spaces after
# commas, or a line for each number.
MAX_LENGTH_RATIO = 4

UNSCORED = "unscored"
"""Outcome of a completion without a score (which is not 0) because workers failed. A
continued evaluation or `rescore` scores it again."""

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
    "unfinished_thinking": "cut off while thinking, or text follows the answer",
    "scorer_error": "the task's scorer failed on the answer",
    "rejected": "too long, or contains text that no correct answer contains",
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
        bare: The score of the answer without tags.
        tagged: The score of the tagged answer; None if it was not scored, because the
            bare score is 1.0 or the scorer cannot parse tags.
        value: The score that counts.
    """

    bare: float
    tagged: float | None
    value: float


@dataclasses.dataclass(frozen=True)
class Score:
    """The score of one completion.

    Attributes:
        value: In [0, 1], finite; 0 or 1 without partial credit.
        outcome: A key of `OUTCOMES`.
        answer: The extracted answer, None if there is none.
        normalized: Whether it is the score of the normalized answer, and this differs
            from `answer`.
        formats: The scores of both formats, None if the scorer was not called.
    """

    value: float
    outcome: str
    answer: str | None
    normalized: bool = False
    formats: FormatScores | None = dataclasses.field(default=None, compare=False)

    @property
    def partial(self) -> float:
        """The score with partial credit."""
        return self.formats.value if self.formats else self.value


_Unit = Annotated[float, msgspec.Meta(ge=0, le=1)]
ScoreRow = tuple[_Unit, str, bool, tuple[_Unit, _Unit | None] | None]
"""Value, outcome, normalized, and the scores of both formats, if there are any."""

UNREAD = frozenset({"rejected", "scorer_error"})
"""Outcomes of an answer that the scorer could not parse."""

REWARDED = frozenset({"right", "partial"})
ANSWER_OUTCOMES = REWARDED | {"wrong", "empty_answer", "scorer_error", "rejected"}
"""The possible outcomes of an answer in a worker."""

_by_value = operator.attrgetter("value")


def as_row(score: Score) -> ScoreRow:
    """Return a score as plain values, without its answer, which the reader knows."""
    formats = score.formats
    both = None if formats is None else (formats.bare, formats.tagged)
    return score.value, score.outcome, score.normalized, both


def read_scores(answers: Sequence[str], rows: object) -> list[Score]:
    """Make scores from rows that come from an untrusted process.

    Raises:
        ValueError: The rows cannot be the scores of these answers.
    """
    read = msgspec.convert(rows, list[ScoreRow])
    if len(read) != len(answers):
        raise ValueError(f"{len(read)} scores for {len(answers)} answers")
    return [_score(answer, row) for answer, row in zip(answers, read, strict=True)]


def _score(answer: str, row: ScoreRow) -> Score:
    value, outcome, is_normalized, both = row
    if outcome not in ANSWER_OUTCOMES:
        raise ValueError(f"unknown outcome {outcome!r}")
    expected = outcome if outcome in REWARDED else "wrong"
    if outcome_of(value) != expected:
        raise ValueError(f"the outcome {outcome!r} does not fit the score {value}")
    formats = None if both is None else FormatScores(*both, value)
    return Score(value, outcome, answer, normalized=is_normalized, formats=formats)


def tagged(answer: str) -> str:
    """Return the tagged form of an answer."""
    return f"<answer>{answer}</answer>"


def checked_scorer(scorer: ScoreFunction) -> ScoreFunction:
    """Return a user's `score_answer` that raises TypeError for an invalid score."""

    def score(answer: str, entry: Mapping[str, Any]) -> Any:
        value = scorer(answer, entry)
        number = float(value) if hasattr(value, "__float__") else math.nan
        # A sum of floats may lie slightly outside [0, 1].
        if not -1e-6 <= number <= 1 + 1e-6:
            raise TypeError(f"returned {value!r:.80}; expected a number from 0 to 1")
        return value

    return score


def as_unit(value: Any) -> float:
    """Return a scorer's result as a number in [0, 1]; 0 if it is not a finite number.

    Example:
        >>> [as_unit(value) for value in (1.5, "0.5", None, float("nan"))]
        [1.0, 0.5, 0.0, 0.0]
    """
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return 0.0
    return min(1.0, max(0.0, number)) if math.isfinite(number) else 0.0


def _tags_are_expected(score: ScoreFunction, entry: Mapping[str, Any]) -> bool:
    """Return whether this scorer expects tagged answers, by the reference answer."""
    # An entry without the key is not the library's and has no reference, so its scorer
    # is trusted.
    if "answer" not in entry:
        return True
    gold = entry["answer"]
    if not isinstance(gold, str):
        return False
    # Otherwise tags would raise the score of wrong answers in eight tasks of the
    # library, and of right answers in none.
    return as_unit(score(tagged(gold), entry)) > as_unit(score(gold, entry))


def score_both_formats(
    answer: str, entry: Mapping[str, Any], score: ScoreFunction
) -> FormatScores:
    """Score the bare and the tagged answer; the higher counts.

    Raises:
        Exception: The scorer raised it on the bare answer.

    Source: atropos 296a0bc, _score_answer_with_both_formats(); differs: the tagged
    form counts only for scorers that expect tags, so it never lifts a wrong answer.
    """
    bare = as_unit(score(answer, entry))
    if bare == 1.0:
        return FormatScores(bare, None, bare)
    try:
        with_tags = as_unit(score(tagged(answer), entry))
        lifted = with_tags > bare and _tags_are_expected(score, entry)
    # A scorer that can only parse the bare answer is not faulty.
    except Exception:  # noqa: BLE001 - the scorer is foreign code
        return FormatScores(bare, None, bare)
    return FormatScores(bare, with_tags, with_tags if lifted else bare)


def outcome_of(value: float) -> str:
    """Return the outcome of an answer with this score.

    Example:
        >>> [outcome_of(value) for value in (1.0, 0.5, 0.01)]
        ['right', 'partial', 'wrong']
    """
    if value >= 1.0:
        return "right"
    return "partial" if value > MAX_WRONG_VALUE else "wrong"


def score_answer(answer: str, entry: Mapping[str, Any], score: ScoreFunction) -> Score:
    """Score one extracted answer with the library's scorer.

    An exception of the scorer is a 0 with outcome `scorer_error`.

    Example:
        >>> score_answer("5", {"answer": "5"}, lambda answer, entry: 1.0).outcome
        'right'
    """
    if not answer:
        right = entry.get("answer") == ""
        return Score(float(right), "right" if right else "empty_answer", answer)
    try:
        formats = score_both_formats(answer, entry, score)
    except Exception:  # noqa: BLE001 - foreign code on foreign text may raise anything
        return Score(0.0, "scorer_error", answer)
    return Score(formats.value, outcome_of(formats.value), answer, formats=formats)


def better_score(
    answer: str, normalize: Callable[[str], str], score: Callable[[str], Score]
) -> Score:
    """Score the normalized answer and, if that is not right, the original one.

    Returns:
        The higher score, with the original answer. If both are equal, that of a text
        that the scorer could parse.
    """
    text = normalize(answer)
    if text == answer:
        return score(answer)
    of_normalized = dataclasses.replace(score(text), answer=answer, normalized=True)
    if of_normalized.value == 1.0:
        return of_normalized
    of_original = score(answer)
    if of_original.value == of_normalized.value:
        return of_normalized if of_original.outcome in UNREAD else of_original
    return max(of_original, of_normalized, key=_by_value)


# -- the rules -------------------------------------------------------------------------


def _gold_of(entry: Mapping[str, Any]) -> str | None:
    gold = entry.get("answer")
    return gold if isinstance(gold, str) else None


@dataclasses.dataclass(frozen=True)
class ScoringRules:
    """The settings of scoring.

    Attributes:
        scorer_fixes: Whether the known faults of the library's scorers are corrected.
        max_answer_chars: The length above which answers are rejected; positive.
        normalize_answers: Whether answers are also scored without formatting and in the
            task's canonical form.
        partial_credit: Whether scores below 1 count; otherwise, they are 0.
    """

    scorer_fixes: bool = True
    max_answer_chars: int = MAX_ANSWER_CHARS
    normalize_answers: bool = True
    partial_credit: bool = True

    def apply_partial_credit(self, score: Score) -> Score:
        """Return a score with the value 0 if it is below 1 and must not count."""
        if self.partial_credit or score.value == 1.0:
            return score
        return dataclasses.replace(score, value=0.0)

    def is_too_long(self, text: str, entry: Mapping[str, Any]) -> bool:
        """Return whether a text is too long for an answer."""
        gold = _gold_of(entry) or ""
        return len(text) > max(self.max_answer_chars, MAX_LENGTH_RATIO * len(gold))

    def build_scorer(
        self,
        task: str,
        entry: Mapping[str, Any],
        scorer: ScoreFunction,
        is_guarded: bool = True,
    ) -> Callable[[str], Score]:
        """Return the function that scores the answers to an entry; see `better_score`.

        The scorer never gets a text that is too long, or one that the guard rejects
        (without `is_guarded`, the guard is not called). If the question has several
        interpretations, the highest score counts.
        """

        def build(interpretation: Mapping[str, Any]) -> Callable[[str], Score]:
            gold = _gold_of(interpretation)

            def score_text(text: str) -> Score:
                # A guard takes linear time: it gets no text that is too long.
                if self.is_too_long(text, interpretation) or (
                    is_guarded and rejection(task, text, gold)
                ):
                    return Score(0.0, "rejected", text)
                return score_answer(text, interpretation, scorer)

            normalize = self.build_normalizer(task, interpretation)
            return lambda answer: better_score(answer, normalize, score_text)

        entries = interpretations(task, entry) if self.scorer_fixes else [entry]
        scorers = [build(interpretation) for interpretation in entries]
        return lambda answer: max((score(answer) for score in scorers), key=_by_value)

    def build_normalizer(
        self, task: str, entry: Mapping[str, Any]
    ) -> Callable[[str], str]:
        """Return the function that normalizes the answers to an entry.

        `task` is the task that made the entry, never a mixture. Answers that are too
        long stay unchanged.
        """
        if not self.normalize_answers:
            return lambda answer: answer
        gold = _gold_of(entry)
        rules = rules_of(task)
        remove_formatting = build_formatting_remover(
            gold, rules.kept_signs, entry.get("question") or ""
        )

        def normalize(answer: str) -> str:
            if answer == gold or self.is_too_long(answer, entry):
                return answer
            text = remove_formatting(answer)
            return text if rules.notation is None else rules.notation(text, entry)

        return normalize


DEFAULT_RULES = ScoringRules()
