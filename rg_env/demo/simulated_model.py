"""The simulated model: a client that needs no server and knows each item's answer.

`openai.base_url: simulated` selects it. A completion depends only on the item and on
its number among the completions of the item, not on time or earlier samples. The
log-probabilities are random: finite, negative and not those of a model.

The kind of a completion is random. The model has a skill in (0, 1) for each task, the
level of the item is its difficulty, and the chance of a right answer is logistic in
their difference.
"""

from __future__ import annotations

import dataclasses
import logging
import math
import random
import string
from collections.abc import Iterator
from typing import Any

import numpy as np
from openai.types.chat import ChatCompletion

from rg_env.executor import in_thread
from rg_env.inference.client import Callback, Client
from rg_env.inference.completions import Completion, read_tokens
from rg_env.inference.prompts import Prompt
from rg_env.inference.protocols import COMPLETIONS, Body, Route
from rg_env.reward.extraction import AnswerFormat
from rg_env.stream.item import Item
from rg_env.task_rules.rules import MIXTURE

logger = logging.getLogger(__name__)

_CLOSED = "<think>\n{thinking}\n</think>\n"
_GOOD_FORM = _CLOSED + "{begin}{answer}{end}"
BAD_FORMS = (
    _CLOSED + "The answer is {answer}.",
    _CLOSED + "{begin}{other}{end}\n{begin}{answer}{end}",
    _CLOSED + "{begin}{answer}",
    "<think>\n{thinking}\nMaybe {begin}{answer}{end} is it.\n</think>\nSee above.",
)
"""Forms without an answer: no tags, two answers, an unclosed tag, only in thinking."""

TAGS: dict[AnswerFormat, tuple[str, str]] = {
    "tags": ("<answer>", "</answer>"),
    "boxed": ("\\boxed{", "}"),
}

THOUGHTS = (
    "Let me read the question once more before I do anything.",
    "The part about {word} matters, so I keep it in mind.",
    "If I take {first} here, then {second} follows from it.",
    "No, {first} does not fit, so I go back and try {second}.",
    "So far nothing contradicts the rule about {word}.",
    "The result has to be written exactly as the question asks.",
)


@dataclasses.dataclass(frozen=True)
class PolicyProfile:
    """The behaviour of the simulated model.

    Attributes:
        mean_skill: The mean of the skills of tasks.
        skill_spread: The largest difference of a skill from the mean.
        sharpness: How fast the chance falls as the level exceeds the skill.
        bad_format: The chance of a form without an answer.
        unfinished: The chance of thinking that never ends.
        hedged: The chance of two answers within one pair of tags.
    """

    mean_skill: float = 0.55
    skill_spread: float = 0.4
    sharpness: float = 6.0
    bad_format: float = 0.05
    unfinished: float = 0.03
    hedged: float = 0.02


class SimulatedClient(Client):
    """A client that makes the completions itself; its requests never fail."""

    profile = PolicyProfile()

    def __init__(self, config: Any, reasoning_config: Any = None) -> None:
        super().__init__(config, reasoning_config=reasoning_config)
        self.is_up = True
        self.route = COMPLETIONS
        logger.warning(
            "the model is simulated: it knows the answers and makes mistakes at a set"
            " rate, so its texts and scores say nothing about any real one"
        )

    async def query(
        self,
        route: Route,
        prompt: Prompt,
        fields: Body,
        on_reply: Callback | None = None,
    ) -> list[Completion]:
        """Make completions of the item of a prompt."""
        if prompt.item is None:
            raise NotImplementedError("the simulated model only completes items")
        written = self._write(prompt, fields["n"], fields["max_tokens"])
        completions = await in_thread(read_tokens, self.tokenizer, written)
        if on_reply is not None:
            on_reply()
        return completions

    def _write(self, prompt: Prompt, n: int, max_tokens: int) -> Iterator[Completion]:
        *_, entry, dataset = prompt.item
        # An object of a user is not an `Item`; its task is read from its entry.
        item = dataset if isinstance(dataset, Item) else Item(MIXTURE)
        item = dataclasses.replace(item, _entry=entry)
        gold = item.gold or "no solution known"
        for number in range(prompt.first, prompt.first + n):
            rng = random.Random(f"{item.index}/{number}/{item.question}")
            text, kind = sample_completion(item, gold, self.profile, rng)
            if prompt.thinking_open:
                text = text.removeprefix("<think>\n")
            ids = self.tokenizer.encode(text, add_special_tokens=False)
            if kind == "unfinished":  # fills up to the limit
                ids *= max_tokens // len(ids) + 1
            ids.append(self.tokenizer.eos_token_id)
            reason = "stop" if len(ids) <= max_tokens else "length"
            ids = ids[:max_tokens]
            noise_rng = np.random.default_rng(rng.getrandbits(32))
            logprobs = -noise_rng.exponential(0.5, len(ids)).round(4)
            yield Completion(None, ids, logprobs.tolist(), reason)

    async def _chat_completion_wrapper(self, **fields: Any) -> ChatCompletion:
        raise NotImplementedError("the simulated model only completes items")


