"""Writers of a simulated model's texts that need no answer key.

One can add and find greatest common divisors, so it meets two tasks without knowing
their items; the other writes nothing but hostile answers.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Sequence

from tests.support.hostile_texts import HOSTILE, armed

LONGEST_HOSTILE_CHARS = 40_000
UNUSED_PORT = 9


def solve(question: str) -> str:
    """Answer a question of `gcd` or `chain_sum`; others with a number found in it."""
    numbers = [int(n) for n in re.findall(r"-?\d+", question)]
    if "GCD" in question and numbers:
        return str(math.gcd(*numbers))
    found = re.search(r"(\d+(?: [+-] \d+)+)", question)
    if found:
        terms = found.group(1).split(" ")
        signs = [1, *(1 if sign == "+" else -1 for sign in terms[1::2])]
        return str(sum(s * int(n) for s, n in zip(signs, terms[::2], strict=True)))
    return str(numbers[0] if numbers else 0)


class Arithmetic:
    """About half of its completions hold the solution."""

    def __init__(self, seed: int = 0) -> None:
        self._rng = random.Random(seed)

    def __call__(self, question: str, n: int) -> Sequence[str]:
        """Write n completions."""
        right = solve(question)
        answers = [right if self._rng.random() < 0.5 else "no" for _ in range(n)]
        return [f"<think>hm</think><answer>{answer}</answer>" for answer in answers]


class Hostile:
    """Every completion is one of the hostile texts, in tags.

    Args:
        folder: Where a text that is executed would leave a file.
        seed: Decides which text comes.
    """

    def __init__(self, folder: str, seed: int = 0) -> None:
        self._rng = random.Random(seed)
        self._texts = []
        for hostile in HOSTILE:
            text = armed(hostile.text, folder, UNUSED_PORT)[:LONGEST_HOSTILE_CHARS]
            readable = text.encode("utf-8", "replace").decode()
            self._texts.append(f"<think>hm</think><answer>{readable}</answer>")

    def __call__(self, question: str, n: int) -> Sequence[str]:
        """Write n completions, whatever the question is."""
        return self._rng.choices(self._texts, k=n)
