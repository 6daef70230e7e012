"""A forest that chooses a strategy by features of a question, learned on other items.

It sees what every strategy scored on items that it is fitted to. A feature is a count,
a number, or a likeness that is computed without knowing the task. Each tree splits the
items where the scores of the strategies differ most; the strategy that scores most in
the leaves of a question answers it.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tools.trivial_baselines import question_parts as parts

TREES = 40
MIN_IN_LEAF = 4
MAX_WORDS = 80
"""Words whose numbers are features, those that vary most first."""

MAX_STRATEGIES = 40
"""Strategies that are chosen from, the best first."""

_TAIL = 6
_WHOLE = re.compile(r"-?\d{1,9}")
Array = npt.NDArray[np.float64]


def _number_features(numbers: Sequence[float]) -> list[float]:
    """Return the last numbers, their steps, and which of them agree."""
    last = [*[0.0] * _TAIL, *numbers][-_TAIL:]
    steps = list(np.diff(last))
    turns = list(np.diff(steps))
    agree = [a == b for v in (last, steps, turns) for a in v for b in v]
    ends = [min(numbers), max(numbers), sum(numbers)] if numbers else [0.0] * 3
    odd = [abs(number) % 2 for number in last]
    return [len(numbers), *last, *steps, *turns, *agree, *ends, *odd]


def _sign_features(text: str) -> list[float]:
    """Return how many signs or words a short text has, of each and of those in turn."""
    signs = text.split() if " " in text else list(text)
    common = [*(count for _, count in Counter(signs).most_common(2)), 0, 0][:2]
    changes = sum(a != b for a, b in itertools.pairwise(signs))
    counts = (text.count(sign) for sign in "0123456789.,()+-*/→")
    return [len(text), len(signs), len({*signs}), changes, *common, *counts]


def _line_features(lines: Sequence[str]) -> list[float]:
    """Return what the last two lines share with earlier ones, and how those end."""
    found: list[float] = []
    split = [parts.words(line) for line in lines]
    for n in (1, 2):
        words, earlier = (split[-n:] or [[]])[0], split[:-n]
        shared = [len({*words} & {*o}) / len({*words, *o, ""}) for o in earlier]
        best = max(shared, default=0.0)
        like = earlier[shared.index(best)] if earlier else []
        found += [best, sum(map(ord, (like or [""])[-1][:3]))]
        found += (
            sum(o[place : place + 1] == [w] for o in earlier)
            for place, w in enumerate([*words, *[""] * 12][:12])
        )
    return found


@functools.lru_cache(maxsize=4096)
def _features(question: str) -> tuple[float, ...]:
    lines = parts.lines(question)
    numbers = [float(text) for text in parts.numbers(question) if len(text) < 12]
    lists = [[], [], [], *parts.value_lists(question)][-3:]
    last = [*[""] * 8, *parts.words(lines[-1] if lines else "")][-8:]
    found: list[float] = [len(question), len(lines), len(parts.words(question))]
    found += _number_features(numbers)
    found += _sign_features(parts.after_colon(question) or "")
    found += _line_features(lines)
    found += (question.count(word) if word else 0 for word in last)
    for texts in lists:
        whole = [int(t) for t in map(str, texts) if _WHOLE.fullmatch(t)]
        ends = [whole[0], whole[-1], sum(whole)] if whole else [0, 0, 0]
        found += [len(texts), whole == sorted(whole), len({*whole}), *ends]
    return tuple(map(float, found))


class Forest:
    """Chooses one of some strategies for a question.

    Args:
        known: The questions that it learns from, n of them, each with what strategies
            scored on it, by name; a missing one scored 0.
    """

    def __init__(self, known: Sequence[tuple[str, Mapping[str, float]]]) -> None:
        questions, scores = zip(*known, strict=True)
        totals: Counter[str] = Counter()
        for one in scores:
            totals.update(one)
        self.names = [name for name, _ in totals.most_common(MAX_STRATEGIES)]
        counts = [Counter(parts.words(question)) for question in questions]
        spread = {
            word: float(np.var([one[word] for one in counts]))
            for word, seen in Counter(w for one in counts for w in one).items()
            if seen >= len(questions) / 20
        }
        self._words = sorted(spread, key=lambda word: -spread[word])[:MAX_WORDS]
        features = np.array([self._features(question) for question in questions])
        values = np.array([[one.get(n, 0.0) for n in self.names] for one in scores])
        rng = np.random.default_rng(0)
        draws = (rng.integers(0, len(questions), len(questions)) for _ in range(TREES))
        self._trees = [_tree(features[d], values[d], rng) for d in draws]

    def _features(self, question: str) -> list[float]:
        counts = Counter(parts.words(question))
        return [*_features(question), *(float(counts[w]) for w in self._words)]

    def choose(self, question: str, said: Mapping[str, str]) -> str | None:
        """Return the answer of the strategy that is to score most."""
        features = self._features(question)
        mean = sum(_leaf(tree, features) for tree in self._trees)
        ranked = [self.names[place] for place in np.argsort(-mean, kind="stable")]
        return next((said[name] for name in ranked if name in said), None)


def _tree(features: Array, values: Array, rng: np.random.Generator) -> Any:
    """Return a node (feature, bound, lower, higher), or the mean scores of a leaf."""
    num = len(features)
    best: tuple[float, int, float] = (1e-9, -1, 0.0)
    total = values.sum(axis=0)
    tried = rng.permutation(features.shape[1])[: features.shape[1] // 4]
    sizes = np.arange(1, num)[:, None]
    for place in tried if num >= 2 * MIN_IN_LEAF and values.var() > 0 else ():
        order = np.argsort(features[:, place], kind="stable")
        column = features[order, place]
        if column[0] == column[-1]:
            continue
        low = np.cumsum(values[order], axis=0)[:-1]
        gain = (low**2 / sizes + (total - low) ** 2 / (num - sizes)).sum(axis=1)
        gain[column[1:] == column[:-1]] = 0.0
        gain[: MIN_IN_LEAF - 1] = gain[num - MIN_IN_LEAF :] = 0.0
        at = int(gain.argmax())
        better = float(gain[at] - (total**2).sum() / num)
        if better > best[0]:
            best = better, int(place), float(column[at] + column[at + 1]) / 2
    if best[1] < 0:
        return total / num
    is_low = features[:, best[1]] <= best[2]
    sides = (_tree(features[side], values[side], rng) for side in (is_low, ~is_low))
    return (*best[1:], *sides)


def _leaf(tree: Any, features: Sequence[float]) -> Array:
    while isinstance(tree, tuple):
        place, bound, low, high = tree
        tree = low if features[place] <= bound else high
    return np.asarray(tree)
