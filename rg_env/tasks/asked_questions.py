"""Which questions are asked: none of the evaluation's, and few for the second time.

A question is remembered as a digest of eight bytes: 1,000 of each of a hundred tasks
are a megabyte in a checkpoint. Two questions share a digest once in 10**19 pairs.
"""

from __future__ import annotations

import base64
import hashlib
from collections import Counter, deque
from collections.abc import Collection
from typing import Any, Literal

Verdict = Literal["fresh", "repeat", "evaluation"]

REMEMBERED = 1_000
"""RunItems remembered of each task, the oldest forgotten first."""

_BYTES = 8


def digest(question: str) -> int:
    """Return what a question is remembered by, in [0, 2**64)."""
    hashed = hashlib.blake2b(question.encode(errors="surrogatepass"), digest_size=8)
    return int.from_bytes(hashed.digest(), "big")


class AskedQuestions:
    """The newest questions of each task.

    Args:
        remembered: RunItems kept of each task, at least 1.
    """

    def __init__(self, remembered: int = REMEMBERED) -> None:
        self._remembered = remembered
        self._in_order: dict[str, deque[int]] = {}
        self._counts: dict[str, Counter[int]] = {}

    def has(self, task: str, question: str) -> bool:
        """Say whether a task has asked a question lately."""
        return digest(question) in self._counts.get(task, ())

    def add(self, task: str, question: str) -> None:
        """Remember a question that is being asked."""
        self._add(task, digest(question))

    def _add(self, task: str, key: int) -> None:
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
        return {
            task: base64.b64encode(
                b"".join(key.to_bytes(_BYTES, "big") for key in order)
            ).decode()
            for task, order in self._in_order.items()
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over a state.

        Raises:
            ValueError: A field has another form; nothing was changed.
        """
        try:
            packed = {
                str(task): base64.b64decode(text, validate=True)
                for task, text in state.items()
            }
        except (AttributeError, TypeError, ValueError) as error:
            raise ValueError(f"asked questions: digests by task ({error})") from error
        if any(len(data) % _BYTES for data in packed.values()):
            raise ValueError("asked questions: digests of another length")
        self.clear()
        for task, data in packed.items():
            for at in range(0, len(data), _BYTES):
                self._add(task, int.from_bytes(data[at : at + _BYTES], "big"))


class QuestionFilter:
    """Decides on each question of a stream, in the stream's order.

    Attributes:
        asked: The questions that were asked lately.
    """

    def __init__(self) -> None:
        self.asked = AskedQuestions()
        self._evaluated: frozenset[int] = frozenset()

    def keep_for_evaluation(self, questions: Collection[str]) -> None:
        """Never let a question of these pass."""
        self._evaluated |= frozenset(map(digest, questions))

    def verdict(self, task: str, question: str) -> Verdict:
        """Return what a question is; one of the evaluation must not be asked."""
        if digest(question) in self._evaluated:
            return "evaluation"
        return "repeat" if self.asked.has(task, question) else "fresh"
