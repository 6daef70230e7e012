"""A simulated policy: makes texts like those of a model from the known answer.

The kind of a completion is random. Every task has a skill in (0, 1), the level of the
item is its difficulty, and the chance of a right answer is logistic in their
difference.
"""

import hashlib
import math
import random
import string
from dataclasses import dataclass
from typing import Literal

from rg_env.reward.extraction import AnswerFormat

Kind = Literal["right", "wrong", "hedged", "bad_format", "unfinished"]
"""The intended kind of a completion."""

_CLOSED = "<think>\n{thinking}\n</think>\n"
_GOOD_FORM = _CLOSED + "{begin}{answer}{end}"
BAD_FORMS = (
    _CLOSED + "The answer is {answer}.",
    _CLOSED + "{begin}{other}{end}\n{begin}{answer}{end}",
    _CLOSED + "{begin}{answer}",
    "<think>\n{thinking}\nMaybe {begin}{answer}{end} is it.\n</think>\nSee above.",
)
"""Forms without an answer: no tags, two answers, an unclosed tag, only in thinking."""

MARKS: dict[AnswerFormat, tuple[str, str]]
MARKS = {"tags": ("<answer>", "</answer>"), "boxed": ("\\boxed{", "}")}

THOUGHTS = (
    "Let me read the question once more before I do anything.",
    "The part about {word} matters, so I keep it in mind.",
    "If I take {first} here, then {second} follows from it.",
    "No, {first} does not fit, so I go back and try {second}.",
    "So far nothing contradicts the rule about {word}.",
    "The result has to be written exactly as the question asks.",
)


@dataclass(frozen=True)
class Known:
    """The policy's knowledge of an item."""

    task: str
    question: str
    answer: str
    level: float | None = None  # in [0, 1], None for the library's defaults
    answer_format: AnswerFormat = "tags"
    index: int = 0  # its number in the stream


@dataclass(frozen=True)
class PolicyProfile:
    """The behaviour of a simulated policy.

    The skills of tasks are in `mean_skill` +- `skill_spread`. `bad_format`,
    `unfinished` and `hedged` are the chances of a form without an answer, of thinking
    that never ends, and of two answers within one pair of tags.
    """

    mean_skill: float = 0.55
    skill_spread: float = 0.4
    sharpness: float = 6.0  # how fast the chance falls as the level passes the skill
    bad_format: float = 0.05
    unfinished: float = 0.03
    hedged: float = 0.02
    thinking_words: int = 72  # on average


def task_skill(profile: PolicyProfile, task: str) -> float:
    """Return the skill in a task, in [0.02, 0.98]; it only depends on the name."""
    # hash() of a string varies from process to process; a digest does not.
    digest = hashlib.blake2b(task.encode(), digest_size=8).digest()
    place = int.from_bytes(digest, "big") / 2**64
    skill = profile.mean_skill + profile.skill_spread * (2 * place - 1)
    return min(0.98, max(0.02, skill))


def chance_right(profile: PolicyProfile, task: str, level: float | None) -> float:
    """Return the chance, in (0, 1), that a well-formed answer is right.

    Example:
        >>> easy, hard = (chance_right(PolicyProfile(), "gcd", x) for x in (0.0, 1.0))
        >>> easy > hard
        True
    """
    # The library's own parameters have no known level.
    difficulty = 0.5 if level is None else level
    distance = task_skill(profile, task) - difficulty
    return 1 / (1 + math.exp(-profile.sharpness * distance))


def sample_completion(
    known: Known, profile: PolicyProfile, rng: random.Random
) -> tuple[str, Kind]:
    """Return one completion and its kind.

    The caller must repeat the text of an unfinished one up to its limit.
    """
    kind = sample_kind(known, profile, rng)
    thinking = _sample_thinking(known.question, profile.thinking_words, rng)
    if kind == "unfinished":
        return f"<think>\n{thinking}\n", kind
    answer = known.answer
    if kind == "wrong":
        answer = spoil_answer(answer, rng)
    if kind == "hedged":
        answer = f"{answer} or {spoil_answer(answer, rng)}"
    form = rng.choice(BAD_FORMS) if kind == "bad_format" else _GOOD_FORM
    begin, end = MARKS[known.answer_format]
    other = spoil_answer(answer, rng)
    text = form.format(
        thinking=thinking, answer=answer, other=other, begin=begin, end=end
    )
    return text, kind


def sample_kind(known: Known, profile: PolicyProfile, rng: random.Random) -> Kind:
    """Sample the kind of one completion."""
    throw = rng.random()
    faults: tuple[tuple[Kind, float], ...] = (
        ("bad_format", profile.bad_format),
        ("unfinished", profile.unfinished),
        ("hedged", profile.hedged),
    )
    for kind, chance in faults:
        if throw < chance:
            return kind
        throw -= chance
    right = rng.random() < chance_right(profile, known.task, known.level)
    return "right" if right else "wrong"


def spoil_answer(answer: str, rng: random.Random) -> str:
    """Change an answer into another one of the same form."""
    for alphabet in (string.digits, string.ascii_lowercase, string.ascii_uppercase):
        if places := [i for i, sign in enumerate(answer) if sign in alphabet]:
            place = rng.choice(places)
            others = set(alphabet) - {answer[place], "0"}
            return answer[:place] + rng.choice(sorted(others)) + answer[place + 1 :]
    return answer.strip()[:-1] or "0"


def _sample_thinking(question: str, mean_words: int, rng: random.Random) -> str:
    """Return sentences with words of the question; their length is log-normal."""
    mu = math.log(mean_words) - 0.5**2 / 2
    target = min(rng.lognormvariate(mu, 0.5), 8 * mean_words)
    # The end of a long question would cost time and change nothing.
    given = question[:2000].split()
    words = [word for word in given if word.isalpha() and len(word) > 4] or ["it"]
    sentences: list[str] = []
    length = 0
    while length < target:
        sentence = rng.choice(THOUGHTS).format(
            first=rng.randrange(1, 100),
            second=rng.randrange(1, 100),
            word=rng.choice(words),
        )
        sentences.append(sentence)
        length += sentence.count(" ") + 1
    return " ".join(sentences)
