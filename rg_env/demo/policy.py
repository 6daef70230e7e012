"""A simulated policy: text that looks like a model's, made from the known answer.

It throws dice for the kind of a completion. Every task has a skill in (0, 1), the level
of the item is its difficulty, and the chance of a right answer is logistic in their
difference.
"""

import hashlib
import math
import random
import string
from dataclasses import dataclass
from typing import Literal

Kind = Literal["right", "wrong", "hedged", "bad_format", "unfinished", "guess"]
"""What a completion is meant to be; a guess answers a question that is not known."""

_CLOSED = "<think>\n{thinking}\n</think>\n"
_DRAFT = "<think>\n{thinking}\nMaybe <answer>{answer}</answer> is it.\n</think>\n"
BAD_FORMS = (
    _CLOSED + "The answer is {answer}.",
    _CLOSED + "<answer>{other}</answer>\n<answer>{answer}</answer>",
    _CLOSED + "<answer>{answer}",
    _DRAFT + "The answer stands above.",
)
"""No answer may be extracted: without tags, two, unclosed, only thought of."""

THOUGHTS = (
    "Let me read the question once more before I do anything.",
    "The part about {word} matters, so I keep it in mind.",
    "If I take {first} here, then {second} follows from it.",
    "No, {first} does not fit, so I go back and try {second}.",
    "So far nothing contradicts the rule about {word}.",
    "The result has to be written exactly as the question asks.",
)


@dataclass(frozen=True)
class KeyEntry:
    """What is known of one question, whose text is exactly that of the user message."""

    task: str
    question: str
    answer: str
    level: float | None  # in [0, 1], None for the library's defaults


@dataclass(frozen=True)
class PolicyProfile:
    """How a simulated policy behaves.

    The skills of tasks are in `mean_skill` +- `skill_spread`. `bad_format`,
    `unfinished` and `hedged` are chances of a completion whose answer cannot be
    extracted, of thinking that never ends, and of two answers within one pair of tags.
    """

    seed: int = 0
    mean_skill: float = 0.55
    skill_spread: float = 0.4
    sharpness: float = 6.0  # how fast the chance falls as the level passes the skill
    bad_format: float = 0.05
    unfinished: float = 0.03
    hedged: float = 0.02
    thinking_words: int = 72  # on average


def task_skill(profile: PolicyProfile, task: str) -> float:
    """The simulated skill in a task, in [0.02, 0.98]; depends on seed and name only."""
    # hash() of a string changes from process to process; a digest does not.
    digest = hashlib.blake2b(f"{profile.seed}:{task}".encode(), digest_size=8).digest()
    place = int.from_bytes(digest, "big") / 2**64
    skill = profile.mean_skill + profile.skill_spread * (2 * place - 1)
    return min(0.98, max(0.02, skill))


def chance_right(profile: PolicyProfile, task: str, level: float | None) -> float:
    """Chance, in (0, 1), that a well-formed answer of the simulated policy is right."""
    # The library's own parameters lie in no known place of the scale.
    difficulty = 0.5 if level is None else level
    distance = task_skill(profile, task) - difficulty
    return 1 / (1 + math.exp(-profile.sharpness * distance))


def sample_completion(
    entry: KeyEntry | None, profile: PolicyProfile, rng: random.Random
) -> tuple[str, Kind]:
    """Write one completion, and of what kind it is; an unknown question gets a guess.

    The text of an unfinished one is to be repeated for ever.
    """
    kind = sample_kind(entry, profile, rng)
    question = entry.question if entry else ""
    thinking = _sample_thinking(question, profile.thinking_words, rng)
    if kind == "unfinished":
        return f"<think>\n{thinking}\n", kind
    answer = entry.answer if entry else str(rng.randrange(100))
    if kind == "bad_format":
        form = rng.choice(BAD_FORMS)
        other = spoil_answer(answer, rng) if "{other}" in form else ""
        return form.format(thinking=thinking, answer=answer, other=other), kind
    if kind == "wrong":
        answer = spoil_answer(answer, rng)
    if kind == "hedged":
        answer = f"{answer} or {spoil_answer(answer, rng)}"
    return f"<think>\n{thinking}\n</think>\n<answer>{answer}</answer>", kind


def sample_kind(
    entry: KeyEntry | None, profile: PolicyProfile, rng: random.Random
) -> Kind:
    """Throw the dice for the kind of one completion."""
    if entry is None:
        return "guess"
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
    right = rng.random() < chance_right(profile, entry.task, entry.level)
    return "right" if right else "wrong"


def spoil_answer(answer: str, rng: random.Random) -> str:
    """Change an answer into one that looks as correct and is not the same text."""
    for alphabet in (string.digits, string.ascii_lowercase, string.ascii_uppercase):
        if places := [i for i, sign in enumerate(answer) if sign in alphabet]:
            place = rng.choice(places)
            others = set(alphabet) - {answer[place], "0"}
            return answer[:place] + rng.choice(sorted(others)) + answer[place + 1 :]
    return answer.strip()[:-1] or "0"


def _sample_thinking(question: str, mean_words: int, rng: random.Random) -> str:
    """Sentences of about a log-normal number of words, with words of the question."""
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
