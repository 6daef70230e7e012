"""Which questions are sampled: none of the evaluation's, and few for the second time.

Each draw has several seeds, one for each attempt. An attempt is rejected, and the next
one made, if the entry cannot be solved, if its question belongs to the evaluation, or
if the task had the question recently. If the last attempt is only a repeat, it is
sampled anyway; otherwise the draw is skipped. `QuestionFilter.judge` implements this
rule. Items that are judged in the order of their stream always give the same questions.

A question is remembered as a digest of eight bytes: 1,000 of each of a hundred tasks
are a megabyte in a checkpoint. Two questions share a digest once in 10**19 pairs.
"""

from __future__ import annotations

import base64
import hashlib
from collections import Counter, deque
from collections.abc import Collection
from typing import Any, Literal, NamedTuple

from rg_env.tasks.sampler import MAX_ATTEMPTS

REMEMBERED = 1_000
"""Questions remembered of each task, the oldest forgotten first."""

_BYTES = 8


def digest(question: str) -> int:
    """Return what a question is remembered by, in [0, 2**64)."""
    hashed = hashlib.blake2b(question.encode(errors="surrogatepass"), digest_size=8)
    return int.from_bytes(hashed.digest(), "big")


class RecentQuestions:
    """The newest questions of each task, so many as are `remembered`."""

    def __init__(self, remembered: int = REMEMBERED) -> None:
        self._remembered = remembered
        self._in_order: dict[str, deque[int]] = {}
        self._counts: dict[str, Counter[int]] = {}

    def has(self, task: str, question: str) -> bool:
        """Say whether a task had a question lately."""
        return digest(question) in self._counts.get(task, ())

    def add(self, task: str, question: str) -> None:
        """Remember a question that is being sampled."""
        self.add_digest(task, digest(question))

    def add_digest(self, task: str, key: int) -> None:
        """Remember a question by its digest."""
        order = self._in_order.setdefault(task, deque())
        counts = self._counts.setdefault(task, Counter())
        order.append(key)
        counts[key] += 1
        if len(order) > self._remembered:
            oldest = order.popleft()
            counts[oldest] -= 1
            if not counts[oldest]:
                del counts[oldest]

    def clear(self) -> None:
        """Forget all."""
        self._in_order.clear()
        self._counts.clear()

    def state_dict(self) -> dict[str, Any]:
        """Return the digests of each task, oldest first, as base64."""
        packed = {
            task: b"".join(key.to_bytes(_BYTES, "big") for key in order)
            for task, order in self._in_order.items()
        }
        return {task: base64.b64encode(data).decode() for task, data in packed.items()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over a state; ValueError, and no change, if it has another form."""
        try:
            packed = {
                str(task): base64.b64decode(text, validate=True)
                for task, text in state.items()
            }
        except (AttributeError, TypeError, ValueError) as error:
            raise ValueError(f"recent questions: digests by task ({error})") from error
        if any(len(data) % _BYTES for data in packed.values()):
            raise ValueError("recent questions: digests of another length")
        self.clear()
        for task, data in packed.items():
            for at in range(0, len(data), _BYTES):
                self.add_digest(task, int.from_bytes(data[at : at + _BYTES], "big"))


class Ruling(NamedTuple):
    """What becomes of an attempt at a draw, and what is counted of it, if anything."""

    action: Literal["sample", "retry", "skip"]
    event: str | None = None


_SAMPLE = Ruling("sample")
_RETRY = {
    "unusable": Ruling("retry", "items_unusable"),
    "repeat": Ruling("retry", "repeats_avoided"),
    "evaluation": Ruling("retry", "evaluations_avoided"),
}
_AT_THE_LAST_ATTEMPT = {
    "unusable": Ruling("skip", "items_unusable"),
    "repeat": Ruling("sample", "repeats_sampled"),
    "evaluation": Ruling("skip", "evaluations_skipped"),
}


class QuestionFilter:
    """Decides on each attempt at the draws of a stream, in the stream's order."""

    def __init__(self) -> None:
        self.recent = RecentQuestions()
        self._evaluated: frozenset[int] = frozenset()

    def keep_for_evaluation(self, questions: Collection[str]) -> None:
        """Never let a question of these pass."""
        self._evaluated |= frozenset(map(digest, questions))

    def judge(self, task: str, question: str | None, attempt: int) -> Ruling:
        """Decide on an attempt at a draw, and remember its question if it is sampled.

        The question is None where nobody could solve the entry.
        """
        if question is None:
            fault = "unusable"
        elif digest(question) in self._evaluated:
            fault = "evaluation"
        elif self.recent.has(task, question):
            fault = "repeat"
        else:
            fault = ""
        rulings = _RETRY if attempt + 1 < MAX_ATTEMPTS else _AT_THE_LAST_ATTEMPT
        ruling = rulings[fault] if fault else _SAMPLE
        if question is not None and ruling.action == "sample":
            self.recent.add(task, question)
        return ruling