# -- completions -----------------------------------------------------------------------


def chance_right(profile: PolicyProfile, task: str, level: float | None) -> float:
    """Return the chance, in (0, 1), that a well-formed answer is right.

    Example:
        >>> easy, hard = (chance_right(PolicyProfile(), "gcd", x) for x in (0.0, 1.0))
        >>> easy > hard
        True
    """
    offset = 2 * random.Random(task).random() - 1  # depends only on the name
    skill = profile.mean_skill + profile.skill_spread * offset
    # The level of the library's default parameters is not known.
    difficulty = 0.5 if level is None else level
    return 1 / (1 + math.exp(-profile.sharpness * (skill - difficulty)))


def sample_completion(
    item: Item, gold: str, profile: PolicyProfile, rng: random.Random
) -> tuple[str, str]:
    """Return a completion of an item and its kind; `gold` is a right answer.

    The caller must repeat the text of an unfinished one up to its limit.
    """
    well_formed = 1 - profile.bad_format - profile.unfinished - profile.hedged
    right = well_formed * chance_right(profile, item.task, item.level)
    chances = {
        "bad_format": profile.bad_format,
        "unfinished": profile.unfinished,
        "hedged": profile.hedged,
        "right": right,
        "wrong": well_formed - right,
    }
    (kind,) = rng.choices([*chances], [*chances.values()])
    thinking = _sample_thinking(item.question, rng)
    if kind == "unfinished":
        return f"<think>\n{thinking}\n", kind
    other = spoil_answer(gold, rng)
    answer = {"wrong": other, "hedged": f"{gold} or {other}"}.get(kind, gold)
    form = rng.choice(BAD_FORMS) if kind == "bad_format" else _GOOD_FORM
    begin, end = TAGS[item.answer_format]
    text = form.format(
        thinking=thinking, answer=answer, other=other, begin=begin, end=end
    )
    return text, kind


def spoil_answer(answer: str, rng: random.Random) -> str:
    """Change an answer into another one of the same form."""
    for alphabet in (string.digits, string.ascii_lowercase, string.ascii_uppercase):
        indices = [i for i, char in enumerate(answer) if char in alphabet]
        if indices:
            index = rng.choice(indices)
            others = set(alphabet) - {answer[index], "0"}
            return answer[:index] + rng.choice(sorted(others)) + answer[index + 1 :]
    return answer.strip()[:-1] or "0"


def _sample_thinking(question: str, rng: random.Random) -> str:
    """Return 2 to 12 sentences with words of the question."""
    # The beginning of a long question is enough.
    candidates = question[:2000].split()
    words = [word for word in candidates if word.isalpha() and len(word) > 4] or ["it"]
    return " ".join(
        thought.format(
            first=rng.randrange(1, 100),
            second=rng.randrange(1, 100),
            word=rng.choice(words),
        )
        for thought in rng.choices(THOUGHTS, k=rng.randrange(2, 13))
    )
